/*
 * luma: a caching allocator for accelerator memory.
 *
 * Threads: every function may be called from any thread, none from a signal handler.
 * Errors: a function that can fail returns luma_status_t, or a pointer that is NULL on failure. Both
 * set the calling thread's last status and message (luma_last_status, luma_last_error).
 * Out-parameters are written only on success. Nothing aborts; nothing is printed unless LUMA_LOG or
 * LUMA_DEBUG asks.
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
  { sizeof(struct luma_stats_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    0 }

/** The initial value of a luma_oom_report_t: nothing. */
#define LUMA_OOM_REPORT_INIT \
  { sizeof(struct luma_oom_report_t), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
    { { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 }, \
      { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } }, \
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0 }

/** For pipes of nodes: the node runs on none. */
#define LUMA_NO_PIPE UINT32_MAX
/** In a report: no node, buffer or position. */
#define LUMA_NONE UINT32_MAX
/** In an array of offsets: the buffer has none. */
#define LUMA_NO_OFFSET UINT64_MAX

/** The initial value of a luma_spill_cost_t: 2 cycles a byte and 150 each way, on pipes 3 and 2. */
#define LUMA_SPILL_COST_INIT \
  { sizeof(struct luma_spill_cost_t), 2, 150, 2, 150, 3, 2, 0, 0 }

/** The initial value of a luma_graph_t: no nodes. */
#define LUMA_GRAPH_INIT \
  { sizeof(struct luma_graph_t), NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL }

/** The initial value of a luma_plan_options_t: every option is the default. */
#define LUMA_PLAN_OPTIONS_INIT \
  { sizeof(struct luma_plan_options_t), LUMA_LEVEL_HEURISTIC, 0, 0, 0, 0, 0, 0, NULL, NULL }

/** The initial value of a luma_plan_view_t: nothing. */
#define LUMA_PLAN_VIEW_INIT \
  { sizeof(struct luma_plan_view_t), NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0, \
    0, 0, 0, 0, 0, 0 }

/** The initial value of a luma_plan_report_t: nothing. */
#define LUMA_PLAN_REPORT_INIT \
  { sizeof(struct luma_plan_report_t), 0, 0, 0, 0, 0, 0, 0 }

/** The initial value of a luma_place_options_t: every option is the default. */
#define LUMA_PLACE_OPTIONS_INIT \
  { sizeof(struct luma_place_options_t), 0, 0, 0, 0, 0, 0, NULL, NULL }

/** The initial value of a luma_placement_t: nothing. */
#define LUMA_PLACEMENT_INIT \
  { sizeof(struct luma_placement_t), 0, 0, 0, 0 }


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
 * What would have made a request fit. Values of `luma_oom_report_t::action`.
 */
typedef enum luma_oom_action_t {
  /**
   * Nothing that is known would have.
   */
  LUMA_OOM_NONE = 0,
  /**
   * The device has less than was asked for: `action_bytes`, or 0 if that is not known.
   */
  LUMA_OOM_ASK_FOR_LESS = 1,
  /**
   * A limit of `action_bytes` is enough (`luma_pool_set_limit`).
   */
  LUMA_OOM_RAISE_LIMIT = 2,
  /**
   * Freeing the block at `action_address`, of `action_bytes`, is enough. It is the smallest of those
   * of which that is known.
   */
  LUMA_OOM_FREE_BLOCK = 3,
  /**
   * The end of the work of the stream `action_stream`, which `action_bytes` wait for, is enough.
   */
  LUMA_OOM_WAIT_FOR_STREAM = 4,
  /**
   * Giving back what another pool of the device holds and does not use is enough:
   * `luma_pool_empty_cache(action_pool)` gives `action_bytes`.
   */
  LUMA_OOM_EMPTY_OTHER_POOL = 5,
  /**
   * Blocks must be freed, and no single one is known to be enough; `action_bytes` are lacking.
   */
  LUMA_OOM_FREE_SEVERAL = 6,
} luma_oom_action_t;

/**
 * What a node of a graph is. Values of `luma_node_t::kind`.
 */
typedef enum luma_node_kind_t {
  /**
   * It computes or copies.
   */
  LUMA_NODE_OPERATION = 0,
  /**
   * An operation that copies from outside into the buffers that it uses: these need not be
   * written out when they are spilled.
   */
  LUMA_NODE_COPY_IN = 1,
  /**
   * Its buffer comes into being.
   */
  LUMA_NODE_ALLOC = 2,
  /**
   * Its buffer is gone.
   */
  LUMA_NODE_FREE = 3,
  /**
   * Its buffer leaves its memory. In plans only.
   */
  LUMA_NODE_SPILL_OUT = 4,
  /**
   * Its buffer comes back. In plans only.
   */
  LUMA_NODE_SPILL_IN = 5,
} luma_node_kind_t;

/**
 * What an operation does with a buffer. Values of `luma_use_t::access`.
 */
