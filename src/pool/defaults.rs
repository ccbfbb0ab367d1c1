#![forbid(unsafe_code)]
//! The default pools: over CUDA one for each device, and one for each further context; over
//! anything else one in all.

use super::registry::{self, Slot, create_default};
use super::{BackendKind, Pool, PoolConfig, hosted, recorder};
use crate::alloc::Located;
use crate::backend::cuda::{self, ContextKey, CudaBackend, Fate, Kind};
use crate::config::environment;
use crate::error::{Error, Result, Status};
use crate::flag::Raised;
use crate::log::{self, Level};
use crate::text::text;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Means the calling thread's current device, where a device's number is asked for.
pub const CURRENT_DEVICE: i32 = -1;

/// The one default pool, where it is not CUDA's.
static SINGLE: OnceLock<&'static Slot> = OnceLock::new();
/// The first of CUDA's default pools.
static FIRST: OnceLock<Box<OfContext>> = OnceLock::new();
/// What default pools are like: as `luma_init` said, or the environment.
static CONFIG: OnceLock<PoolConfig> = OnceLock::new();
static MAKING: Mutex<()> = Mutex::new(());

/// The default pool of a context. The pools form a list that only grows, so that it is read without
/// a lock.
#[derive(Debug)]
struct OfContext {
    backend: Arc<CudaBackend>,
    slot: &'static Slot,
    /// Whether the context was destroyed.
    is_gone: AtomicBool,
    next: OnceLock<Box<OfContext>>,
}

impl OfContext {
    /// Whether this is the pool of the context that is current under a handle.
    #[inline]
    fn is_of(&self, key: ContextKey) -> bool {
        self.backend.context_key() == key
            && !self.is_gone.load(Ordering::Acquire)
            && self.is_still(key)
    }

    /// Finds out whether the context is another one by now, and forgets what was in it.
    fn is_still(&self, key: ContextKey) -> bool {
        let is_still = self.backend.is_still(key);
        if !is_still && !self.backend.is_primary() && !self.is_gone.swap(true, Ordering::AcqRel) {
            // A pool that is half changed has told its callers already.
            let _ = self.slot.pool().forget();
        }
        is_still
    }
}

thread_local! {
    /// Set while this thread makes a default pool.
    static IS_MAKING: Cell<bool> = const { Cell::new(false) };
}

/// Held while a default pool is made.
pub(super) struct Making {
    _lock: MutexGuard<'static, ()>,
    _flag: Raised,
}

/// Locks the making of default pools.
fn lock_making() -> Making {
    Making {
        _lock: MAKING.lock().unwrap_or_else(PoisonError::into_inner),
        _flag: Raised::new(&IS_MAKING),
    }
}

/// The same for a fork; `None` where this very thread makes a pool: the driver forks when it has to
/// load its kernel module.
pub(super) fn lock_making_for_fork() -> Option<Making> {
    (!IS_MAKING.get()).then(lock_making)
}

/// Begins the driver where it will be asked, so that it need not begin, and fork, while the making is
/// locked. Whether that works is seen later.
fn begin_driver(config: &PoolConfig) {
    if matches!(config.backend, BackendKind::Auto | BackendKind::Cuda) {
        let _ = cuda::is_available();
    }
}

/// CUDA's default pools.
fn of_contexts() -> impl Iterator<Item = &'static OfContext> {
    std::iter::successors(FIRST.get(), |pool| pool.next.get()).map(|pool| &**pool)
}

fn primary_of(device: i32) -> Option<&'static OfContext> {
    of_contexts().find(|pool| pool.backend.is_primary() && pool.backend.device() == device)
}

/// Whether any default pool exists.
#[inline]
pub fn exist() -> bool {
    SINGLE.get().is_some() || FIRST.get().is_some()
}

/// All default pools.
pub fn pools() -> impl Iterator<Item = &'static Pool> {
    let single = SINGLE.get().copied();
    let slots = single
        .into_iter()
        .chain(of_contexts().map(|pool| pool.slot));
    slots.map(Slot::pool)
}

/// A default pool, and whose memory it hands out.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// The pool.
    pub pool: &'static Pool,
    /// The device's number; 0, where the pool is not CUDA's.
    pub device: i32,
    /// Whether it is that of the device's primary context, or of no context.
    pub is_primary: bool,
}

