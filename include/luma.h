/*
 * luma: a caching allocator for accelerator memory.
 *
 * Threads: every function may be called from any thread, none from a signal handler.
 * Errors: a function that can fail returns luma_status_t, or a pointer that is NULL on failure. Both
 * set the calling thread's last status and message (luma_last_status, luma_last_error).
 * Out-parameters are written only on success. Nothing aborts; nothing is printed unless LUMA_LOG asks.
 * Structs begin with their size: initialise them with their LUMA_*_INIT macro.
 * Sizes and capacities are in bytes. Pointers to device memory are never dereferenced.
 *
 * Generated from src/ffi by cbindgen; do not edit.
 */

#ifndef LUMA_H
#define LUMA_H

#include <stddef.h>
#include <stdint.h>
#define LUMA_VERSION_MAJOR 0
#define LUMA_VERSION_MINOR 1
#define LUMA_VERSION_PATCH 0

/** For luma_default_pool: the device that is current in the calling thread. */
#define LUMA_CURRENT_DEVICE (-1)

/** The initial value of a luma_pool_config_t: every field is the default. */
#define LUMA_POOL_CONFIG_INIT \
  { sizeof(struct luma_pool_config_t), LUMA_BACKEND_AUTO, 0, LUMA_PRESET_DEFAULT, \
    LUMA_GROWTH_DEFAULT, 0, 0, 0, LUMA_SWITCH_DEFAULT, LUMA_SWITCH_DEFAULT, 0, NULL, NULL, NULL }