typedef enum luma_access_t {
  /**
   * Perhaps both; what is known of the copy outside is not changed by it.
   */
  LUMA_ACCESS_UNKNOWN = 0,
  /**
   * It reads.
   */
  LUMA_ACCESS_READ = 1,
  /**
   * It writes, which makes a copy outside stale.
   */
  LUMA_ACCESS_WRITE = 2,
  /**
   * It reads and writes.
   */
  LUMA_ACCESS_READ_WRITE = 3,
} luma_access_t;

/**
 * How much effort a plan is worth. Values of `luma_plan_options_t::level`.
 */
typedef enum luma_level_t {
  /**
   * One pass over the order, in near-linear time.
   */
  LUMA_LEVEL_HEURISTIC = 0,
  /**
   * The fewest bytes that the order allows, with a proof where there is one.
   */
  LUMA_LEVEL_EXACT = 1,
  /**
   * Order and spills together, better for as long as there is time. Without `reorder` as
   * `LUMA_LEVEL_EXACT`.
   */
  LUMA_LEVEL_SEARCH = 2,
} luma_level_t;

/**
 * Why planning or placing ended.
 */
typedef enum luma_stopped_t {
  /**
   * It was done.
   */
  LUMA_STOPPED_FINISHED = 0,
  /**
   * The time limit was reached.
   */
  LUMA_STOPPED_TIME = 1,
  /**
   * The caller's callback said so.
   */
  LUMA_STOPPED_CALLER = 2,
  /**
   * The work limit was reached.
   */
  LUMA_STOPPED_WORK = 3,
} luma_stopped_t;

/**
 * The rule that a plan breaks. They are checked in this order.
 */
typedef enum luma_violation_t {
  /**
   * None: the plan is valid.
   */
  LUMA_VIOLATION_NONE = 0,
  /**
   * The graph itself is no graph.
   */
  LUMA_VIOLATION_GRAPH = 1,
  /**
   * The order names a node that neither the graph nor the spills have.
   */
  LUMA_VIOLATION_UNKNOWN_NODE = 2,
  /**
   * A node is in the order twice.
   */
  LUMA_VIOLATION_DUPLICATE_NODE = 3,
  /**
   * A node of the graph or of a spill is not in the order.
   */
  LUMA_VIOLATION_MISSING_NODE = 4,
  /**
   * A spill or an offset is of a buffer that the graph does not have.
   */
  LUMA_VIOLATION_UNKNOWN_BUFFER = 5,
  /**
   * A buffer has no offset.
   */
  LUMA_VIOLATION_MISSING_OFFSET = 6,
  /**
   * A buffer does not lie inside its memory.
   */
  LUMA_VIOLATION_OFFSET_RANGE = 7,
  /**
   * A node comes before one that it depends on.
   */
  LUMA_VIOLATION_EDGE_ORDER = 8,
  /**
   * ALLOC, SPILL_OUT, SPILL_IN and FREE of a spill are not in this order.
   */
  LUMA_VIOLATION_SPILL_EDGE = 9,
  /**
   * A buffer is spilled while it is spilled already.
   */
  LUMA_VIOLATION_NESTED_SPILL = 10,
  /**
   * An operation runs between the SPILL_OUT and the SPILL_IN of its buffer.
   */
  LUMA_VIOLATION_USE_WHILE_SPILLED = 11,
  /**
   * An operation runs before the ALLOC or after the FREE of its buffer.
   */
  LUMA_VIOLATION_USE_NOT_RESIDENT = 12,
  /**
   * Two buffers are resident in a memory that may hold one at a time.
   */
  LUMA_VIOLATION_SINGLE = 13,
  /**
   * More bytes are resident than the memory has.
   */
  LUMA_VIOLATION_OVER_CAPACITY = 14,
  /**
   * Two residents of a memory share bytes.
   */
  LUMA_VIOLATION_OVERLAP = 15,
  /**
   * Spills are not numbered by the position of their SPILL_OUT, or their nodes by the spill.
   */
  LUMA_VIOLATION_SPILL_NUMBER = 16,
  /**
   * The order of the graph's own nodes is not the one that was given.
   */
  LUMA_VIOLATION_ORDER_CHANGED = 17,
} luma_violation_t;

/**
 * Which dependencies of spills are wanted. Codes of `luma_plan_edges`.
 */
typedef enum luma_edge_set_t {
  /**
   * All: ALLOC, every earlier user of the buffer and its previous SPILL_IN before the SPILL_OUT; that
   * before the SPILL_IN; that before every later user and FREE. They can be as many as users times
   * spills.
   */
  LUMA_EDGES_ALL = 0,
  /**
   * Those of them that do not follow from the others and from the graph: at most as many as uses
   * and spills.
   */
  LUMA_EDGES_DIRECT = 1,
} luma_edge_set_t;

/**
 * A plan. Its contents are read with `luma_plan_view` and `luma_plan_edges`.
 */
