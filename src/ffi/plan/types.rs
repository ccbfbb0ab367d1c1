//! The types of spill planning and placement. Structs that stand alone begin with their size, as
//! everywhere; those that arrays are made of never change, and what is new comes in arrays of its own.

use core::ffi::{c_char, c_int, c_void};

/// What a node of a graph is. Values of `luma_node_t::kind`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_node_kind_t {
    /// It computes or copies.
    LUMA_NODE_OPERATION = 0,
    /// An operation that copies from outside into the buffers that it uses: these need not be
    /// written out when they are spilled.
    LUMA_NODE_COPY_IN = 1,
    /// Its buffer comes into being.
    LUMA_NODE_ALLOC = 2,
    /// Its buffer is gone.
    LUMA_NODE_FREE = 3,
    /// Its buffer leaves its memory. In plans only.
    LUMA_NODE_SPILL_OUT = 4,
    /// Its buffer comes back. In plans only.
    LUMA_NODE_SPILL_IN = 5,
}

/// What an operation does with a buffer. Values of `luma_use_t::access`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_access_t {
    /// Perhaps both; what is known of the copy outside is not changed by it.
    LUMA_ACCESS_UNKNOWN = 0,
    /// It reads.
    LUMA_ACCESS_READ = 1,
    /// It writes, which makes a copy outside stale.
    LUMA_ACCESS_WRITE = 2,
    /// It reads and writes.
    LUMA_ACCESS_READ_WRITE = 3,
}

/// How much effort a plan is worth. Values of `luma_plan_options_t::level`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_level_t {
    /// One pass over the order, in near-linear time.
    LUMA_LEVEL_HEURISTIC = 0,
    /// The fewest bytes that the order allows, with a proof where there is one.
    LUMA_LEVEL_EXACT = 1,
    /// Order and spills together, better for as long as there is time. Without `reorder` as
    /// `LUMA_LEVEL_EXACT`.
    LUMA_LEVEL_SEARCH = 2,
}

/// Why planning or placing ended.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_stopped_t {
    /// It was done.
    LUMA_STOPPED_FINISHED = 0,
    /// The time limit was reached.
    LUMA_STOPPED_TIME = 1,
    /// The caller's callback said so.
    LUMA_STOPPED_CALLER = 2,
    /// The work limit was reached.
    LUMA_STOPPED_WORK = 3,
}

/// The rule that a plan breaks. They are checked in this order.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_violation_t {
    /// None: the plan is valid.
    LUMA_VIOLATION_NONE = 0,
    /// The graph itself is no graph.
    LUMA_VIOLATION_GRAPH = 1,
    /// The order names a node that neither the graph nor the spills have.
    LUMA_VIOLATION_UNKNOWN_NODE = 2,
    /// A node is in the order twice.
    LUMA_VIOLATION_DUPLICATE_NODE = 3,
    /// A node of the graph or of a spill is not in the order.
    LUMA_VIOLATION_MISSING_NODE = 4,
    /// A spill or an offset is of a buffer that the graph does not have.
    LUMA_VIOLATION_UNKNOWN_BUFFER = 5,
    /// A buffer has no offset.
    LUMA_VIOLATION_MISSING_OFFSET = 6,
    /// A buffer does not lie inside its memory.
    LUMA_VIOLATION_OFFSET_RANGE = 7,
    /// A node comes before one that it depends on.
    LUMA_VIOLATION_EDGE_ORDER = 8,
    /// ALLOC, SPILL_OUT, SPILL_IN and FREE of a spill are not in this order.
    LUMA_VIOLATION_SPILL_EDGE = 9,
    /// A buffer is spilled while it is spilled already.
    LUMA_VIOLATION_NESTED_SPILL = 10,
    /// An operation runs between the SPILL_OUT and the SPILL_IN of its buffer.
    LUMA_VIOLATION_USE_WHILE_SPILLED = 11,
    /// An operation runs before the ALLOC or after the FREE of its buffer.
    LUMA_VIOLATION_USE_NOT_RESIDENT = 12,
    /// Two buffers are resident in a memory that may hold one at a time.
    LUMA_VIOLATION_SINGLE = 13,
    /// More bytes are resident than the memory has.
    LUMA_VIOLATION_OVER_CAPACITY = 14,
    /// Two residents of a memory share bytes.
    LUMA_VIOLATION_OVERLAP = 15,
    /// Spills are not numbered by the position of their SPILL_OUT, or their nodes by the spill.
    LUMA_VIOLATION_SPILL_NUMBER = 16,
    /// The order of the graph's own nodes is not the one that was given.
    LUMA_VIOLATION_ORDER_CHANGED = 17,
}