/** The initial value of a luma_stats_t: all zero. */
#define LUMA_STATS_INIT \
  { sizeof(struct luma_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }


/**
 * What a call answers. The numbers are part of the interface and are never reused.
 */
typedef enum luma_status_t {
  /**
   * The call did what was asked.
   */
  LUMA_SUCCESS = 0,
  /**
   * An argument is out of range, misaligned or NULL.
   */
  LUMA_ERROR_INVALID_VALUE = 1,
  /**
   * The backend and the pool have nothing left, or the limit is reached.
   */
  LUMA_ERROR_OUT_OF_MEMORY = 2,
  /**
   * The pointer is not from this pool, was freed already, or lies inside a block.
   */
  LUMA_ERROR_INVALID_POINTER = 3,
  /**
   * There is no usable backend, or no such device.
   */
  LUMA_ERROR_NO_DEVICE = 4,
  /**
   * The CUDA driver failed; the message carries its name and code.
   */
  LUMA_ERROR_DRIVER = 5,
  /**
   * This backend or driver cannot do it.
   */
  LUMA_ERROR_UNSUPPORTED = 6,
  /**
   * `luma_check` found a broken invariant.
   */
  LUMA_ERROR_CORRUPTED = 7,
  /**
   * No plan exists within the capacities.
   */
  LUMA_ERROR_INFEASIBLE = 8,
  /**
   * A bug in luma.
   */
  LUMA_ERROR_INTERNAL = 9,
} luma_status_t;

/**
 * Where a pool's memory comes from. Values of `luma_pool_config_t::backend`.
 */
typedef enum luma_backend_t {
  /**
   * CUDA where there is a driver and a device, otherwise host memory.
   */
  LUMA_BACKEND_AUTO = 0,
  /**
   * Device memory of the CUDA driver.
   */
  LUMA_BACKEND_CUDA = 1,
  /**
   * Anonymous host memory, taken from the system only as it is touched.
   */
  LUMA_BACKEND_HOST = 2,
  /**
   * Memory from the `alloc_fn` and `free_fn` of the configuration.
   */
  LUMA_BACKEND_CALLBACKS = 3,
  /**
   * Pinned host memory of the CUDA driver.
   */
  LUMA_BACKEND_CUDA_HOST = 4,
  /**
   * Managed memory of the CUDA driver.
   */
  LUMA_BACKEND_CUDA_MANAGED = 5,
  /**
   * Addresses without memory behind them, to try a program's allocations on a device of any
   * size. A pointer from it must not be dereferenced.
   */
  LUMA_BACKEND_SIMULATED = 6,
} luma_backend_t;

/**
 * A set of policies. Values of `luma_pool_config_t::preset`.
 */
typedef enum luma_preset_t {
  /**
   * luma's own choice: growing ranges of pages where the backend has them.
   */
  LUMA_PRESET_DEFAULT = 0,
  /**
   * What XLA's `BFCAllocator` does.
   */
  LUMA_PRESET_XLA = 1,
  /**
   * What luma-cuda 0.3.2 does.
   */
  LUMA_PRESET_LUMA_0_3 = 2,
} luma_preset_t;

/**
 * How a pool takes memory from its backend. Values of `luma_pool_config_t::growth`.
 */
typedef enum luma_growth_t {
  /**
   * What the preset says.
   */
  LUMA_GROWTH_DEFAULT = 0,
  /**
   * One segment of the whole limit (or of the whole device, where there is no limit).
   */
  LUMA_GROWTH_FIXED = 1,
  /**
   * Each segment is twice the one before, starting at `min_segment_bytes`.
   */
  LUMA_GROWTH_DOUBLING = 2,
  /**
   * Each segment is the request, rounded up to `min_segment_bytes`.
   */
  LUMA_GROWTH_EXACT = 3,
  /**
   * Each segment is the request rounded up to 2 MiB, and for small requests up to an eighth of
   * what the pool holds (2 MiB to 32 MiB).
   */
  LUMA_GROWTH_PROPORTIONAL = 4,
  /**
   * One range of addresses that grows by pages. Where the backend has no pages, as
   * `LUMA_GROWTH_PROPORTIONAL`.
   */
  LUMA_GROWTH_PAGED = 5,
} luma_growth_t;

/**
 * Yes, no, or what the preset says. Values of `luma_pool_config_t::release_on_failure`.
 */
typedef enum luma_switch_t {
  /**
   * What the preset says.
   */
  LUMA_SWITCH_DEFAULT = 0,
  /**
   * Yes.
   */
  LUMA_SWITCH_ON = 1,
  /**
   * No.
   */
  LUMA_SWITCH_OFF = 2,
} luma_switch_t;

/**
 * A pool. Its contents are private; every function that takes one checks it.
 */
typedef struct luma_pool_t luma_pool_t;

/**
 * Receives log messages. `level`: 1 error, 2 warning, 3 information, 4 detail. It must not throw or
 * jump out.
 */
typedef void (*luma_log_fn_t)(int level, const char *message, void *user);

/**
 * What a pool holds and did. Sizes in bytes.
 */
typedef struct luma_stats_t {
  /**
   * `sizeof(luma_stats_t)`.
   */
  size_t struct_size;
  /**
   * In blocks handed out, rounded sizes.
   */
  uint64_t allocated_bytes;
  /**
   * Obtained from the backend and not given back.
   */
  uint64_t reserved_bytes;
  /**
   * Highest `allocated_bytes` since the start or `luma_reset_peak`.
   */
  uint64_t peak_bytes;
  /**
   * Blocks handed out.
   */
  uint64_t live_blocks;
  /**
   * Free blocks that the pool keeps.
   */
  uint64_t free_blocks;
  /**
   * Regions held from the backend.
   */
  uint64_t segments;
  /**
   * Successful backend allocations, whatever the backend.
   */
  uint64_t cuda_malloc_calls;
  /**
   * Successful backend releases, whatever the backend.
   */
  uint64_t cuda_free_calls;
  /**
   * Sum of what callers asked for, live blocks.
   */
  uint64_t requested_bytes;
  /**
   * Highest `reserved_bytes` since the start or `luma_reset_peak`.
   */
  uint64_t peak_reserved_bytes;
  /**
   * The largest free block that the pool keeps.
   */
  uint64_t largest_free_block;
  /**
   * The pool's limit; 0: none.
   */
  uint64_t memory_limit;
  /**
   * Requests for memory, served or refused, zero-sized ones left out.
   */
  uint64_t alloc_calls;
  /**
   * Blocks given back by callers.
   */
  uint64_t free_calls;
  /**
   * Times cached memory was given back and the backend asked again.
   */
  uint64_t alloc_retries;
  /**
   * Requests refused for want of memory.
   */
  uint64_t out_of_memory_count;
  /**
   * Freed, waiting for another stream.
   */
  uint64_t pending_bytes;
} luma_stats_t;

/**
 * The backend's allocation function: at least `bytes` bytes aligned to 256 or more (2 MiB is
 * better), or NULL when it has none. It must not throw or jump out.
 */
typedef void *(*luma_alloc_fn_t)(size_t bytes, void *user);

/**
 * The backend's release function. It is given the pointer and size of one call of the allocation
 * function, and must not throw or jump out.
 */
typedef void (*luma_free_fn_t)(void *ptr, size_t bytes, void *user);

/**
 * How a pool is made. Begin with `LUMA_POOL_CONFIG_INIT`; zero in a field means the default.
 */
typedef struct luma_pool_config_t {
  /**
   * `sizeof(luma_pool_config_t)`.
   */
  size_t struct_size;
  /**
   * A `luma_backend_t`.
   */
  int32_t backend;
  /**
   * The device's number, from 0.
   */
  int32_t device;
  /**
   * A `luma_preset_t`.
   */
  int32_t preset;
  /**
   * A `luma_growth_t`.
   */
  int32_t growth;
  /**
   * The most bytes the pool may hold from its backend; 0: no limit.
   */
  uint64_t memory_limit;
  /**
   * The smallest segment in bytes; with `LUMA_GROWTH_DOUBLING` the first one. A multiple of 256.
   */
  uint64_t min_segment_bytes;
  /**
   * The smallest rest worth splitting off a block, in bytes. A multiple of 256.
   */
  uint64_t min_split_bytes;
  /**
   * A block at least twice the request is split whatever the rest is (XLA's rule): a
   * `luma_switch_t`.
   */
  int32_t split_when_double;
  /**
   * Wholly free segments are given back when the backend refuses: a `luma_switch_t`.
   */
  int32_t release_on_failure;
  /**
   * For the host and simulated backends: a device of this many bytes for this pool alone; 0: the
   * device that all pools share (`LUMA_HOST_CAPACITY`).
   */
  uint64_t capacity;
  /**
   * For `LUMA_BACKEND_CALLBACKS`. Called without any of luma's locks held, from any thread.
   */
  luma_alloc_fn_t alloc_fn;
  /**
   * For `LUMA_BACKEND_CALLBACKS`. Called without any of luma's locks held, from any thread.
   */
  luma_free_fn_t free_fn;
  /**
   * Handed to `alloc_fn` and `free_fn`.
   */
  void *user;
} luma_pool_config_t;

/**
 * A `CUstream` or `cudaStream_t`. NULL is the legacy default stream.
 */
typedef void *luma_stream_t;

/**
 * Is told that `bytes` bytes could not be had. Answers non-zero when it freed something and the
 * request should be tried again. It must not throw or jump out.
 */
typedef int (*luma_oom_fn_t)(size_t bytes, void *user);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Sends log messages to `callback` from now on, or with NULL to standard error again. `LUMA_LOG` says
 * which; without it a callback gets errors, warnings and information.
 *
 * The callback may be called from any thread, several at once, without any of luma's locks held; it
 * may call luma. A call that began before another callback was set may still end in the old one.
 * `level`: 1 error, 2 warning, 3 information, 4 detail. The message is valid during the call.
 *
 * Pointers:
 * `callback` may be called with `user` from any thread until the process ends.
 */
void luma_set_log_callback(luma_log_fn_t callback,
                           void *user);

/**
 * The message of this thread's last luma call, empty if it succeeded. Valid until the thread's next
 * luma call other than this one and `luma_last_status`. Never NULL.
 */
__attribute__((warn_unused_result)) const char *luma_last_error(void);

/**
 * A few words that say what a status means; of an unknown number, that it is unknown. Never NULL.
 */
__attribute__((warn_unused_result)) const char *luma_status_string(int status);

/**
 * The library's version, as "0.1.0".
 */
__attribute__((warn_unused_result)) const char *luma_version(void);

/**
 * Allocates `bytes` bytes from the default pool of the current device, aligned to 256.
 *
 * The current device is that of the calling thread's current CUDA context; a context other than the
 * device's primary one has a pool of its own. Without a current context it is device 0. The current
 * context is never changed.
 *
 * Gives NULL for no bytes, with `LUMA_SUCCESS`, and NULL on failure. The block belongs to the caller
 * until `luma_free`. Sizes are rounded up to 256; any size is safe to ask for.
 *
 * Errors: `LUMA_ERROR_OUT_OF_MEMORY`, `LUMA_ERROR_NO_DEVICE`, or what the backend fails with.
 */
__attribute__((warn_unused_result))
void *luma_alloc(size_t bytes);

/**
 * Allocates as `luma_alloc` does, at a multiple of `alignment`: 0 or a power of two; less than 256
 * is raised to 256.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for another alignment; those of `luma_alloc`.
 */
__attribute__((warn_unused_result)) void *luma_alloc_aligned(size_t bytes, size_t alignment);

/**
 * Frees a block of a default pool, whatever device is current. NULL does nothing and succeeds.
 *
 * Errors: `LUMA_ERROR_INVALID_POINTER` when `ptr` is not the start of a live block of a default
 * pool. Nothing is changed then, and the message says what lies there.
 */
enum luma_status_t luma_free(void *ptr);

/**
 * Gives all free memory of the current device's default pool back to the backend: wholly free
 * segments, and whole free pages. Gives the bytes that went; 0 on failure.
 */
size_t luma_empty_cache(void);

/**
 * Writes the statistics of the current device's default pool. `out->struct_size` must be set
 * (`LUMA_STATS_INIT`).
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE`, `LUMA_ERROR_NO_DEVICE`.
 *
 * Pointers:
 * `out` is NULL or points to a `luma_stats_t` of `out->struct_size` bytes.
 */
__attribute__((warn_unused_result)) enum luma_status_t luma_stats(struct luma_stats_t *out);

/**
 * Begins `peak_bytes` and `peak_reserved_bytes` of the current device's default pool anew, at what
 * is held now.
 */
__attribute__((warn_unused_result)) enum luma_status_t luma_reset_peak(void);

/**
 * Walks all book-keeping of the current device's default pool. Linear in the number of blocks.
 *
 * Errors: `LUMA_ERROR_CORRUPTED`; the message names the first rule that is broken.
 */
__attribute__((warn_unused_result)) enum luma_status_t luma_check(void);

/**
 * The bytes of the live block of a default pool that begins at `ptr`, at least those asked for;
 * 0: there is none.
 */
__attribute__((warn_unused_result)) size_t luma_usable_size(const void *ptr);

/**
 * Writes the bytes that the current device's default pool may still take from the device, and all
 * that the device has.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, `LUMA_ERROR_NO_DEVICE`, `LUMA_ERROR_UNSUPPORTED` where
 * the backend does not say.
 *
 * Pointers:
 * Both pointers are NULL or valid for writing.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_memory_info(size_t *free_bytes,
                                    size_t *total_bytes);

/**
 * Makes the default pool as `config` says, before its first use. Fields that are 0 are what the
 * environment says. Without this call the first use makes it.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` after the first use or for a bad field,
 * `LUMA_ERROR_NO_DEVICE`.
 *
 * Pointers:
 * `config` is NULL or points to a `luma_pool_config_t` of `config->struct_size` bytes. Callbacks in
 * it stay valid until the process ends.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_init(const struct luma_pool_config_t *config);

/**
 * Forgets everything that pools of a device's memory hold in its primary context, which was reset: its
 * memory is gone, and its pointers are refused from now on. No driver call is made for that. To be called
 * after `cudaDeviceReset` or `cuDevicePrimaryCtxReset`, and before anything else of luma. The pools go on,
 * default and other ones: their next growth makes the context again. Host memory of a default pool, which
 * survives a reset, is given back to the system.
 *
 * Errors: `LUMA_ERROR_NO_DEVICE`.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_device_reset(int device);

/**
 * The default pool of a device (`LUMA_CURRENT_DEVICE`: the calling thread's current one), made if it
 * does not exist; NULL on failure. It lives until the process ends.
 *
 * Errors: `LUMA_ERROR_NO_DEVICE`.
 */
__attribute__((warn_unused_result))
struct luma_pool_t *luma_default_pool(int device);

/**
 * The status of this thread's last luma call other than this one and `luma_last_error`.
 */
__attribute__((warn_unused_result)) enum luma_status_t luma_last_status(void);

/**
 * Makes a pool as `config` says and writes its handle to `out`. It lives until
 * `luma_pool_destroy`.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for NULL or a bad field, `LUMA_ERROR_NO_DEVICE`,
 * `LUMA_ERROR_UNSUPPORTED`.
 *
 * Pointers:
 * `config` is NULL or points to a `luma_pool_config_t` of `config->struct_size` bytes; callbacks in it
 * stay valid until the pool is destroyed. `out` is NULL or valid for writing.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_pool_create(const struct luma_pool_config_t *config,
                                    struct luma_pool_t **out);

/**
 * Gives everything back to the backend, live blocks too (their number is logged), and ends the
 * pool. Waits for backend calls of other threads. Later calls with this handle fail.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, a default pool, a pool that was destroyed, or a call
 * from inside a backend's callback.
 */
__attribute__((warn_unused_result)) enum luma_status_t luma_pool_destroy(struct luma_pool_t *pool);

/**
 * Allocates `bytes` bytes from a pool, at a multiple of `alignment` (0 or a power of two, less than
 * 256 is raised to 256), for use on `stream` (this version: NULL).
 *
 * As `luma_alloc` otherwise.
 */
__attribute__((warn_unused_result))
void *luma_pool_alloc(struct luma_pool_t *pool,
                      size_t bytes,
                      size_t alignment,
                      luma_stream_t stream);

/**
 * Frees a block of a pool. NULL does nothing and succeeds.
 *
 * Errors: `LUMA_ERROR_INVALID_POINTER` as `luma_free`; `LUMA_ERROR_INVALID_VALUE` for a bad pool.
 */
enum luma_status_t luma_pool_free(struct luma_pool_t *pool, void *ptr, luma_stream_t stream);

/**
 * Gives all free memory of a pool back to its backend. Gives the bytes that went; 0 on failure.
 */
size_t luma_pool_empty_cache(struct luma_pool_t *pool);

/**
 * Writes the statistics of a pool, as `luma_stats`.
 *
 * Pointers:
 * `out` is NULL or points to a `luma_stats_t` of `out->struct_size` bytes.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_pool_stats(struct luma_pool_t *pool,
                                   struct luma_stats_t *out);

/**
 * Walks all book-keeping of a pool, as `luma_check`.
 */
__attribute__((warn_unused_result)) enum luma_status_t luma_pool_check(struct luma_pool_t *pool);

/**
 * Sets the most bytes that a pool may hold from its backend (0: no limit), and gives back what is
 * free beyond it.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` when live blocks keep more than that in use; nothing changes
 * then.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_pool_set_limit(struct luma_pool_t *pool,
                                       uint64_t bytes);

/**
 * Whether the host may read and write the memory of a pool: 1 or 0; 0 on failure. What callbacks
 * give counts as memory that it may not.
 */
__attribute__((warn_unused_result)) int luma_pool_is_host_accessible(struct luma_pool_t *pool);

/**
 * Adds a handler that is called when a request of any pool would fail for want of memory, after
 * those that were added before. It is told the bytes asked for; non-zero means that it freed
 * something and the request should be tried again.
 *
 * Each handler is called at most once a request, without any of luma's locks held, on the thread that
 * asks. It may call luma; an allocation made inside it fails without calling handlers.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, or if it is there with the same `user`.
 *
 * Pointers:
 * `handler` may be called with `user` from any thread until it is removed, and until calls that began
 * before have ended.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_add_oom_handler(luma_oom_fn_t handler,
                                        void *user);

/**
 * Removes a handler. A call in another thread may still be running.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` if it is not there with this `user`.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_remove_oom_handler(luma_oom_fn_t handler,
                                           void *user);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LUMA_H */