typedef struct luma_plan_t luma_plan_t;

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
   * Freed, and not to be used yet: in the order of a stream whose work is not known to be done (that
   * stream may use it again, others not yet), or in the quarantine of checked mode (`LUMA_DEBUG`).
   */
  uint64_t pending_bytes;
  /**
   * Calls of out-of-memory handlers.
   */
  uint64_t handler_calls;
  /**
   * Events recorded on streams.
   */
  uint64_t event_records;
  /**
   * Times an event was asked whether its work is done.
   */
  uint64_t event_queries;
  /**
   * Times a stream was made to wait for the work of another one.
   */
  uint64_t stream_waits;
  /**
   * Times a request that would have failed waited for work to end.
   */
  uint64_t oom_waits;
  /**
   * How long those waits took in all, in nanoseconds.
   */
  uint64_t oom_wait_ns;
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

/**
 * What of a pool's memory waits for the work of a stream.
 */
typedef struct luma_oom_stream_t {
  /**
   * The stream: one more than what `cuStreamGetId` says; 0 is the legacy default stream. Where the driver
   * does not number streams, its handle. `UINT64_MAX - 1`: all streams, whose work is waited for by what was
   * freed in the place of `cuMemFree` (docs/interposition.md).
   */
  uint64_t stream_id;
  /**
   * The bytes that wait.
   */
  uint64_t bytes;
  /**
   * The blocks that wait.
   */
  uint64_t blocks;
} luma_oom_stream_t;

/**
 * A request that failed for want of memory, and what its pool held at that moment. Sizes in bytes.
 */
typedef struct luma_oom_report_t {
  /**
   * `sizeof(luma_oom_report_t)`.
   */
  size_t struct_size;
  /**
   * What was asked for.
   */
  uint64_t requested_bytes;
  /**
   * That, rounded up to 256; `UINT64_MAX` where no number holds it.
   */
  uint64_t rounded_bytes;
  /**
   * The alignment that was asked for, at least 256.
   */
  uint64_t alignment;
  /**
   * In blocks handed out, rounded sizes.
   */
  uint64_t allocated_bytes;
  /**
   * Blocks handed out.
   */
  uint64_t live_blocks;
  /**
   * Obtained from the backend and not given back.
   */
  uint64_t reserved_bytes;
  /**
   * The largest free block.
   */
  uint64_t largest_free_block;
  /**
   * Free, in wholly free segments.
   */
  uint64_t idle_bytes;
  /**
   * Free, in segments with live blocks.
   */
  uint64_t stuck_bytes;
  /**
   * Freed, and waiting for streams.
   */
  uint64_t pending_bytes;
  /**
   * Streams that something waits for.
   */
  uint64_t pending_streams;
  /**
   * Those with the most bytes, the most first; entries beyond `pending_streams` are zero.
   */
  struct luma_oom_stream_t pending[8];
  /**
   * The pool's limit; 0: none.
   */
  uint64_t memory_limit;
  /**
   * What the device said that it still has, where `device_is_known`.
   */
  uint64_t device_free_bytes;
  /**
   * All that the device has; 0: it does not say.
   */
  uint64_t device_total_bytes;
  /**
   * Times that cached memory was given back and the backend asked again.
   */
  uint64_t give_backs;
  /**
   * Times that other threads or the device were waited for.
   */
  uint64_t waits;
  /**
   * How long, in nanoseconds.
   */
  uint64_t wait_ns;
  /**
   * Out-of-memory handlers called.
   */
  uint64_t handler_calls;
  /**
   * Whether the device said what it has free: 1 or 0.
   */
  int32_t device_is_known;
  /**
   * A `luma_backend_t`.
   */
  int32_t backend;
  /**
   * The device's number.
   */
  int32_t device;
  /**
   * A `luma_oom_action_t`: the single action that would have made the request fit.
   */
  int32_t action;
  /**
   * As the action says.
   */
  uint64_t action_bytes;
  /**
   * As the action says; NULL with other actions.
   */
  void *action_address;
  /**
   * As the action says; NULL with other actions.
   */
  struct luma_pool_t *action_pool;
  /**
   * As the action says.
   */
  uint64_t action_stream;
} luma_oom_report_t;

/**
 * A node. Its id is its index.
 */
typedef struct luma_node_t {
  /**
   * A `luma_node_kind_t`.
   */
  int32_t kind;
  /**
   * The buffer of an ALLOC, a FREE or a spill; operations have `luma_use_t` instead.
   */
  uint32_t buffer;
  /**
   * What it runs on, one node at a time: any number, or `LUMA_NO_PIPE`.
   */
  uint32_t pipe;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * How long it runs.
   */
  uint64_t cycles;
} luma_node_t;

/**
 * An operation uses a buffer, as an input or an output.
 */
typedef struct luma_use_t {
  /**
   * The operation.
   */
  uint32_t node;
  /**
   * The buffer.
   */
  uint32_t buffer;
  /**
   * A `luma_access_t`.
   */
  int32_t access;
} luma_use_t;

/**
 * A dependency: `from` runs before `to`.
 */
typedef struct luma_edge_t {
  /**
   * The node that runs first.
   */
  uint32_t from;
  /**
   * The node that depends on it.
   */
  uint32_t to;
} luma_edge_t;

/**
 * A buffer. Its id is its index.
 */
