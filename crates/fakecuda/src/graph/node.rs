//! What a graph is made of.

use crate::abi::copy::Copy3D;
use crate::abi::graph::{KernelNode, SetNodeV1};
use crate::context::ContextId;
use crate::exec::{HostFunction, Kind, Step, Work, host_step};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

/// `CUgraphNodeType`.
pub mod node_type {
    pub const KERNEL: u32 = 0;
    pub const COPY: u32 = 1;
    pub const SET: u32 = 2;
    pub const HOST: u32 = 3;
    pub const GRAPH: u32 = 4;
    pub const EMPTY: u32 = 5;
    pub const WAIT_EVENT: u32 = 6;
    pub const EVENT_RECORD: u32 = 7;
    pub const ALLOCATE: u32 = 10;
    pub const FREE: u32 = 11;
    pub const MEMORY_OPERATION: u32 = 12;
}

/// `CUgraphEdgeData`: all zero unless a program says otherwise.
pub type EdgeData = [u8; 8];

/// A dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The node that has to be done before.
    pub from: u64,
    pub data: EdgeData,
}

impl Edge {
    /// Without anything special.
    pub fn plain(from: u64) -> Self {
        Self { from, data: [0; 8] }
    }
}

/// A kernel node's structure, with its own copy of the parameters.
#[derive(Debug)]
pub struct KernelParams {
    node: KernelNode,
    /// The values, to which the pointers point. Aligned for any type.
    _values: Vec<Vec<u128>>,
    pointers: Vec<*mut c_void>,
}

// SAFETY: the pointers point to the values here, which nobody changes.
unsafe impl Send for KernelParams {}
unsafe impl Sync for KernelParams {}

impl KernelParams {
    /// Copies parameters of known sizes.
    ///
    /// # Safety
    /// If there are pointers, there is one for each size, to as many bytes.
    pub unsafe fn copy(node: &KernelNode, sizes: impl Iterator<Item = usize>) -> Self {
        let mut values = Vec::new();
        if !node.v1.parameters.is_null() {
            for (index, bytes) in sizes.enumerate() {
                let mut value = vec![0u128; bytes.div_ceil(size_of::<u128>())];
                // SAFETY: the caller promises it.
                unsafe {
                    let from = (*node.v1.parameters.add(index)).cast::<u8>();
                    from.copy_to_nonoverlapping(value.as_mut_ptr().cast(), bytes);
                }
                values.push(value);
            }
        }
        let pointers = values.iter_mut().map(|value| value.as_mut_ptr().cast());
        Self {
            pointers: pointers.collect(),
            node: *node,
            _values: values,
        }
    }

    /// The structure, whose pointers are good as long as this is.
    pub fn node(&self) -> KernelNode {
        let mut node = self.node;
        node.v1.extra = ptr::null();
        node.v1.parameters = match self.pointers.is_empty() {
            true => ptr::null(),
            false => self.pointers.as_ptr(),
        };
        node
    }
}

/// The structure from which a node's work was made.
#[derive(Clone, Debug)]
pub enum Params {
    Kernel(Arc<KernelParams>),
    Copy(Box<Copy3D>),
    Set(SetNodeV1),
}

/// What a node does.
#[derive(Clone)]
pub enum Content {
    /// What a device does.
    Work {
        kind: Kind,
        work: Work,
        /// Only if it was not captured without.
        params: Option<Params>,
        context: Option<ContextId>,
    },
    Host {
        function: HostFunction,
        data: u64,
    },
    /// All nodes of a graph that the node owns.
    Child {
        graph: u64,
    },
    Empty,
    EventRecord {
        event: u64,
    },
    EventWait {
        event: u64,
    },
    /// From here on the memory may be used.
    Allocate {
        address: u64,
    },
    Free {
        address: u64,
    },
}

impl Content {
    /// `CUgraphNodeType`.
    pub fn node_type(&self) -> u32 {
        match self {
            Self::Work { kind, .. } => match kind {
                Kind::Kernel => node_type::KERNEL,
                Kind::Copy => node_type::COPY,
                Kind::Set => node_type::SET,
                Kind::Other => node_type::MEMORY_OPERATION,
            },
            Self::Host { .. } => node_type::HOST,
            Self::Child { .. } => node_type::GRAPH,
            Self::Empty => node_type::EMPTY,
            Self::EventWait { .. } => node_type::WAIT_EVENT,
            Self::EventRecord { .. } => node_type::EVENT_RECORD,
            Self::Allocate { .. } => node_type::ALLOCATE,
            Self::Free { .. } => node_type::FREE,
        }
    }

    /// Whether it owns or frees memory.
    pub fn is_memory(&self) -> bool {
        matches!(self, Self::Allocate { .. } | Self::Free { .. })
    }

    /// The step of a stream that does it, if it is one that depends on nothing else.
    pub fn step(&self) -> Step {
        match self {
            Self::Work { work, .. } => Step::Work(work.clone()),
            Self::Host { function, data } => host_step(*function, *data),
            _ => Step::Nothing,
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "node of type {}", self.node_type())
    }
}

/// A node.
#[derive(Debug)]
pub struct Node {
    /// Never given twice, other than its handle.
    pub number: u64,
    /// The handle of its graph.
    pub graph: u64,
    /// Counts the nodes of its graph.
    pub local: u32,
    pub content: Content,
    pub dependencies: Vec<Edge>,
    /// What was set of a kernel node's attributes, by their numbers.
    pub attributes: BTreeMap<u32, [u8; 64]>,
    /// The number of the node of which it is a copy.
    pub copy_of: Option<u64>,
}