/// All default pools that were made so far, those of contexts that are gone among them. Takes no lock.
pub fn all() -> impl Iterator<Item = Described> {
    let single = SINGLE.get().map(|slot| Described {
        pool: slot.pool(),
        device: single_device().unwrap_or(0),
        is_primary: true,
    });
    single.into_iter().chain(of_contexts().map(|of| Described {
        pool: of.slot.pool(),
        device: of.backend.device(),
        is_primary: of.backend.is_primary(),
    }))
}

/// The default pool that the calling thread's current device has, made at first use.
///
/// # Errors
/// `NoDevice`: there is no usable device. What making the pool fails with.
#[inline]
pub fn current() -> Result<&'static Slot> {
    match SINGLE.get() {
        Some(slot) => Ok(slot),
        None => of_current_context(),
    }
}

/// As [`current`], where there is no single pool. With no context current it is device 0's.
fn of_current_context() -> Result<&'static Slot> {
    if FIRST.get().is_none() {
        return make_first(None);
    }
    let key = cuda::current_context()?;
    let found = match key {
        ContextKey::NONE => primary_of(0),
        key => of_contexts().find(|pool| pool.is_of(key)),
    };
    match found {
        Some(pool) => Ok(pool.slot),
        None => make_for_current(key),
    }
}

#[cold]
fn make_for_current(key: ContextKey) -> Result<&'static Slot> {
    match key {
        ContextKey::NONE => of_device(0),
        _ => add(CudaBackend::of_current_context(hosted::keeps_contexts())?),
    }
}

/// The default pool of a device's primary context, made if it does not exist. [`CURRENT_DEVICE`] is
/// the calling thread's current one.
///
/// # Errors
/// `NoDevice`: there is no such device. What making the pool fails with.
pub fn of_device(device: i32) -> Result<&'static Slot> {
    if device == CURRENT_DEVICE {
        return current();
    }
    if !exist() {
        make_first(Some(device))?;
    }
    if let Some(slot) = SINGLE.get() {
        check_single(device)?;
        return Ok(slot);
    }
    match primary_of(device) {
        Some(pool) => Ok(pool.slot),
        None => add(CudaBackend::of_device(device, Kind::Device)?),
    }
}

/// Adds the pool of a context, unless another thread has.
fn add(backend: CudaBackend) -> Result<&'static Slot> {
    let making = lock_making();
    let known = of_contexts().find(|pool| {
        pool.is_of(backend.context_key())
            || pool.backend.is_primary()
                && backend.is_primary()
                && pool.backend.device() == backend.device()
    });
    if let Some(pool) = known {
        return Ok(pool.slot);
    }
    let config = CONFIG.get().copied().unwrap_or_default();
    let slot = append(backend, &config)?;
    drop(making);
    tell(slot);
    Ok(slot)
}

/// Makes the pool of a context. To be done with the making locked.
fn append(backend: CudaBackend, config: &PoolConfig) -> Result<&'static Slot> {
    let backend = Arc::new(backend);
    let config = hosted::adapted(config);
    let slot = create_default(|pool| pool.open_over(backend.clone(), &config))?;
    let last = of_contexts().last().map_or(&FIRST, |pool| &pool.next);
    last.get_or_init(|| {
        Box::new(OfContext {
            backend,
            slot,
            is_gone: AtomicBool::new(false),
            next: OnceLock::new(),
        })
    });
    Ok(slot)
}

/// The pool of the calling thread's current context, for a program that has made the context itself: where
/// there is none, there is no pool either, and no driver is begun. `None` also where default pools are not
/// CUDA's.
///
/// # Errors
/// As [`current`].
#[inline]
pub fn of_program() -> Result<Option<&'static Pool>> {
    let Some(key) = cuda::context_of_program() else {
        return Ok(None);
    };
    if let Some(pool) = of_contexts().find(|pool| pool.is_of(key)) {
        return Ok(Some(pool.slot.pool()));
    }
    make_for_program()
}

#[cold]
fn make_for_program() -> Result<Option<&'static Pool>> {
    let slot = current()?;
    Ok(SINGLE.get().is_none().then(|| slot.pool()))
}

/// The pool of a context, for such a program, if there is one.
pub fn of_context(key: ContextKey) -> Option<&'static Pool> {
    of_contexts()
        .find(|pool| pool.is_of(key))
        .map(|pool| pool.slot.pool())
}

