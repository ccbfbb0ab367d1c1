//! Memory for other processes.

use luma::log::{self, Level};

/// An export was refused.
pub fn tell_refused() {
    log::log(Level::Warning, || {
        "cuIpcGetMemHandle is refused (801): the block is a part of a segment, and the handle would name all of it. Ask cuMemGetAddressRange for the segment first and tell the other process the offset, or run with LUMA_INTERPOSE_IPC=own, which gives each block a segment of its own".into()
    });
}
