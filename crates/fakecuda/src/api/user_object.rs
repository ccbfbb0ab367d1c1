//! Programs' objects that graphs keep.

use crate::driver;
use crate::entry::put;
use crate::exec::HostFunction;
use crate::state::lock;
use crate::status::Code;
use std::ffi::c_void;

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, which has to be given.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`.
const MOVE: u32 = 1;

driver! {
    fn cuUserObjectCreate(
        object: *mut u64,
        data: *mut c_void,
        destroy: Option<HostFunction>,
        count: u32,
        flags: u32,
    ) {
        if object.is_null() || flags != NO_DESTRUCTOR_SYNC {
            return Err(Code::INVALID_VALUE);
        }
        let destroy = destroy.ok_or(Code::INVALID_VALUE)?;
        let handle = lock().graphs.create_object(destroy, data as u64, count)?;
        put(object, handle)
    }

    fn cuUserObjectRetain(object: u64, count: u32) {
        lock().graphs.retain_object(object, count)
    }

    fn cuUserObjectRelease(object: u64, count: u32) {
        lock().graphs.release_object(object, count)
    }

    fn cuGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) {
        if flags & !MOVE != 0 {
            return Err(Code::INVALID_VALUE);
        }
        lock().keep_object(graph, object, count, flags == MOVE)
    }

    fn cuGraphReleaseUserObject(graph: u64, object: u64, count: u32) {
        lock().unkeep_object(graph, object, count)
    }
}