typedef struct luma_buffer_t {
  /**
   * Bytes; 0 is legal.
   */
  uint64_t size;
  /**
   * The index of its memory.
   */
  uint32_t memory;
  /**
   * 0.
   */
  uint32_t reserved;
} luma_buffer_t;

/**
 * A memory.
 */
typedef struct luma_memory_t {
  /**
   * Its name in messages; NULL: its index.
   */
  const char *name;
  /**
   * Bytes.
   */
  uint64_t capacity;
  /**
   * 1: it holds one buffer at a time, whatever the sizes; 0: any number.
   */
  int32_t single;
  /**
   * 0.
   */
  int32_t reserved;
} luma_memory_t;

/**
 * What spills cost in cycles. Begin with `LUMA_SPILL_COST_INIT`, which has the costs of the contest that
 * the kernels of the NPU come from.
 */
typedef struct luma_spill_cost_t {
  /**
   * `sizeof(luma_spill_cost_t)`.
   */
  size_t struct_size;
  /**
   * Cycles of a SPILL_OUT for each byte.
   */
  uint64_t out_cycles_per_byte;
  /**
   * Cycles of a SPILL_OUT besides.
   */
  uint64_t out_fixed_latency;
  /**
   * Cycles of a SPILL_IN for each byte.
   */
  uint64_t in_cycles_per_byte;
  /**
   * Cycles of a SPILL_IN besides.
   */
  uint64_t in_fixed_latency;
  /**
   * The pipe of every SPILL_OUT, or `LUMA_NO_PIPE`.
   */
  uint32_t out_pipe;
  /**
   * The pipe of every SPILL_IN, or `LUMA_NO_PIPE`.
   */
  uint32_t in_pipe;
  /**
   * 0: a SPILL_OUT takes no cycles where the copy outside is what the buffer holds; 1: it takes
   * them all the same.
   */
  int32_t charge_backed_out;
  /**
   * 0.
   */
  int32_t reserved;
} luma_spill_cost_t;

/**
 * A graph: nodes that use buffers in memories. Begin with `LUMA_GRAPH_INIT`. The arrays are read during
 * the call only and never changed; an empty one may be NULL.
 *
 * Each buffer has one ALLOC and one FREE. That a buffer's ALLOC runs before its uses and these before
 * its FREE is understood and needs no edges.
 */
typedef struct luma_graph_t {
  /**
   * `sizeof(luma_graph_t)`.
   */
  size_t struct_size;
  /**
   * The nodes, by id.
   */
  const struct luma_node_t *nodes;
  /**
   * Their number.
   */
  size_t node_count;
  /**
   * Which operations use which buffers, in any order.
   */
  const struct luma_use_t *uses;
  /**
   * Their number.
   */
  size_t use_count;
  /**
   * The dependencies, in any order.
   */
  const struct luma_edge_t *edges;
  /**
   * Their number.
   */
  size_t edge_count;
  /**
   * The buffers, by id.
   */
  const struct luma_buffer_t *buffers;
  /**
   * Their number.
   */
  size_t buffer_count;
  /**
   * The memories, by index.
   */
  const struct luma_memory_t *memories;
  /**
   * Their number.
   */
  size_t memory_count;
  /**
   * What spills cost; NULL: as `LUMA_SPILL_COST_INIT` says.
   */
  const struct luma_spill_cost_t *cost;
} luma_graph_t;

/**
 * How far a search is.
 */
typedef struct luma_progress_t {
  /**
   * The size of this struct in the library.
   */
  size_t struct_size;
  /**
   * The best so far: extra bytes of a plan, or the height of a placement.
   */
  uint64_t best;
  /**
   * Nothing is below it.
   */
  uint64_t lower_bound;
  /**
   * Work done, in units of the level's own.
   */
  uint64_t work;
} luma_progress_t;

/**
 * Is told how far a search is, at every improvement and now and then besides. Answers non-zero to
 * stop: the best so far is the result. Threads of the search may call it, one at a time or several
 * at once. It must not throw or jump out.
 */
typedef int (*luma_progress_fn_t)(const struct luma_progress_t *progress, void *user);

/**
 * How a graph is planned. Begin with `LUMA_PLAN_OPTIONS_INIT`; zero in a field means the default.
 */
typedef struct luma_plan_options_t {
  /**
   * `sizeof(luma_plan_options_t)`.
   */
  size_t struct_size;
  /**
   * A `luma_level_t`.
   */
  int32_t level;
  /**
   * 1: the plan may have another order that the dependencies allow: any one where orders are
   * searched, otherwise the greedy one if that is better; 0: it keeps the given one.
   */
  int32_t reorder;
  /**
   * Milliseconds after which the best so far is the result. 0: 10,000, or none with a work limit;
   * `UINT64_MAX`: none.
   */
  uint64_t time_limit_ms;
  /**
   * Work after which the best so far is the result, the same on every machine; 0: no limit.
   */
  uint64_t work_limit;
  /**
   * Equal seeds give equal sequences of improvements.
   */
  uint64_t seed;
  /**
   * Threads to use; the sequence of improvements does not depend on it. 0: as many as there are
   * processors.
   */
  uint32_t threads;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * Told how far it is; or NULL.
   */
  luma_progress_fn_t progress;
  /**
   * Handed to `progress`.
   */
  void *user;
} luma_plan_options_t;

