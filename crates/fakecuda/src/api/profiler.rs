//! The profiler's switches. There is none to switch.

use crate::driver;
use crate::state::lock;

driver! {
    fn cuProfilerStart() {
        lock().current().map(drop)
    }
    fn cuProfilerStop() {
        lock().current().map(drop)
    }
}
