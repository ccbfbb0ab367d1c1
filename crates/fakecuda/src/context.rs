//! Contexts.

use crate::state::State;
use crate::status::{Code, Result};
use crate::thread::{self, Current};
use std::collections::{BTreeMap, BTreeSet};

/// Names a context. Never given twice, other than its handle. It is what `cuCtxGetId` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub u64);

/// A context.
#[derive(Debug)]
pub struct Context {
    /// The handle that programs know.
    pub handle: u64,
    /// The device's number.
    pub device: usize,
    /// As given to `cuCtxCreate`, or set for the primary context.
    pub flags: u32,
    /// Whether it is its device's primary one.
    pub is_primary: bool,
    /// Contexts whose memory it may touch.
    pub peers: BTreeSet<ContextId>,
    /// `cuCtxSetLimit`.
    pub limits: BTreeMap<u32, usize>,
    /// `cuCtxSetCacheConfig`.
    pub cache_config: u32,
    /// How often it was made or attached to, and not detached from.
    pub uses: u32,
}

impl State {
    /// The current context of the calling thread.
    ///
    /// # Errors
    /// `INVALID_CONTEXT`: there is none. `CONTEXT_IS_DESTROYED`: it is gone.
    pub fn current(&self) -> Result<ContextId> {
        let current = thread::top().ok_or(Code::INVALID_CONTEXT)?;
        let context = match current.primary_of {
            Some(device) => self.devices[device].primary,
            None => Some(current.context).filter(|id| self.contexts.contains_key(id)),
        };
        context.ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    /// What a thread's stack holds for a context.
    pub fn as_current(&self, id: ContextId) -> Result<Current> {
        let context = self.context(id)?;
        Ok(Current {
            handle: context.handle,
            context: id,
            primary_of: context.is_primary.then_some(context.device),
        })
    }

    /// The number of the current context's device.
    pub fn current_device(&self) -> Result<usize> {
        Ok(self.context(self.current()?)?.device)
    }

    /// A context that may be gone.
    pub fn context(&self, id: ContextId) -> Result<&Context> {
        self.contexts.get(&id).ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    /// A context that may be gone.
    pub fn context_mut(&mut self, id: ContextId) -> Result<&mut Context> {
        self.contexts.get_mut(&id).ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    /// The context of a handle.
    ///
    /// # Errors
    /// `INVALID_CONTEXT`: there is none. `CONTEXT_IS_DESTROYED`: a primary context that is not active.
    pub fn context_by_handle(&self, handle: u64) -> Result<ContextId> {
        let id = self.context_handles.get(handle);
        let id = *id.ok_or(Code::INVALID_CONTEXT)?;
        self.context(id).map(|_| id)
    }

    /// The context of a handle, the current one for a null handle.
    pub fn context_or_current(&self, handle: u64) -> Result<ContextId> {
        if handle == 0 {
            self.current()
        } else {
            self.context_by_handle(handle)
        }
    }

    /// Makes a context on a device.
    pub fn create_context(&mut self, device: usize, flags: u32, is_primary: bool) -> ContextId {
        self.contexts_made += 1;
        let id = ContextId(self.contexts_made);
        let handle = self.handle_for(id, device, is_primary);
        self.contexts.insert(
            id,
            Context {
                handle,
                device,
                flags,
                is_primary,
                peers: BTreeSet::new(),
                limits: BTreeMap::new(),
                cache_config: 0,
                uses: 1,
            },
        );
        self.exec.open_context(id);
        id
    }

    /// A handle for a new context. Each time that a primary context becomes active it has the same one,
    /// and threads to which it is current go on with it.
    fn handle_for(&mut self, id: ContextId, device: usize, is_primary: bool) -> u64 {
        let kept = self.devices[device].primary_handle.filter(|_| is_primary);
        if let Some((handle, slot)) =
            kept.and_then(|handle| Some((handle, self.context_handles.get_mut(handle)?)))
        {
            *slot = id;
            return handle;
        }
        let handle = self.context_handles.insert(id);
        if is_primary {
            self.devices[device].primary_handle = Some(handle);
        }
        handle
    }

    /// Ends a context: what it owns goes. The caller has waited for its work.
    pub fn destroy_context(&mut self, id: ContextId) {
        let Some(context) = self.contexts.remove(&id) else {
            return;
        };
        if context.is_primary {
            self.devices[context.device].primary = None;
        } else {
            self.context_handles.remove(context.handle);
        }
        for other in self.contexts.values_mut() {
            other.peers.remove(&id);
        }
        self.close_streams(id);
        self.release_memory_of(id);
        self.modules.unload_all_of(id);
        self.arrays.forget_all_of(id);
    }

    /// The primary context of a device, made if it is not active.
    pub fn primary_context(&mut self, device: usize) -> ContextId {
        if let Some(id) = self.devices[device].primary {
            return id;
        }
        let id = self.create_context(device, self.devices[device].primary_flags, true);
        self.devices[device].primary = Some(id);
        id
    }
}