/**
 * A spill: a buffer leaves and comes back to another place. Spill `k` of a graph of `N` nodes is the
 * nodes `N + 2k` and `N + 2k + 1`; they are numbered by the position of the first.
 */
typedef struct luma_spill_t {
  /**
   * The buffer.
   */
  uint32_t buffer;
  /**
   * The SPILL_OUT.
   */
  uint32_t out_node;
  /**
   * The SPILL_IN.
   */
  uint32_t in_node;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * Its first byte in the memory from the SPILL_IN on.
   */
  uint64_t offset;
} luma_spill_t;

/**
 * Where a buffer is from its ALLOC on.
 */
typedef struct luma_allocation_t {
  /**
   * The buffer.
   */
  uint32_t buffer;
  /**
   * The index of its memory.
   */
  uint32_t memory;
  /**
   * Its first byte in the memory.
   */
  uint64_t offset;
  /**
   * Its bytes.
   */
  uint64_t size;
} luma_allocation_t;

/**
 * What is in a plan. `luma_check_plan` reads `order`, `offsets` and `spills` of it, so that plans from
 * elsewhere can be checked as well; begin with `LUMA_PLAN_VIEW_INIT`.
 */
typedef struct luma_plan_view_t {
  /**
   * `sizeof(luma_plan_view_t)`.
   */
  size_t struct_size;
  /**
   * The ids of all nodes, spills' included, in the order in which they run.
   */
  const uint32_t *order;
  /**
   * Their number.
   */
  size_t order_count;
  /**
   * Where each buffer is from its ALLOC on, by buffer.
   */
  const uint64_t *offsets;
  /**
   * Their number, one a buffer.
   */
  size_t offset_count;
  /**
   * The spills, by number.
   */
  const struct luma_spill_t *spills;
  /**
   * Their number.
   */
  size_t spill_count;
  /**
   * The same as `offsets`, with memory and size, by buffer.
   */
  const struct luma_allocation_t *allocations;
  /**
   * Their number, one a buffer.
   */
  size_t allocation_count;
  /**
   * The nodes of the spills; the id of the first is the number of the graph's nodes.
   */
  const struct luma_node_t *added_nodes;
  /**
   * Their number, two a spill.
   */
  size_t added_node_count;
  /**
   * The most bytes resident at once, by memory.
   */
  const uint64_t *peaks;
  /**
   * Their number, one a memory.
   */
  size_t peak_count;
  /**
   * Bytes that the spills move.
   */
  uint64_t extra_bytes;
  /**
   * No plan (of this order, where that was kept) moves fewer bytes.
   */
  uint64_t lower_bound;
  /**
   * Cycles of all spills together.
   */
  uint64_t spill_cycles;
  /**
   * The cycle in which the last node ends.
   */
  uint64_t makespan;
  /**
   * 1: it is proved that no plan (of this order, where that was kept) moves fewer bytes; 0: not.
   */
  int32_t proved;
  /**
   * Why planning ended: a `luma_stopped_t`.
   */
  int32_t stopped;
} luma_plan_view_t;

/**
 * What a check found. Begin with `LUMA_PLAN_REPORT_INIT`.
 */
typedef struct luma_plan_report_t {
  /**
   * `sizeof(luma_plan_report_t)`.
   */
  size_t struct_size;
  /**
   * The rule that is broken: a `luma_violation_t`.
   */
  int32_t violation;
  /**
   * The node that breaks it, or `LUMA_NONE`.
   */
  uint32_t node;
  /**
   * The buffer that it is about, or `LUMA_NONE`.
   */
  uint32_t buffer;
  /**
   * Where in the plan's order, from 0, or `LUMA_NONE`.
   */
  uint32_t position;
  /**
   * Of a valid plan: bytes that the spills move.
   */
  uint64_t extra_bytes;
  /**
   * Of a valid plan: cycles of all spills together.
   */
  uint64_t spill_cycles;
  /**
   * Of a valid plan: the cycle in which the last node ends.
   */
  uint64_t makespan;
} luma_plan_report_t;

/**
 * A buffer that is there from `lower` up to but not in `upper`, in any unit of time.
 */
typedef struct luma_lifetime_t {
  /**
   * When it begins.
   */
  uint64_t lower;
  /**
   * When it has ended; not before `lower`.
   */
  uint64_t upper;
  /**
   * Bytes; 0 is legal.
   */
  uint64_t size;
} luma_lifetime_t;

/**
 * How lifetimes are placed. Begin with `LUMA_PLACE_OPTIONS_INIT`; zero in a field means the default.
 */