/// A node. Its id is its index.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_node_t {
    /// A `luma_node_kind_t`.
    pub kind: i32,
    /// The buffer of an ALLOC, a FREE or a spill; operations have `luma_use_t` instead.
    pub buffer: u32,
    /// What it runs on, one node at a time: any number, or `LUMA_NO_PIPE`.
    pub pipe: u32,
    /// 0.
    pub reserved: u32,
    /// How long it runs.
    pub cycles: u64,
}

/// An operation uses a buffer, as an input or an output.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_use_t {
    /// The operation.
    pub node: u32,
    /// The buffer.
    pub buffer: u32,
    /// A `luma_access_t`.
    pub access: i32,
}

/// A dependency: `from` runs before `to`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_edge_t {
    /// The node that runs first.
    pub from: u32,
    /// The node that depends on it.
    pub to: u32,
}

/// A buffer. Its id is its index.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_buffer_t {
    /// Bytes; 0 is legal.
    pub size: u64,
    /// The index of its memory.
    pub memory: u32,
    /// 0.
    pub reserved: u32,
}

/// A memory.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct luma_memory_t {
    /// Its name in messages; NULL: its index.
    pub name: *const c_char,
    /// Bytes.
    pub capacity: u64,
    /// 1: it holds one buffer at a time, whatever the sizes; 0: any number.
    pub single: i32,
    /// 0.
    pub reserved: i32,
}

/// What spills cost in cycles. Begin with `LUMA_SPILL_COST_INIT`, which has the costs of the contest that
/// the kernels of the NPU come from.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_spill_cost_t {
    /// `sizeof(luma_spill_cost_t)`.
    pub struct_size: usize,
    /// Cycles of a SPILL_OUT for each byte.
    pub out_cycles_per_byte: u64,
    /// Cycles of a SPILL_OUT besides.
    pub out_fixed_latency: u64,
    /// Cycles of a SPILL_IN for each byte.
    pub in_cycles_per_byte: u64,
    /// Cycles of a SPILL_IN besides.
    pub in_fixed_latency: u64,
    /// The pipe of every SPILL_OUT, or `LUMA_NO_PIPE`.
    pub out_pipe: u32,
    /// The pipe of every SPILL_IN, or `LUMA_NO_PIPE`.
    pub in_pipe: u32,
    /// 0: a SPILL_OUT takes no cycles where the copy outside is what the buffer holds; 1: it takes
    /// them all the same.
    pub charge_backed_out: i32,
    /// 0.
    pub reserved: i32,
}

/// A graph: nodes that use buffers in memories. Begin with `LUMA_GRAPH_INIT`. The arrays are read during
/// the call only and never changed; an empty one may be NULL.
///
/// Each buffer has one ALLOC and one FREE. That a buffer's ALLOC runs before its uses and these before
/// its FREE is understood and needs no edges.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct luma_graph_t {
    /// `sizeof(luma_graph_t)`.
    pub struct_size: usize,
    /// The nodes, by id.
    pub nodes: *const luma_node_t,
    /// Their number.
    pub node_count: usize,
    /// Which operations use which buffers, in any order.
    pub uses: *const luma_use_t,
    /// Their number.
    pub use_count: usize,
    /// The dependencies, in any order.
    pub edges: *const luma_edge_t,
    /// Their number.
    pub edge_count: usize,
    /// The buffers, by id.
    pub buffers: *const luma_buffer_t,
    /// Their number.
    pub buffer_count: usize,
    /// The memories, by index.
    pub memories: *const luma_memory_t,
    /// Their number.
    pub memory_count: usize,
    /// What spills cost; NULL: as `LUMA_SPILL_COST_INIT` says.
    pub cost: *const luma_spill_cost_t,
}

