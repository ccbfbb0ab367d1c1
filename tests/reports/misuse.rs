//! Misuse: memory given twice, wrong devices, wrong pools.

use super::*;
use luma::Status;
use luma::backend::{Backend, BackendResult, Memory};
use luma::ffi::{self, luma_backend_t, luma_pool_config_t, luma_pool_t, luma_status_t};
use std::ffi::{CStr, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A source that always gives the same address.
#[derive(Debug, Default)]
struct Repeating {
    released: AtomicU64,
}

impl Backend for Repeating {
    fn name(&self) -> &'static str {
        "repeating"
    }
    fn is_host_accessible(&self) -> bool {
        false
    }
    fn memory(&self) -> BackendResult<Option<Memory>> {
        Ok(None)
    }
    fn allocate(&self, _: u64) -> BackendResult<u64> {
        Ok(1 << 40)
    }
    fn release(&self, _: u64, bytes: u64) -> BackendResult<()> {
        self.released.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

/// A source that gives a live address a second time: noticed at once, and the first block keeps its
/// memory.
#[test]
fn r55_memory_that_is_given_twice_is_noticed_at_once() {
    let backend = Arc::new(Repeating::default());
    let pool = Pool::with_backend(backend.clone(), &PoolConfig::default()).unwrap();
    let block = take(&pool, 4 * MIB);
    let error = refused(&pool, 4 * MIB);
    assert_eq!(error.status(), Status::InvalidValue);
    assert!(error.message().contains("overlaps"), "{error}");
    assert_eq!(backend.released.load(Ordering::Relaxed), 0);
    assert_eq!(pool.live_blocks().unwrap(), [(block, 4 * MIB, 4 * MIB)]);
    sound(&pool);
    pool.free(block).unwrap();
    assert_eq!(pool.empty_cache().unwrap(), 4 * MIB);
    take(&pool, 4 * MIB);
}

/// A device that the backend does not have: a clear error, never memory of another device.
#[test]
fn r60_a_device_that_is_not_there_is_an_error() {
    for device in [1, 7, -2] {
        let error = Pool::new(&PoolConfig {
            backend: luma::BackendKind::Host,
            device,
            ..PoolConfig::default()
        })
        .expect_err("the host is one device");
        assert_eq!(error.status(), Status::NoDevice);
        assert!(
            error.message().contains(&format!("device {device}")),
            "{error}"
        );
        assert!(ffi::luma_default_pool(device).is_null());
        assert_eq!(ffi::luma_last_status(), luma_status_t::LUMA_ERROR_NO_DEVICE);
    }
}

/// What a source of the tests gave and got back: address and size, in order.
#[derive(Default)]
struct Ledger {
    given: Mutex<Vec<(usize, usize)>>,
    taken_back: Mutex<Vec<(usize, usize)>>,
}

/// Below it the sources take their addresses, which nobody touches.
static NEXT: AtomicU64 = AtomicU64::new(1 << 50);

unsafe extern "C" fn give(bytes: usize, user: *mut c_void) -> *mut c_void {
    // SAFETY: `user` is the ledger that the pool was made with, which outlives it.
    let ledger = unsafe { &*user.cast::<Ledger>() };
    let addr = NEXT.fetch_add((bytes as u64).next_multiple_of(2 * MIB), Ordering::Relaxed) as usize;
    ledger.given.lock().unwrap().push((addr, bytes));
    addr as *mut c_void
}

unsafe extern "C" fn take_back(ptr: *mut c_void, bytes: usize, user: *mut c_void) {
    // SAFETY: as above.
    let ledger = unsafe { &*user.cast::<Ledger>() };
    ledger
        .taken_back
        .lock()
        .unwrap()
        .push((ptr as usize, bytes));
}

/// A pool of the C interface over a ledger.
fn pool_over(ledger: &Ledger) -> *mut luma_pool_t {
    let config = luma_pool_config_t {
        struct_size: size_of::<luma_pool_config_t>(),
        backend: luma_backend_t::LUMA_BACKEND_CALLBACKS as i32,
        device: 0,
        preset: 0,
        growth: 0,
        memory_limit: 0,
        min_segment_bytes: 0,
        min_split_bytes: 0,
        split_when_double: 0,
        release_on_failure: 0,
        capacity: 0,
        alloc_fn: Some(give),
        free_fn: Some(take_back),
        user: std::ptr::from_ref(ledger).cast_mut().cast(),
    };
    let mut pool = std::ptr::null_mut();
    // SAFETY: the configuration is whole, and the ledger outlives the pool, which the caller destroys.
    let status = unsafe { ffi::luma_pool_create(&raw const config, &raw mut pool) };
    assert_eq!(status, luma_status_t::LUMA_SUCCESS);
    pool
}

fn last_error() -> String {
    // SAFETY: the function gives a string that ends in NUL and stays until the next call.
    unsafe { CStr::from_ptr(ffi::luma_last_error()) }
        .to_str()
        .unwrap()
        .to_owned()
}

/// Two pools with functions of their own: each block goes back the way it came, and by no other.
#[test]
fn r62_each_block_goes_back_the_way_it_came() {
    let null = std::ptr::null_mut();
    let (left, right) = (Ledger::default(), Ledger::default());
    let pools = [pool_over(&left), pool_over(&right)];
    let blocks = pools.map(|pool| ffi::luma_pool_alloc(pool, 5 << 20, 0, null));
    for (pool, block) in pools.into_iter().zip(blocks.into_iter().rev()) {
        let status = ffi::luma_pool_free(pool, block, null);
        assert_eq!(status, luma_status_t::LUMA_ERROR_INVALID_POINTER);
        assert!(last_error().contains("another pool"), "{}", last_error());
    }
    for (pool, block) in pools.into_iter().zip(blocks) {
        let status = ffi::luma_pool_free(pool, block, null);
        assert_eq!(status, luma_status_t::LUMA_SUCCESS);
        assert_eq!(ffi::luma_pool_destroy(pool), luma_status_t::LUMA_SUCCESS);
    }
    for ledger in [left, right] {
        let given = ledger.given.into_inner().unwrap();
        assert_eq!(given.len(), 1);
        assert_eq!(ledger.taken_back.into_inner().unwrap(), given);
    }
}

/// A block that outlives its pool: its memory went back with the pool, once and by the pool's own
/// function, and a late free is refused everywhere.
#[test]
fn r63_a_block_that_outlives_its_pool_is_refused() {
    let null = std::ptr::null_mut();
    let ledger = Ledger::default();
    let pool = pool_over(&ledger);
    let block = ffi::luma_pool_alloc(pool, 5 << 20, 0, null);
    assert!(!block.is_null());
    assert_eq!(ffi::luma_pool_destroy(pool), luma_status_t::LUMA_SUCCESS);
    assert_eq!(
        ffi::luma_pool_free(pool, block, null),
        luma_status_t::LUMA_ERROR_INVALID_VALUE
    );
    assert_eq!(
        ffi::luma_free(block),
        luma_status_t::LUMA_ERROR_INVALID_POINTER
    );
    ffi::luma_empty_cache();
    let given = ledger.given.into_inner().unwrap();
    assert_eq!(ledger.taken_back.into_inner().unwrap(), given);
}

/// A pool that was destroyed, then a request elsewhere that fails after everything was tried: the dead
/// pool is not asked for anything.
#[test]
fn r76_a_destroyed_pool_is_not_consulted() {
    let null = std::ptr::null_mut();
    let ledger = Ledger::default();
    let pool = pool_over(&ledger);
    let block = ffi::luma_pool_alloc(pool, 5 << 20, 0, null);
    ffi::luma_pool_free(pool, block, null);
    assert_eq!(ffi::luma_pool_destroy(pool), luma_status_t::LUMA_SUCCESS);
    let calls = |ledger: &Ledger| {
        let given = ledger.given.lock().unwrap().len();
        (given, ledger.taken_back.lock().unwrap().len())
    };
    assert_eq!(calls(&ledger), (1, 1));
    assert!(ffi::luma_alloc(1 << 46).is_null());
    ffi::luma_empty_cache();
    assert_eq!(
        ffi::luma_free(block),
        luma_status_t::LUMA_ERROR_INVALID_POINTER
    );
    assert_eq!(calls(&ledger), (1, 1));
}
