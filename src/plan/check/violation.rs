#![forbid(unsafe_code)]
//! What can be wrong with a plan.

use std::fmt;

/// The rule that is broken, in the order in which rules are checked. The numbers are those of
/// `luma_plan_class_t` and never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
#[non_exhaustive]
pub enum Class {
    /// The graph itself is no graph: what is wrong with it is in the message.
    Graph = 1,
    /// The order names a node that neither the graph nor the spills have.
    UnknownNode = 2,
    /// A node is in the order twice.
    DuplicateNode = 3,
    /// A node of the graph or of a spill is not in the order.
    MissingNode = 4,
    /// A spill or an offset is of a buffer that the graph does not have.
    UnknownBuffer = 5,
    /// A buffer has no offset.
    MissingOffset = 6,
    /// A buffer does not lie inside its memory.
    OffsetRange = 7,
    /// A node comes before one that it depends on.
    EdgeOrder = 8,
    /// ALLOC, SPILL_OUT, SPILL_IN and FREE of a spill are not in this order.
    SpillEdge = 9,
    /// A buffer is spilled while it is spilled already.
    NestedSpill = 10,
    /// An operation runs between the SPILL_OUT and the SPILL_IN of its buffer.
    UseWhileSpilled = 11,
    /// An operation runs before the ALLOC or after the FREE of its buffer.
    UseNotResident = 12,
    /// Two buffers are resident in a memory that may hold one at a time.
    Single = 13,
    /// More bytes are resident than the memory has.
    OverCapacity = 14,
    /// Two residents of a memory share bytes.
    Overlap = 15,
    /// Spills are not numbered by the position of their SPILL_OUT.
    SpillNumber = 16,
    /// The order of the graph's own nodes is not the one that was given.
    OrderChanged = 17,
}

impl Class {
    /// Every class, in the order in which they are checked.
    pub const ALL: [Self; 17] = [
        Self::Graph,
        Self::UnknownNode,
        Self::DuplicateNode,
        Self::MissingNode,
        Self::UnknownBuffer,
        Self::MissingOffset,
        Self::OffsetRange,
        Self::EdgeOrder,
        Self::SpillEdge,
        Self::NestedSpill,
        Self::UseWhileSpilled,
        Self::UseNotResident,
        Self::Single,
        Self::OverCapacity,
        Self::Overlap,
        Self::SpillNumber,
        Self::OrderChanged,
    ];

    /// A short name, as files and reports show it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::UnknownNode => "unknown_node",
            Self::DuplicateNode => "duplicate_node",
            Self::MissingNode => "missing_node",
            Self::UnknownBuffer => "unknown_buffer",
            Self::MissingOffset => "missing_offset",
            Self::OffsetRange => "offset_range",
            Self::EdgeOrder => "edge_order",
            Self::SpillEdge => "spill_edge",
            Self::NestedSpill => "nested_spill",
            Self::UseWhileSpilled => "use_while_spilled",
            Self::UseNotResident => "use_not_resident",
            Self::Single => "l0_single",
            Self::OverCapacity => "over_capacity",
            Self::Overlap => "overlap",
            Self::SpillNumber => "spill_number",
            Self::OrderChanged => "order_changed",
        }
    }
}

/// A broken rule, and where it is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub class: Class,
    /// The node that breaks it.
    pub node: Option<u32>,
    /// The buffer that it is about.
    pub buffer: Option<u32>,
    /// Where in the plan's order it is broken, from 0.
    pub position: Option<u32>,
    /// The details, as a sentence.
    message: String,
}

impl Violation {
    /// A broken rule, with the details as a sentence.
    #[must_use]
    pub fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            node: None,
            buffer: None,
            position: None,
            message: message.into(),
        }
    }

    /// By this node.
    #[must_use]
    pub fn node(mut self, node: u32) -> Self {
        self.node = Some(node);
        self
    }

    /// About this buffer.
    #[must_use]
    pub fn buffer(mut self, buffer: u32) -> Self {
        self.buffer = Some(buffer);
        self
    }

    /// At this position.
    #[must_use]
    pub fn at(mut self, position: u32) -> Self {
        self.position = Some(position);
        self
    }

    /// The sentence that says what is wrong, with sizes and places.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.class.name())?;
        if let Some(position) = self.position {
            write!(f, " at position {position}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Violation {}

/// The violation that is met first: of those offered, the one at the least position.
pub(super) struct First(Option<Violation>);

impl First {
    pub(super) fn new() -> Self {
        Self(None)
    }

    /// Keeps `make()`'s violation if its position comes before that of the one kept.
    pub(super) fn offer(&mut self, position: u32, make: impl FnOnce() -> Violation) {
        let kept = self.0.as_ref().and_then(|violation| violation.position);
        if kept.is_none_or(|kept| position < kept) {
            self.0 = Some(make().at(position));
        }
    }

    pub(super) fn result(self) -> Result<(), Violation> {
        self.0.map_or(Ok(()), Err)
    }
}