typedef struct luma_place_options_t {
  /**
   * `sizeof(luma_place_options_t)`.
   */
  size_t struct_size;
  /**
   * Bytes that there are: any placement within them will do. 0: as low as can be found.
   */
  uint64_t capacity;
  /**
   * As in `luma_plan_options_t`.
   */
  uint64_t time_limit_ms;
  /**
   * As in `luma_plan_options_t`.
   */
  uint64_t work_limit;
  /**
   * As in `luma_plan_options_t`.
   */
  uint64_t seed;
  /**
   * As in `luma_plan_options_t`.
   */
  uint32_t threads;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * Told how far it is; or NULL.
   */
  luma_progress_fn_t progress;
  /**
   * Handed to `progress`.
   */
  void *user;
} luma_place_options_t;

/**
 * What placing gave. Begin with `LUMA_PLACEMENT_INIT`.
 */
typedef struct luma_placement_t {
  /**
   * `sizeof(luma_placement_t)`.
   */
  size_t struct_size;
  /**
   * The end of the highest buffer.
   */
  uint64_t height;
  /**
   * No placement is lower.
   */
  uint64_t lower_bound;
  /**
   * 1: it is proved that no placement is lower; 0: not.
   */
  int32_t proved;
  /**
   * Why placing ended: a `luma_stopped_t`.
   */
  int32_t stopped;
} luma_placement_t;

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
 * Walks all book-keeping of the current device's default pool. Linear in the number of blocks. In checked
 * mode (`LUMA_DEBUG`) it also looks at the blocks in quarantine.
 *
 * Errors: `LUMA_ERROR_CORRUPTED`; the message names the first rule that is broken, or the first write to
 * a freed block that was found since it last named one.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_check(void);

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
 * Allocates `bytes` bytes from the default pool of the current device, aligned to 256, for use in the
 * order of `stream`, a `CUstream` or `cudaStream_t` that lives. Does not wait for it.
 *
 * What was queued on `stream` before this call may still be using the memory, for a block that it has
 * freed; what is queued on it afterwards has the block for itself. Other streams must be made to
 * wait for `stream` before they use it. A stream is made to wait for another one's work only where
 * neither free memory nor more of the device's can serve the request.
 *
 * On a stream that is being captured, the block belongs to the graph: it serves nobody else until the
 * graph and all that was made of it are gone. Nothing is asked of the driver there that would end the
 * capture, and nothing is given back.
 *
 * NULL is the legacy default stream, and the call is `luma_alloc`. Over host memory the stream means
 * nothing. Errors: as `luma_alloc`; what the driver says of the stream.
 */
__attribute__((warn_unused_result))
void *luma_alloc_async(size_t bytes,
                       luma_stream_t stream);

/**
 * Frees a block of a default pool in the order of `stream`, which lives: what was queued on it before may
 * still use the block. Work on other streams has ended, or `stream` was made to wait for it, or they were
 * named by `luma_record_stream`. NULL for `ptr` does nothing and succeeds.
 *
 * The same stream gets the memory again at once, other streams when its work is known to be done. The
 * stream may be destroyed after the call.
 *
 * Errors: as `luma_free`; what the driver says of the stream. Nothing is freed then.
 */
enum luma_status_t luma_free_async(void *ptr,
                                   luma_stream_t stream);

/**
 * Says that work on `stream`, which lives, uses a live block of any pool too. When the block is freed, in
 * whatever order, it waits also for what is queued on `stream` by then.
 *
 * The stream may be destroyed before the block is freed; the memory then comes back when everything in
 * the context is done, at the latest when it is needed. `luma_release_stream` spares that. NULL for `ptr`
 * does nothing and succeeds.
 *
 * Errors: `LUMA_ERROR_INVALID_POINTER` when `ptr` is not the start of a live block; what the driver says
 * of the stream.
 */
enum luma_status_t luma_record_stream(void *ptr,
                                      luma_stream_t stream);

/**
 * Says that a stream is about to be destroyed. Not needed; memory that waits for the stream then comes
 * back as soon as its work is done, even if no call names the stream any more.
 *
 * Errors: what the driver says of the stream.
 */
enum luma_status_t luma_release_stream(luma_stream_t stream);

/**
 * Allocates `size` bytes from the default pool of `device`, in the order of `stream`, as
 * `luma_alloc_async` does: the first function of PyTorch's `CUDAPluggableAllocator`. The device need not
 * be the current one, and the calling thread's current context is the same afterwards.
 *
 * Gives NULL for no bytes, with `LUMA_SUCCESS`, and NULL on failure. PyTorch does not look whether it got
 * NULL: what then uses the tensor fails, at some later place. So every failure is logged as well
 * (`LUMA_LOG=error`).
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for a negative size; those of `luma_alloc_async` and
 * `luma_default_pool`.
 */
__attribute__((warn_unused_result))
void *luma_torch_alloc(ptrdiff_t size,
                       int device,
                       luma_stream_t stream);

/**
 * Frees a block of a default pool in the order of `stream`, as `luma_free_async` does: the second function
 * of PyTorch's `CUDAPluggableAllocator`. Where nothing can be freed in that order, since the driver has shut
 * down or the stream's capture is broken, the memory waits for all work of its context instead of being
 * lost. NULL for `ptr` does nothing.
 *
 * `size` and `device` are what PyTorch passes, and mean nothing here: the block knows both. `stream` is the
 * one that the block was allocated on, which PyTorch remembers: it must live. A free that fails changes
 * nothing, is logged, and leaves the thread's last status and message.
 *
 * Errors: `LUMA_ERROR_INVALID_POINTER` when `ptr` is not the start of a live block of a default pool.
 */
