#![forbid(unsafe_code)]
//! All pools that the C interface made: their handles, the default pools, forks.
//!
//! A handle is a number, not an address: the place of a slot and the slot's generation. Slots are
//! never given back to the system, so that a handle that is used after its pool was destroyed finds a
//! slot that says so, and one that is used while another thread destroys the pool finds it closed.

use super::{Open, Pool, PoolConfig, oom, recorder};
use crate::alloc::Located;
use crate::config::environment;
use crate::error::{Error, Result, Status};
use crate::log;
use crate::text::text;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
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
    pool: Pool,
}

/// Block `k` has `FIRST_BLOCK << k` slots, made when the first of them is needed.
static SLOTS: [OnceLock<Box<[Slot]>>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];
static DEFAULT: OnceLock<&'static Slot> = OnceLock::new();
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
        DEFAULT.get().is_some_and(|slot| slot.index == self.index)
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

/// Makes a pool.
pub fn create(config: &PoolConfig) -> Result<Handle> {
    let slot = registry().take_slot()?;
    match slot.pool.open(config) {
        Ok(()) => Ok(slot.handle()),
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

/// Sets what the default pools are like, and makes that of `config.device`.
///
/// # Errors
/// `InvalidValue`: a default pool exists already. What making the pool fails with.
pub fn init(config: &PoolConfig) -> Result<()> {
    read_environment();
    let config = config.with_environment();
    let mut registry = registry();
    if DEFAULT.get().is_some() {
        return Err(Error::new(
            Status::InvalidValue,
            "luma_init comes before the first use of a default pool, and one exists already",
        ));
    }
    let slot = make_default(&mut registry, &config)?;
    drop(registry);
    tell_choice(slot);
    Ok(())
}

/// Reads what the environment says before anything is locked: bad values are logged, and whoever
/// hears of them may call luma again.
pub(crate) fn read_environment() {
    environment();
    recorder::is_on();
}

fn tell_choice(slot: &'static Slot) {
    log::log(log::Level::Info, || {
        let name = slot.pool.backend_name().unwrap_or("closed");
        text!(
            "the default pool of device 0 uses the {name} backend; this version of luma has no CUDA backend"
        )
    });
}

/// The default pool of the current device, made at first use.
#[inline]
pub fn default_slot() -> Result<&'static Slot> {
    match DEFAULT.get() {
        Some(slot) => Ok(slot),
        None => first_use(),
    }
}

#[cold]
fn first_use() -> Result<&'static Slot> {
    read_environment();
    let config = PoolConfig::default().with_environment();
    let mut registry = registry();
    if let Some(slot) = DEFAULT.get() {
        return Ok(slot);
    }
    let slot = make_default(&mut registry, &config)?;
    drop(registry);
    tell_choice(slot);
    Ok(slot)
}

/// Whether the default pool was made.
#[inline]
pub fn has_default() -> bool {
    DEFAULT.get().is_some()
}

fn make_default(registry: &mut Registry, config: &PoolConfig) -> Result<&'static Slot> {
    let slot = registry.take_slot()?;
    if let Err(error) = slot.pool.open(config) {
        registry.resting.push_front(slot);
        return Err(error);
    }
    Ok(DEFAULT.get_or_init(|| slot))
}

/// The default pool of a device.
///
/// # Errors
/// `NoDevice`: there is no such device.
pub fn default_slot_of(device: i32) -> Result<&'static Slot> {
    if device != 0 {
        return Err(no_device(device));
    }
    default_slot()
}

fn no_device(device: i32) -> Error {
    Error::new(
        Status::NoDevice,
        text!("there is no device {device}: host memory is device 0"),
    )
}

/// Forgets all that the default pool of a device holds, whose context was reset. Host memory
/// outlives that; it is given back.
///
/// # Errors
/// `NoDevice`: there is no such device.
pub fn device_reset(device: i32) -> Result<()> {
    if device != 0 {
        return Err(no_device(device));
    }
    match DEFAULT.get() {
        Some(slot) => slot.pool.forget(),
        None => Ok(()),
    }
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

/// Everything that is locked while the process forks, so that the child finds nothing half done.
pub(crate) struct ForkGuard {
    record: Option<recorder::ForkGuard>,
    pools: Vec<MutexGuard<'static, Option<Open>>>,
    _handlers: MutexGuard<'static, oom::Handlers>,
    _sink: MutexGuard<'static, Option<log::Sink>>,
    _registry: MutexGuard<'static, Registry>,
}

/// Before a fork: waits a moment for backend calls in progress to end, then locks everything, in
/// the order in which calls lock.
pub(crate) fn lock_for_fork() -> ForkGuard {
    let registry = registry();
    let pools = registry
        .slots()
        .map(|slot| slot.pool.lock_for_fork())
        .collect();
    ForkGuard {
        record: recorder::lock_for_fork(),
        pools,
        _handlers: oom::lock_for_fork(),
        _sink: log::lock_for_fork(),
        _registry: registry,
    }
}

impl ForkGuard {
    /// In the child, which has a copy of the host's memory and no other thread: backend calls that
    /// other threads had begun will not end, and the calls of this process are not the parent's.
    pub(crate) fn in_child(mut self) {
        for state in self.pools.iter_mut().filter_map(|state| state.as_mut()) {
            state.after_fork();
        }
        if let Some(record) = &mut self.record {
            record.forget_in_child();
        }
    }
}
