#![forbid(unsafe_code)]
//! All pools that the C interface made: their handles, and forks.
//!
//! A handle is a number, not an address: the place of a slot and the slot's generation. Slots are
//! never given back to the system, so that a handle that is used after its pool was destroyed finds a
//! slot that says so, and one that is used while another thread destroys the pool finds it closed.

use super::oom::Elsewhere;
use super::{Open, Pool, PoolConfig, caches, checked, defaults, oom, recorder};
use crate::alloc::Located;
use crate::backend::captures;
use crate::error::{Error, Result, Status};
use crate::log;
use crate::text::text;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Names a pool outside of the process's Rust code. Never 0.
pub type Handle = usize;

/// A slot's generation is the low half of a handle, so that a slot is used 65,536 times before an
/// old handle means a new pool.
const GENERATION_BITS: u32 = 16;
const FIRST_BLOCK: usize = 64;
const BLOCKS: usize = 24;
/// Freed slots wait until so many are freed, to keep generations apart for longer.
const RESTING_SLOTS: usize = 32;

/// Room for one pool.
#[derive(Debug)]
pub struct Slot {
    index: usize,
    generation: AtomicU32,
    /// Whether a default pool is in it, which stays there.
    is_default: AtomicBool,
    pool: Pool,
}

/// Block `k` has `FIRST_BLOCK << k` slots, made when the first of them is needed.
static SLOTS: [OnceLock<Box<[Slot]>>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];
static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    used: 0,
    resting: VecDeque::new(),
});

struct Registry {
    /// Slots that were ever used.
    used: usize,
    /// Slots whose pool was destroyed.
    resting: VecDeque<&'static Slot>,
}

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Slot {
    /// The pool in it.
    #[inline]
    pub fn pool(&'static self) -> &'static Pool {
        &self.pool
    }

    /// The handle of the pool that is in it now.
    pub fn handle(&self) -> Handle {
        let generation =
            self.generation.load(Ordering::Acquire) as usize & ((1 << GENERATION_BITS) - 1);
        (self.index + 1) << GENERATION_BITS | generation
    }

    fn is_default(&self) -> bool {
        self.is_default.load(Ordering::Acquire)
    }
}

/// The block that an index is in, and the index of the block's first slot.
#[inline]
fn block_of(index: usize) -> (usize, usize) {
    let block = (index / FIRST_BLOCK + 1).ilog2() as usize;
    (block, ((1 << block) - 1) * FIRST_BLOCK)
}

/// The slot at an index, if its block was made.
#[inline]
fn slot_at(index: usize) -> Option<&'static Slot> {
    let (block, first) = block_of(index);
    SLOTS.get(block)?.get()?.get(index - first)
}

impl Registry {
    fn take_slot(&mut self) -> Result<&'static Slot> {
        // So that giving a slot back needs no memory.
        self.resting
            .try_reserve(self.used + 1 - self.resting.len())
            .map_err(|_| Error::host_memory())?;
        if self.resting.len() >= RESTING_SLOTS {
            if let Some(slot) = self.resting.pop_front() {
                return Ok(slot);
            }
        }
        let index = self.used;
        let (block, first) = block_of(index);
        let slots = SLOTS
            .get(block)
            .ok_or_else(|| Error::new(Status::OutOfMemory, "too many pools exist at once"))?;
        slots.get_or_init(|| {
            (0..FIRST_BLOCK << block)
                .map(|at| Slot {
                    index: first + at,
                    generation: AtomicU32::new(1),
                    is_default: AtomicBool::new(false),
                    pool: Pool::closed(),
                })
                .collect()
        });
        self.used += 1;
        slot_at(index).ok_or_else(|| Error::new(Status::Internal, "a new slot is not in its table"))
    }

    /// The slots that were ever used.
    fn slots(&self) -> impl Iterator<Item = &'static Slot> + use<> {
        (0..self.used).filter_map(slot_at)
    }
}

/// Finds the pool of a handle.
///
/// # Errors
/// `InvalidValue`: the handle is 0, means no pool, or its pool was destroyed.
#[inline]
pub fn pool(handle: Handle) -> Result<&'static Pool> {
    Ok(&slot(handle)?.pool)
}

#[inline]
fn slot(handle: Handle) -> Result<&'static Slot> {
    let found = (handle >> GENERATION_BITS)
        .checked_sub(1)
        .and_then(slot_at)
        .filter(|slot| slot.handle() == handle);
    found.ok_or_else(|| bad_handle(handle))
}

#[cold]
fn bad_handle(handle: Handle) -> Error {
    let message = if handle == 0 {
        "the pool is NULL".into()
    } else {
        text!(
            "{handle:#x} is no pool; it was destroyed, or is not from luma_pool_create or luma_default_pool"
        )
    };
    Error::new(Status::InvalidValue, message)
}

/// Every pool that was ever made, open or not.
pub fn pools() -> impl Iterator<Item = &'static Pool> {
    registry().slots().map(Slot::pool)
}