/// How far a search is.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_progress_t {
    /// The size of this struct in the library.
    pub struct_size: usize,
    /// The best so far: extra bytes of a plan, or the height of a placement.
    pub best: u64,
    /// Nothing is below it.
    pub lower_bound: u64,
    /// Work done, in units of the level's own.
    pub work: u64,
}

/// Is told how far a search is, at every improvement and now and then besides. Answers non-zero to
/// stop: the best so far is the result. Threads of the search may call it, one at a time or several
/// at once. It must not throw or jump out.
#[allow(non_camel_case_types)]
pub type luma_progress_fn_t =
    Option<unsafe extern "C" fn(progress: *const luma_progress_t, user: *mut c_void) -> c_int>;

/// How a graph is planned. Begin with `LUMA_PLAN_OPTIONS_INIT`; zero in a field means the default.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct luma_plan_options_t {
    /// `sizeof(luma_plan_options_t)`.
    pub struct_size: usize,
    /// A `luma_level_t`.
    pub level: i32,
    /// 1: the plan may have another order that the dependencies allow: any one where orders are
    /// searched, otherwise the greedy one if that is better; 0: it keeps the given one.
    pub reorder: i32,
    /// Milliseconds after which the best so far is the result. 0: 10,000, or none with a work limit;
    /// `UINT64_MAX`: none.
    pub time_limit_ms: u64,
    /// Work after which the best so far is the result, the same on every machine; 0: no limit.
    pub work_limit: u64,
    /// Equal seeds give equal sequences of improvements.
    pub seed: u64,
    /// Threads to use; the sequence of improvements does not depend on it. 0: as many as there are
    /// processors.
    pub threads: u32,
    /// 0.
    pub reserved: u32,
    /// Told how far it is; or NULL.
    pub progress: luma_progress_fn_t,
    /// Handed to `progress`.
    pub user: *mut c_void,
}

/// A plan. Its contents are read with `luma_plan_view` and `luma_plan_edges`.
#[allow(non_camel_case_types)]
pub struct luma_plan_t {
    _private: [u8; 0],
}

/// Which dependencies of spills are wanted. Codes of `luma_plan_edges`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum luma_edge_set_t {
    /// All: ALLOC, every earlier user of the buffer and its previous SPILL_IN before the SPILL_OUT; that
    /// before the SPILL_IN; that before every later user and FREE. They can be as many as users times
    /// spills.
    LUMA_EDGES_ALL = 0,
    /// Those of them that do not follow from the others and from the graph: at most as many as uses
    /// and spills.
    LUMA_EDGES_DIRECT = 1,
}

/// Where a buffer is from its ALLOC on.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_allocation_t {
    /// The buffer.
    pub buffer: u32,
    /// The index of its memory.
    pub memory: u32,
    /// Its first byte in the memory.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

/// A spill: a buffer leaves and comes back to another place. Spill `k` of a graph of `N` nodes is the
/// nodes `N + 2k` and `N + 2k + 1`; they are numbered by the position of the first.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_spill_t {
    /// The buffer.
    pub buffer: u32,
    /// The SPILL_OUT.
    pub out_node: u32,
    /// The SPILL_IN.
    pub in_node: u32,
    /// 0.
    pub reserved: u32,
    /// Its first byte in the memory from the SPILL_IN on.
    pub offset: u64,
}