void luma_torch_free(void *ptr,
                     ptrdiff_t size,
                     int device,
                     luma_stream_t stream);

/**
 * Says that work on `stream` uses a block of a default pool, too, as `luma_record_stream` does: for
 * `set_record_stream_fn` of PyTorch's allocator. Without it `Tensor.record_stream` does nothing, and memory
 * that was used on two streams may serve one before the other is done.
 *
 * A failure is logged, and leaves the thread's last status and message: those of `luma_record_stream`.
 */
void luma_torch_record_stream(void *ptr,
                              luma_stream_t stream);

/**
 * Gives all free memory of all default pools back to the driver: for `set_reset_fn` of PyTorch's allocator,
 * which `torch.cuda.empty_cache()` calls.
 *
 * A failure is logged, and leaves the thread's last status and message; the other pools are emptied
 * nevertheless.
 */
void luma_torch_empty_cache(void);

/**
 * Limits the default pool of `device` to a part of the device's memory, between 0 and 1: for
 * `set_memory_fraction_fn` of PyTorch's allocator, which `torch.cuda.set_per_process_memory_fraction` calls.
 * 0 leaves no memory at all.
 *
 * A failure is logged, and leaves the thread's last status and message: `LUMA_ERROR_INVALID_VALUE` for
 * another number, or when live blocks keep more than that in use; those of `luma_default_pool` and
 * `luma_memory_info`. Nothing changes then.
 */
void luma_torch_set_memory_fraction(double fraction,
                                    int device);

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
 * Gives everything back to the backend, live blocks too (their number is logged, and in checked mode
 * each of them), and ends the pool. Waits for backend calls of other threads. Later calls with this handle fail.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, a default pool, a pool that was destroyed, or a call
 * from inside a backend's callback.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_pool_destroy(struct luma_pool_t *pool);

/**
 * Allocates `bytes` bytes from a pool, at a multiple of `alignment` (0 or a power of two, less than
 * 256 is raised to 256), for use in the order of `stream`.
 *
 * As `luma_alloc_async` otherwise; with NULL, the legacy default stream, as `luma_alloc`. A pool over
 * callbacks takes NULL only (`LUMA_ERROR_UNSUPPORTED`).
 */
__attribute__((warn_unused_result))
void *luma_pool_alloc(struct luma_pool_t *pool,
                      size_t bytes,
                      size_t alignment,
                      luma_stream_t stream);

/**
 * Frees a block of a pool in the order of `stream`, as `luma_free_async`; with NULL as `luma_free`. A
 * NULL pointer does nothing and succeeds.
 *
 * Errors: `LUMA_ERROR_INVALID_POINTER` as `luma_free`; `LUMA_ERROR_INVALID_VALUE` for a bad pool.
 */
enum luma_status_t luma_pool_free(struct luma_pool_t *pool,
                                  void *ptr,
                                  luma_stream_t stream);

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

/**
 * Writes what the calling thread's last request that failed with `LUMA_ERROR_OUT_OF_MEMORY` asked for,
 * what its pool held then, what was tried, and which single action would have made it fit. The report
 * stays until the thread's next such failure; calls that succeed keep it. `out->struct_size` must be
 * set (`LUMA_OOM_REPORT_INIT`).
 *
 * A request that failed because the host had no memory left for luma's book-keeping leaves no report.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` when no request of this thread has failed so.
 *
 * Pointers:
 * `out` is NULL or points to a `luma_oom_report_t` of `out->struct_size` bytes.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_oom_report(struct luma_oom_report_t *out);

/**
 * Gives every buffer of a graph a place in its memory, and spills where they do not all fit. Writes
 * the plan to `out`; it lives until `luma_plan_free`.
 *
 * `order` has the ids of all nodes, each after those that it depends on; NULL with a count of 0 means
 * the greedy one: of the nodes that wait for nothing a FREE first, then an operation, then an ALLOC,
 * and of these the least id. The plan keeps the order, unless the options let it choose another.
 * `options` may be NULL: every option is the default.
 *
 * Bytes moved by a spill: the buffer's size if some COPY_IN uses it, for it then has a copy outside,
 * and twice its size if not. An operation that is known to write the buffer makes the copy stale
 * until the next COPY_IN; one whose access is unknown does not.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, bad fields, a graph that is none (unknown nodes, buffers
 * or memories; an ALLOC or a FREE that is missing or there twice; a use outside of its buffer's life; a
 * cycle; sums that overflow), and an order that is incomplete, has repeats or is not topological;
 * `LUMA_ERROR_INFEASIBLE` for a buffer larger than its memory, and an operation whose buffers cannot be
 * resident together. The message names the node, the buffer and the sizes.
 *
 * Pointers:
 * `graph` and `options` are NULL or point to structs of their `struct_size`, whose arrays hold as many
 * elements as they say; `order` holds `order_count` ids; `out` is NULL or valid for writing.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_plan_spills(const struct luma_graph_t *graph,
                                    const uint32_t *order,
                                    size_t order_count,
                                    const struct luma_plan_options_t *options,
                                    struct luma_plan_t **out);

/**
 * `luma_plan_spills` by another name.
 *
 * Pointers:
 * As `luma_plan_spills`.
 */