/// Makes a pool.
pub fn create(config: &PoolConfig) -> Result<Handle> {
    fill_slot(|pool| pool.open(config)).map(Slot::handle)
}

/// Makes a default pool, which stays where it is.
pub(super) fn create_default(open: impl FnOnce(&Pool) -> Result<()>) -> Result<&'static Slot> {
    let slot = fill_slot(open)?;
    slot.is_default.store(true, Ordering::Release);
    Ok(slot)
}

/// Opens a pool in a slot. The registry is not locked while its backend is asked.
fn fill_slot(open: impl FnOnce(&Pool) -> Result<()>) -> Result<&'static Slot> {
    let slot = registry().take_slot()?;
    match open(&slot.pool) {
        Ok(()) => Ok(slot),
        Err(error) => {
            registry().resting.push_front(slot);
            Err(error)
        }
    }
}

/// Destroys a pool and gives the number of its live blocks.
///
/// # Errors
/// `InvalidValue`: a default pool, or a handle without a pool.
pub fn destroy(handle: Handle) -> Result<u64> {
    let slot = slot(handle)?;
    if slot.is_default() {
        return Err(Error::new(
            Status::InvalidValue,
            "a default pool cannot be destroyed; luma_empty_cache gives its free memory back",
        ));
    }
    let closed = slot.pool.close();
    if closed
        .as_ref()
        .is_err_and(|error| error.status() == Status::InvalidValue)
    {
        return closed;
    }
    slot.generation.fetch_add(1, Ordering::Release);
    registry().resting.push_back(slot);
    closed
}

/// The pool of this process in whose memory `addr` lies, other than `but`, and whether it is a default
/// pool.
pub fn other_owner(addr: u64, but: Option<&'static Pool>) -> Option<(Handle, bool)> {
    let slots = registry().slots();
    slots
        .filter(|slot| but.is_none_or(|but| !std::ptr::eq(&slot.pool, but)))
        .find(|slot| slot.pool.locate(addr) != Located::Foreign)
        .map(|slot| (slot.handle(), slot.is_default()))
}

/// Of the pools of a device (by its key) other than `but`, that which could give the most back.
pub(super) fn free_elsewhere(device_key: u64, but: &Pool) -> Option<Elsewhere> {
    let slots = registry().slots();
    slots
        .filter(|slot| !std::ptr::eq(&slot.pool, but))
        .map(|slot| Elsewhere {
            pool: slot.handle(),
            bytes: slot.pool.reclaimable_of(device_key),
        })
        .filter(|other| other.bytes > 0)
        .max_by_key(|other| other.bytes)
}

/// The pool of this process in whose memory `addr` lies.
pub fn pool_of(addr: u64) -> Option<&'static Pool> {
    pools().find(|pool| pool.locate(addr) != Located::Foreign)
}

/// Forgets what pools of any kind had in the memory of a CUDA device that was reset. `false`: there was
/// no such pool.
pub(super) fn forget_device(device: i32) -> Result<bool> {
    let slots = registry().slots();
    let mut outcome = Ok(false);
    for slot in slots {
        match slot.pool.forget_if_of(device) {
            Ok(was_lost) => outcome = outcome.map(|other| other || was_lost),
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    outcome
}

/// Everything that is locked while the process forks, so that the child finds nothing half done.
pub(crate) struct ForkGuard {
    record: Option<recorder::ForkGuard>,
    caches: Vec<caches::Locked<'static>>,
    pools: Vec<MutexGuard<'static, Option<Open>>>,
    _stacks: MutexGuard<'static, ()>,
    _handlers: MutexGuard<'static, oom::Handlers>,
    _sink: MutexGuard<'static, Option<log::Sink>>,
    _registry: MutexGuard<'static, Registry>,
    _making: Option<defaults::Making>,
    captures: captures::ForkGuard,
}

/// Before a fork: waits a moment for backend calls in progress to end, then locks everything, in
/// the order in which calls lock.
pub(crate) fn lock_for_fork() -> ForkGuard {
    let making = defaults::lock_making_for_fork();
    let registry = registry();
    let (mut pools, mut caches) = (Vec::new(), Vec::new());
    for slot in registry.slots() {
        pools.push(slot.pool.lock_for_fork());
        caches.extend(slot.pool.lock_caches_for_fork());
    }
    ForkGuard {
        record: recorder::lock_for_fork(),
        caches,
        pools,
        _stacks: checked::lock_for_fork(),
        _handlers: oom::lock_for_fork(),
        _sink: log::lock_for_fork(),
        _registry: registry,
        _making: making,
        captures: captures::ForkGuard::lock(),
    }
}

impl ForkGuard {
    /// In the child, which has a copy of the host's memory and no other thread: backend calls that
    /// other threads had begun will not end, and the calls of this process are not the parent's.
    pub(crate) fn in_child(mut self) {
        self.caches.clear();
        caches::after_fork();
        self.captures.in_child();
        for state in self.pools.iter_mut().filter_map(|state| state.as_mut()) {
            state.after_fork();
        }
        if let Some(record) = &mut self.record {
            record.forget_in_child();
        }
    }
}