/// The default pool to ask about an address first; `None`: there is none of CUDA's.
#[inline]
pub fn of_address(addr: u64) -> Option<&'static Pool> {
    if SINGLE.get().is_some() {
        return None;
    }
    owner(addr)
}

/// CUDA's default pools whose contexts are there, with the devices' numbers.
pub fn of_devices() -> impl Iterator<Item = (i32, &'static Pool)> {
    of_contexts()
        .filter(|pool| !pool.is_gone.load(Ordering::Acquire))
        .map(|pool| (pool.backend.device(), pool.slot.pool()))
}

/// The pool in whose memory `addr` lies, if it is a CUDA default pool.
pub fn holder(addr: u64) -> Option<&'static Pool> {
    let pool = of_address(addr)?;
    (pool.locate(addr) != Located::Foreign).then_some(pool)
}

/// The devices' contexts of which pools know may have ended: those that have are forgotten.
pub fn look_for_ended_contexts() {
    for pool in of_contexts().filter(|pool| !pool.backend.is_primary()) {
        pool.is_still(pool.backend.context_key());
    }
}

/// A context that is no primary one was destroyed, and its memory with it. Another one may have its handle by
/// now, and a pool.
pub fn context_destroyed(key: ContextKey) {
    let pools = of_contexts().filter(|pool| {
        !pool.backend.is_primary()
            && pool.backend.context_key() == key
            && !pool.is_gone.load(Ordering::Acquire)
            && pool.backend.fate() != Fate::Lives
            && !pool.is_gone.swap(true, Ordering::AcqRel)
    });
    for pool in pools {
        // A pool that is half changed has told its callers already.
        let _ = pool.slot.pool().forget();
    }
}

/// An owner of the primary context of a device has come or gone: if the context that its pool knew has ended, the
/// pool forgets what it had there. Another one may be in its place by now, and threads in it.
pub fn look_for_ended_primary(device: i32) {
    let Some(OfContext { backend, slot, .. }) = primary_of(device) else {
        return;
    };
    let pool = slot.pool();
    let Ok(epoch) = pool.epoch() else {
        return;
    };
    let has_ended = match backend.fate() {
        Fate::Forgotten => false,
        Fate::Ended => true,
        Fate::Lives | Fate::Unknown => cuda::is_primary_active(device) == Some(false),
    };
    if has_ended {
        // A pool that is half changed has told its callers already.
        let _ = pool.forget_since(epoch);
    }
}

/// The first use of a default pool, which decides for all what they are like. `device`: the one to
/// begin with, otherwise the current one.
#[cold]
fn make_first(device: Option<i32>) -> Result<&'static Slot> {
    read_environment();
    let config = PoolConfig::default().with_environment();
    begin_driver(&config);
    let making = lock_making();
    let slot = if exist() {
        None
    } else {
        Some(make(&config, device)?)
    };
    drop(making);
    match slot {
        Some(slot) => {
            tell(slot);
            Ok(slot)
        }
        None => device.map_or_else(current, of_device),
    }
}

/// Makes the first default pool. To be done with the making locked.
fn make(config: &PoolConfig, device: Option<i32>) -> Result<&'static Slot> {
    let config = PoolConfig {
        backend: config.backend.resolved()?,
        ..*config
    };
    if config.backend != BackendKind::Cuda {
        let slot = create_default(|pool| pool.open(&config))?;
        CONFIG.get_or_init(|| config);
        return Ok(SINGLE.get_or_init(|| slot));
    }
    let backend = match device {
        Some(device) => CudaBackend::of_device(device, Kind::Device)?,
        None => {
            // That there is no driver or no device comes before what it says of contexts.
            cuda::devices()?;
            match cuda::current_context()? {
                ContextKey::NONE => CudaBackend::of_device(0, Kind::Device)?,
                _ => CudaBackend::of_current_context(hosted::keeps_contexts())?,
            }
        }
    };
    let slot = append(backend, &config)?;
    CONFIG.get_or_init(|| config);
    Ok(slot)
}

