#![forbid(unsafe_code)]
//! Why there is no plan, and how it is told.

use std::fmt;

use crate::error::{Error, Status};
use crate::text::{Text, text};

/// What is wrong with a graph, an order or a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PlanErrorKind {
    /// A buffer is larger than its memory.
    BufferTooLarge,
    /// The buffers of an operation cannot be resident together.
    OperandsTooLarge,
    /// A node of the order comes before one that it depends on.
    OrderNotTopological,
    /// A node is missing from the order.
    OrderIncomplete,
    /// A node is in the order twice.
    OrderRepeats,
    /// The order, an edge or a use names a node that the graph does not have.
    UnknownNode,
    /// A node or a use names a buffer that the graph does not have.
    UnknownBuffer,
    /// A buffer names a memory that the graph does not have.
    UnknownMemory,
    /// A buffer has no ALLOC.
    AllocMissing,
    /// A buffer has two ALLOCs.
    AllocTwice,
    /// A buffer has no FREE.
    FreeMissing,
    /// A buffer has two FREEs.
    FreeTwice,
    /// A use belongs to an ALLOC or a FREE instead of an operation.
    UseByCacheNode,
    /// A use comes before its buffer's ALLOC or after its FREE.
    UseOutsideLifetime,
    /// The edges form a cycle.
    Cycle,
    /// A sum of sizes, costs or cycles, or the number of nodes, is beyond what is counted in.
    Overflow,
    /// A lifetime ends before it starts.
    BadLifetime,
    /// It is proved that no placement within the capacity exists.
    NoPlacement,
    /// No placement within the capacity was found before the search was stopped; one may exist.
    PlacementNotFound,
    /// The search was stopped before it had a plan.
    Stopped,
    /// What was asked for is not there.
    Unsupported,
    /// A bug in luma.
    Internal,
}

/// A graph, an order or a request that has no plan: what is wrong, where, and the sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// What is wrong.
    pub kind: PlanErrorKind,
    /// The node that it was found at.
    pub node: Option<u32>,
    /// A second node: the one depended on, or the first of two.
    pub other_node: Option<u32>,
    /// The buffer that it is about; for [`PlanErrorKind::BadLifetime`] the lifetime's index.
    pub buffer: Option<u32>,
    /// The memory's name.
    pub memory: Option<Box<str>>,
    /// Bytes (or nodes, or cycles) needed.
    pub needed: Option<u64>,
    /// Bytes (or nodes, or cycles) there are.
    pub limit: Option<u64>,
    /// What was being summed or asked for.
    pub subject: Option<&'static str>,
}

impl PlanError {
    /// An error that says nothing but its kind yet.
    #[must_use]
    pub fn new(kind: PlanErrorKind) -> Self {
        Self {
            kind,
            node: None,
            other_node: None,
            buffer: None,
            memory: None,
            needed: None,
            limit: None,
            subject: None,
        }
    }

    /// Found at this node.
    #[must_use]
    pub fn at(mut self, node: u32) -> Self {
        self.node = Some(node);
        self
    }

    /// With a second node.
    #[must_use]
    pub fn and(mut self, node: u32) -> Self {
        self.other_node = Some(node);
        self
    }

    /// About this buffer.
    #[must_use]
    pub fn of(mut self, buffer: u32) -> Self {
        self.buffer = Some(buffer);
        self
    }

    /// In the memory of this name.
    #[must_use]
    pub fn within(mut self, memory: &str) -> Self {
        self.memory = Some(memory.into());
        self
    }

    /// With what is needed, and what there is.
    #[must_use]
    pub fn sizes(mut self, needed: u64, limit: u64) -> Self {
        self.needed = Some(needed);
        self.limit = Some(limit);
        self
    }

    /// With what was being summed or asked for.
    #[must_use]
    pub fn about(mut self, subject: &'static str) -> Self {
        self.subject = Some(subject);
        self
    }

    /// The status that a caller gets.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.kind {
            PlanErrorKind::BufferTooLarge
            | PlanErrorKind::OperandsTooLarge
            | PlanErrorKind::NoPlacement
            | PlanErrorKind::PlacementNotFound
            | PlanErrorKind::Stopped => Status::Infeasible,
            PlanErrorKind::Unsupported => Status::Unsupported,
            PlanErrorKind::Internal => Status::Internal,
            _ => Status::InvalidValue,
        }
    }

    /// The sentence that a caller gets.
    #[must_use]
    pub fn message(&self) -> Text {
        text!("{self}")
    }

    fn sentence(&self) -> &'static str {
        match self.kind {
            PlanErrorKind::BufferTooLarge => "the buffer is larger than its memory",
            PlanErrorKind::OperandsTooLarge => {
                "the operation's buffers cannot be resident together"
            }
            PlanErrorKind::OrderNotTopological => {
                "the order is not topological: the node comes before one that it depends on"
            }
            PlanErrorKind::OrderIncomplete => "the order is incomplete: the node is missing",
            PlanErrorKind::OrderRepeats => "the node is in the order twice",
            PlanErrorKind::UnknownNode => "there is no such node",
            PlanErrorKind::UnknownBuffer => "there is no such buffer",
            PlanErrorKind::UnknownMemory => "the buffer's memory does not exist",
            PlanErrorKind::AllocMissing => "the buffer has no ALLOC",
            PlanErrorKind::AllocTwice => "the buffer has two ALLOCs",
            PlanErrorKind::FreeMissing => "the buffer has no FREE",
            PlanErrorKind::FreeTwice => "the buffer has two FREEs",
            PlanErrorKind::UseByCacheNode => {
                "a use belongs to an ALLOC or a FREE instead of an operation"
            }
            PlanErrorKind::UseOutsideLifetime => {
                "the operation uses the buffer before its ALLOC or after its FREE"
            }
            PlanErrorKind::Cycle => "the edges form a cycle",
            PlanErrorKind::Overflow => "more than can be counted",
            PlanErrorKind::BadLifetime => "the lifetime ends before it starts",
            PlanErrorKind::NoPlacement => "no placement within the capacity exists",
            PlanErrorKind::PlacementNotFound => {
                "no placement within the capacity was found, though one may exist"
            }
            PlanErrorKind::Stopped => "stopped before there was a plan",
            PlanErrorKind::Unsupported => "not supported",
            PlanErrorKind::Internal => "a bug in luma",
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())?;
        let mut separator = ": ";
        let mut part = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            f.write_str(separator)?;
            separator = ", ";
            f.write_fmt(text)
        };
        if let Some(subject) = self.subject {
            part(f, format_args!("{subject}"))?;
        }
        if let Some(node) = self.node {
            part(f, format_args!("node {node}"))?;
        }
        if let Some(node) = self.other_node {
            part(f, format_args!("other node {node}"))?;
        }
        if let Some(buffer) = self.buffer {
            part(f, format_args!("buffer {buffer}"))?;
        }
        if let Some(memory) = &self.memory {
            part(f, format_args!("memory {memory}"))?;
        }
        if let Some(needed) = self.needed {
            part(f, format_args!("needed {needed}"))?;
        }
        if let Some(limit) = self.limit {
            part(f, format_args!("available {limit}"))?;
        }
        Ok(())
    }
}

impl std::error::Error for PlanError {}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::new(error.status(), error.message())
    }
}