__attribute__((warn_unused_result))
enum luma_status_t plan_spills(const struct luma_graph_t *graph,
                               const uint32_t *order,
                               size_t order_count,
                               const struct luma_plan_options_t *options,
                               struct luma_plan_t **out);

/**
 * Writes what a plan holds. The arrays belong to the plan, do not change, and stay valid until
 * `luma_plan_free`.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, `LUMA_ERROR_INVALID_POINTER` if it is no plan.
 *
 * Pointers:
 * `out` is NULL or points to a `luma_plan_view_t` of `out->struct_size` bytes.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_plan_view(const struct luma_plan_t *plan,
                                  struct luma_plan_view_t *out);

/**
 * Writes the dependencies that a plan's spills add to those of the graph: the `luma_edge_set_t` says
 * which, in the order of the spills (all) or of the plan (direct). They are made at the first call and
 * stay valid until `luma_plan_free`.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for NULL and a number that means nothing,
 * `LUMA_ERROR_INVALID_POINTER` if it is no plan, `LUMA_ERROR_OUT_OF_MEMORY`.
 *
 * Pointers:
 * `edges` and `count` are NULL or valid for writing.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_plan_edges(const struct luma_plan_t *plan,
                                   int edge_set,
                                   const struct luma_edge_t **edges,
                                   size_t *count);

/**
 * Ends a plan and the arrays that it gave out. NULL does nothing and succeeds.
 *
 * Errors: `LUMA_ERROR_INVALID_POINTER` if it is no plan, or was freed already.
 */
enum luma_status_t luma_plan_free(struct luma_plan_t *plan);

/**
 * Cycles of moving `size` bytes one way: `size * cycles_per_byte + fixed_latency`, or `UINT64_MAX` where
 * that is more. The contest charges 2 and 150, and nothing for the SPILL_OUT of a buffer that has a
 * copy outside.
 */
__attribute__((warn_unused_result))
uint64_t luma_spill_cycles(uint64_t size,
                           uint64_t cycles_per_byte,
                           uint64_t fixed_latency);

/**
 * Bytes moved by a spill of a buffer of `size` bytes: `size` if it has a copy outside
 * (`has_copy` is not 0), otherwise twice that, or `UINT64_MAX` where that is more.
 */
__attribute__((warn_unused_result)) uint64_t luma_spill_extra_bytes(uint64_t size, int has_copy);

/**
 * Checks a plan, which shares no code with planning: every rule, in the order of `luma_violation_t`. Of
 * the plan, `order`, `offsets` and `spills` are read. With `given_order` (unless it is NULL with a count
 * of 0) the plan must keep that order of the graph's own nodes.
 *
 * A valid plan is `LUMA_SUCCESS`; `report` then has what it costs, and `peaks` the most bytes resident at
 * once in each memory. A plan that breaks a rule is `LUMA_ERROR_CORRUPTED`, and `report` has the rule,
 * node, buffer and position: other than elsewhere it is written with this status, too. Both may be
 * NULL.
 *
 * Errors besides: `LUMA_ERROR_INVALID_VALUE` for NULL and bad fields, and then nothing is written.
 *
 * Pointers:
 * `graph`, `plan` and `report` are NULL or point to structs of their `struct_size`, whose arrays hold as
 * many elements as they say; `given_order` holds `given_count` ids; `peaks` is NULL or has room for a
 * number for each memory.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_check_plan(const struct luma_graph_t *graph,
                                   const uint32_t *given_order,
                                   size_t given_count,
                                   const struct luma_plan_view_t *plan,
                                   struct luma_plan_report_t *report,
                                   uint64_t *peaks);

/**
 * Gives each of `count` lifetimes an offset, such that those which are there at the same time share no
 * byte: within the capacity, if the options name one, and as low as can be found otherwise. Writes one
 * offset a lifetime to `offsets`, and what is known of the placement to `out`, unless that is NULL.
 * `options` may be NULL: every option is the default.
 *
 * Errors: `LUMA_ERROR_INVALID_VALUE` for NULL, bad fields, a lifetime that ends before it begins, and
 * sums that overflow; `LUMA_ERROR_INFEASIBLE` where there is no placement within the capacity, or none was
 * found before a limit was reached: the message says which.
 *
 * Pointers:
 * `lifetimes` holds `count` elements and `offsets` has room for as many numbers; `options` and `out` are
 * NULL or point to structs of their `struct_size`.
 */
__attribute__((warn_unused_result))
enum luma_status_t luma_place(const struct luma_lifetime_t *lifetimes,
                              size_t count,
                              const struct luma_place_options_t *options,
                              uint64_t *offsets,
                              struct luma_placement_t *out);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LUMA_H */