/// Sets what the default pools are like, and makes that of `config.device`.
///
/// # Errors
/// `InvalidValue`: a default pool exists already. What making the pool fails with.
pub fn init(config: &PoolConfig) -> Result<()> {
    read_environment();
    let config = config.with_environment();
    begin_driver(&config);
    let making = lock_making();
    if exist() {
        return Err(Error::new(
            Status::InvalidValue,
            "luma_init comes before the first use of a default pool, and one exists already",
        ));
    }
    let slot = make(&config, Some(config.device))?;
    drop(making);
    tell(slot);
    Ok(())
}

/// Reads what the environment says before anything is locked: bad values are logged, and whoever
/// hears of them may call luma again.
pub(crate) fn read_environment() {
    environment();
    recorder::is_on();
}

fn tell(slot: &'static Slot) {
    log::log(Level::Info, || {
        let name = slot.pool().backend_name().unwrap_or("closed");
        match of_contexts().find(|pool| std::ptr::eq(pool.slot, slot)) {
            None => text!("the default pool uses the {name} backend"),
            Some(pool) if pool.backend.is_primary() => text!(
                "the default pool of device {} uses the {name} backend",
                pool.backend.device()
            ),
            Some(pool) => text!(
                "the default pool of a context of its own on device {} uses the {name} backend",
                pool.backend.device()
            ),
        }
    });
}

/// The default pool that has the live block at `addr` and its other addresses, if any does; the single
/// default pool whatever it has.
#[inline]
pub fn owner(addr: u64) -> Option<&'static Pool> {
    if let Some(slot) = SINGLE.get() {
        return Some(slot.pool());
    }
    let first = FIRST.get()?;
    if first.next.get().is_none() {
        return Some(first.slot.pool());
    }
    let owner = if of_contexts().all(|pool| pool.backend.is_primary()) {
        pools().find(|pool| pool.locate(addr) != Located::Foreign)
    } else {
        owner_among_contexts(addr)
    };
    // Where no pool has it, any of them says so.
    owner.or(Some(first.slot.pool()))
}

/// The pool that has what lies at `addr`. That of a context that was destroyed may still list addresses
/// which the driver has given to another pool since: the last one to get memory is right.
fn owner_among_contexts(addr: u64) -> Option<&'static Pool> {
    let claims = pools().filter_map(|pool| Some((pool, pool.claim(addr)?)));
    claims.max_by_key(|&(_, grown)| grown).map(|(pool, _)| pool)
}

/// Forgets all that pools hold in the primary context of a device, which was reset. Host memory, the
/// default pool's where that is not CUDA's, outlives that; it is given back.
///
/// # Errors
/// `NoDevice`: there is no such device.
pub fn device_reset(device: i32) -> Result<()> {
    let had_pools = registry::forget_device(device)?;
    if let Some(slot) = SINGLE.get() {
        return match (single_device(), device) {
            (None, 0) => slot.pool().forget(),
            (None, _) if !had_pools => check_single(device),
            (Some(_), _) if !had_pools => cuda::check_device(device),
            _ => Ok(()),
        };
    }
    if had_pools || device == 0 {
        return Ok(());
    }
    // Nothing was allocated from it; but is it there?
    let is_cuda = FIRST.get().is_some() || {
        let config = PoolConfig::default().with_environment();
        config.backend.resolved()? == BackendKind::Cuda
    };
    if is_cuda {
        cuda::check_device(device)
    } else {
        check_single(device)
    }
}

/// The CUDA device that the single pool's memory belongs to; `None`: it is no such memory.
fn single_device() -> Option<i32> {
    let config = CONFIG.get()?;
    let is_cudas = matches!(
        config.backend,
        BackendKind::CudaHost | BackendKind::CudaManaged
    );
    is_cudas.then_some(config.device)
}

/// A single pool is that of one device: of device 0, where it is not CUDA's.
fn check_single(device: i32) -> Result<()> {
    match single_device() {
        None if device == 0 => Ok(()),
        Some(only) if device == only => Ok(()),
        None => Err(no_device(device)),
        Some(only) => Err(Error::new(
            Status::NoDevice,
            text!(
                "device {device} has no default pool: luma_init made one for all, on device {only}"
            ),
        )),
    }
}

fn no_device(device: i32) -> Error {
    Error::new(
        Status::NoDevice,
        text!(
            "there is no device {device}: where the default pool is not CUDA's, there is device 0 only"
        ),
    )
}