/// What is in a plan. `luma_check_plan` reads `order`, `offsets` and `spills` of it, so that plans from
/// elsewhere can be checked as well; begin with `LUMA_PLAN_VIEW_INIT`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct luma_plan_view_t {
    /// `sizeof(luma_plan_view_t)`.
    pub struct_size: usize,
    /// The ids of all nodes, spills' included, in the order in which they run.
    pub order: *const u32,
    /// Their number.
    pub order_count: usize,
    /// Where each buffer is from its ALLOC on, by buffer.
    pub offsets: *const u64,
    /// Their number, one a buffer.
    pub offset_count: usize,
    /// The spills, by number.
    pub spills: *const luma_spill_t,
    /// Their number.
    pub spill_count: usize,
    /// The same as `offsets`, with memory and size, by buffer.
    pub allocations: *const luma_allocation_t,
    /// Their number, one a buffer.
    pub allocation_count: usize,
    /// The nodes of the spills; the id of the first is the number of the graph's nodes.
    pub added_nodes: *const luma_node_t,
    /// Their number, two a spill.
    pub added_node_count: usize,
    /// The most bytes resident at once, by memory.
    pub peaks: *const u64,
    /// Their number, one a memory.
    pub peak_count: usize,
    /// Bytes that the spills move.
    pub extra_bytes: u64,
    /// No plan (of this order, where that was kept) moves fewer bytes.
    pub lower_bound: u64,
    /// Cycles of all spills together.
    pub spill_cycles: u64,
    /// The cycle in which the last node ends.
    pub makespan: u64,
    /// 1: it is proved that no plan (of this order, where that was kept) moves fewer bytes; 0: not.
    pub proved: i32,
    /// Why planning ended: a `luma_stopped_t`.
    pub stopped: i32,
}

/// What a check found. Begin with `LUMA_PLAN_REPORT_INIT`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_plan_report_t {
    /// `sizeof(luma_plan_report_t)`.
    pub struct_size: usize,
    /// The rule that is broken: a `luma_violation_t`.
    pub violation: i32,
    /// The node that breaks it, or `LUMA_NONE`.
    pub node: u32,
    /// The buffer that it is about, or `LUMA_NONE`.
    pub buffer: u32,
    /// Where in the plan's order, from 0, or `LUMA_NONE`.
    pub position: u32,
    /// Of a valid plan: bytes that the spills move.
    pub extra_bytes: u64,
    /// Of a valid plan: cycles of all spills together.
    pub spill_cycles: u64,
    /// Of a valid plan: the cycle in which the last node ends.
    pub makespan: u64,
}

/// A buffer that is there from `lower` up to but not in `upper`, in any unit of time.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_lifetime_t {
    /// When it begins.
    pub lower: u64,
    /// When it has ended; not before `lower`.
    pub upper: u64,
    /// Bytes; 0 is legal.
    pub size: u64,
}

/// How lifetimes are placed. Begin with `LUMA_PLACE_OPTIONS_INIT`; zero in a field means the default.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct luma_place_options_t {
    /// `sizeof(luma_place_options_t)`.
    pub struct_size: usize,
    /// Bytes that there are: any placement within them will do. 0: as low as can be found.
    pub capacity: u64,
    /// As in `luma_plan_options_t`.
    pub time_limit_ms: u64,
    /// As in `luma_plan_options_t`.
    pub work_limit: u64,
    /// As in `luma_plan_options_t`.
    pub seed: u64,
    /// As in `luma_plan_options_t`.
    pub threads: u32,
    /// 0.
    pub reserved: u32,
    /// Told how far it is; or NULL.
    pub progress: luma_progress_fn_t,
    /// Handed to `progress`.
    pub user: *mut c_void,
}

/// What placing gave. Begin with `LUMA_PLACEMENT_INIT`.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct luma_placement_t {
    /// `sizeof(luma_placement_t)`.
    pub struct_size: usize,
    /// The end of the highest buffer.
    pub height: u64,
    /// No placement is lower.
    pub lower_bound: u64,
    /// 1: it is proved that no placement is lower; 0: not.
    pub proved: i32,
    /// Why placing ended: a `luma_stopped_t`.
    pub stopped: i32,
}
