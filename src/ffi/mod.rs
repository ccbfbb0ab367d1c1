//! The C interface: the only `extern "C"` functions, and no logic.
//!
//! # Safety
//! Every function may be called from any thread. A pointer argument is NULL or valid for what its
//! documentation says for as long as the call takes; callbacks and the pointers that go with them
//! stay valid until they are removed or their pool is gone. NULL is answered with
//! `LUMA_ERROR_INVALID_VALUE` wherever it means nothing. None may be called from a signal handler.
//!
//! Each body runs inside `boundary::call`, which keeps panics in, turns errors into the return
//! type's failure, and sets the thread's last status and message.

mod boundary;
mod default_pool;
mod last_error;
mod messages;
mod oom_handlers;
mod oom_report;
mod plan;
mod pools;
mod process;
mod streams;
mod torch;
mod types;
mod versioned;

pub use default_pool::*;
pub use messages::*;
pub use oom_handlers::*;
pub use oom_report::*;
pub use plan::*;
pub use pools::*;
pub use process::start as start_process;
pub use streams::*;
pub use torch::*;
pub use types::*;
