//! What a process under `LUMA_INTERPOSE_REPORT=FOLDER` leaves for `luma run`: a file `FOLDER/PID.json` when it
//! ends, and until then, from the first call of a hook on, an empty file `FOLDER/PID.begun`. A process that is
//! killed, replaced by another program, or ended by a system call leaves the second one only; what replaced it
//! and calls hooks, too, renames it to `FOLDER/PID.replaced`.
//!
//! - [`folder`]: the variable, and the files;
//! - [`notes`]: what the doors and the hooks tell;
//! - [`process`]: what the system says of the process;
//! - [`json`]: text that is written without memory from the heap;
//! - [`document`]: the content of the file;
//! - [`end`]: the moments at which it is written.
//!
//! A program must not notice any of it. Nothing is allocated and no lock is waited for without a bound: the end
//! may be in the handler of a signal that has interrupted anything. What fails is left out. In a child of
//! `vfork`, whose memory is its parent's, nothing is done.

mod document;
mod end;
mod folder;
mod json;
mod notes;
mod process;

pub use notes::{looked_up, opening, ordered_alloc, ordered_free, reached};
