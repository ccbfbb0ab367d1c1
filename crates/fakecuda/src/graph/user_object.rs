//! Programs' objects that graphs keep.
//!
//! References are counted in the object, and not under the lock: those of a launch in flight go when it
//! is complete. A destructor is a program's function and may not run under the lock: a thread of its
//! own calls it.

use super::Graphs;
use crate::exec::{HostFunction, spawn_thread};
use crate::state::State;
use crate::status::{Code, Result};
use crate::thread;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An object that calls a function when nobody refers to it any more.
#[derive(Debug)]
pub struct UserObject {
    handle: AtomicU64,
    references: AtomicU64,
    destroy: HostFunction,
    data: u64,
}

impl UserObject {
    fn release(&self, count: u64) {
        if self.references.fetch_sub(count, Ordering::AcqRel) == count {
            let mut ended = ended();
            ended.handles.push(self.handle.load(Ordering::Relaxed));
            ended.calls.push_back((self.destroy, self.data));
            ended.wake();
        }
    }
}

/// References to an object, given back when this goes.
#[derive(Debug)]
pub struct Held {
    object: Arc<UserObject>,
    count: u64,
}

impl Held {
    /// As many references to the same object again.
    pub fn again(&self) -> Self {
        let references = &self.object.references;
        references.fetch_add(self.count, Ordering::Relaxed);
        Self {
            object: self.object.clone(),
            count: self.count,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.count > 0 {
            self.object.release(self.count);
        }
    }
}

/// Objects to which nobody refers any more.
#[derive(Default)]
struct Ended {
    /// Handles that are to be taken out of the table.
    handles: Vec<u64>,
    calls: VecDeque<(HostFunction, u64)>,
    /// Whether there is a thread that makes the calls.
    has_thread: bool,
}

static ENDED: Mutex<Ended> = Mutex::new(Ended {
    handles: Vec::new(),
    calls: VecDeque::new(),
    has_thread: false,
});
static MORE: Condvar = Condvar::new();

fn ended() -> MutexGuard<'static, Ended> {
    ENDED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ended {
    fn wake(&mut self) {
        if self.has_thread {
            MORE.notify_one();
        } else {
            // Without a thread the calls wait for the next object that ends.
            self.has_thread = spawn_thread("fakecuda-objects", serve).is_ok();
        }
    }
}

/// Calls destructors, and ends when there were none for a while.
fn serve() {
    const STAY: Duration = Duration::from_millis(200);
    let mut ended = ended();
    loop {
        while let Some((destroy, data)) = ended.calls.pop_front() {
            drop(ended);
            // SAFETY: the program gave both for this call.
            thread::as_host_function(|| unsafe { destroy(data as *mut c_void) });
            ended = self::ended();
        }
        let (after, waited) = MORE
            .wait_timeout(ended, STAY)
            .unwrap_or_else(PoisonError::into_inner);
        ended = after;
        if waited.timed_out() && ended.calls.is_empty() {
            ended.has_thread = false;
            return;
        }
    }
}

/// How many references a call may add or take.
fn check_count(count: u32) -> Result<u64> {
    if count == 0 || count > i32::MAX as u32 {
        return Err(Code::INVALID_VALUE);
    }
    Ok(u64::from(count))
}

impl Graphs {
    fn object(&mut self, handle: u64) -> Result<&Arc<UserObject>> {
        for handle in std::mem::take(&mut ended().handles) {
            self.objects.remove(handle);
        }
        self.objects.get(handle).ok_or(Code::INVALID_VALUE)
    }

    /// `cuUserObjectCreate`: the caller has `count` references.
    pub fn create_object(&mut self, destroy: HostFunction, data: u64, count: u32) -> Result<u64> {
        let count = check_count(count)?;
        let object = Arc::new(UserObject {
            handle: AtomicU64::new(0),
            references: AtomicU64::new(count),
            destroy,
            data,
        });
        // Handles of ended objects are free from here on.
        let _ = self.object(0);
        let handle = self.objects.insert(object.clone());
        object.handle.store(handle, Ordering::Relaxed);
        Ok(handle)
    }

    /// `cuUserObjectRetain`.
    pub fn retain_object(&mut self, handle: u64, count: u32) -> Result {
        let count = check_count(count)?;
        let references = &self.object(handle)?.references;
        references.fetch_add(count, Ordering::Relaxed);
        Ok(())
    }

    /// `cuUserObjectRelease`.
    ///
    /// # Errors
    /// `INVALID_VALUE`: more than there are.
    pub fn release_object(&mut self, handle: u64, count: u32) -> Result {
        let count = check_count(count)?;
        let object = self.object(handle)?;
        if object.references.load(Ordering::Relaxed) < count {
            return Err(Code::INVALID_VALUE);
        }
        object.release(count);
        Ok(())
    }
}

impl State {
    /// `cuGraphRetainUserObject`: new references, or the caller's.
    pub fn keep_object(&mut self, graph: u64, object: u64, count: u32, is_moved: bool) -> Result {
        let count = check_count(count)?;
        self.graphs.graph(graph)?;
        let object = self.graphs.object(object)?.clone();
        if !is_moved {
            object.references.fetch_add(count, Ordering::Relaxed);
        }
        let objects = &mut self.graphs.graph_mut(graph)?.objects;
        match objects
            .iter_mut()
            .find(|held| Arc::ptr_eq(&held.object, &object))
        {
            Some(held) => held.count += count,
            None => objects.push(Held { object, count }),
        }
        Ok(())
    }

    /// `cuGraphReleaseUserObject`.
    ///
    /// # Errors
    /// `INVALID_VALUE`: more than the graph has.
    pub fn unkeep_object(&mut self, graph: u64, object: u64, count: u32) -> Result {
        let count = check_count(count)?;
        let object = self.graphs.object(object)?.clone();
        let objects = &mut self.graphs.graph_mut(graph)?.objects;
        let held = objects
            .iter_mut()
            .find(|held| Arc::ptr_eq(&held.object, &object));
        let held = held
            .filter(|held| held.count >= count)
            .ok_or(Code::INVALID_VALUE)?;
        held.count -= count;
        object.release(count);
        objects.retain(|held| held.count > 0);
        Ok(())
    }
}
