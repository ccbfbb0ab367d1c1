//! What a program asks about memory.

use super::current;
use crate::abi::{Address, Device};
use crate::switch::is_on;
use luma::Pool;
use luma::alloc::Located;
use luma::pool::{Marks, defaults};

/// An address as it is to the program.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Not the pool's.
    Foreign,
    /// In the pool's memory, and in no block.
    Nowhere,
    /// In a block.
    Block(Block),
}

/// A block that an address lies in.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    pool: &'static Pool,
    start: Address,
}

impl Block {
    /// The device that its memory is on.
    pub fn device(self) -> Option<Device> {
        let mut pools = defaults::of_devices();
        pools
            .find(|&(_, pool)| std::ptr::eq(pool, self.pool))
            .map(|(device, _)| device)
    }

    /// Whether it was allocated in the order of a stream.
    pub fn is_ordered(self) -> bool {
        self.has(Marks::ORDERED)
    }

    /// The program learns which segment the block lies in.
    pub fn note_range_asked(self) {
        self.pool.mark(self.start, Marks::RANGE_ASKED);
    }

    /// Whether it has learnt that.
    pub fn is_range_asked(self) -> bool {
        self.has(Marks::RANGE_ASKED)
    }

    fn has(self, mark: Marks) -> bool {
        let marks = self.pool.marks(self.start);
        marks.is_some_and(|marks| marks.has(mark))
    }
}

/// Whether the program was told of a segment, by one of the blocks in it that live. `from` and `to` are the
/// segment's first address and the one after its last.
pub fn is_known(from: Address, to: Address) -> bool {
    let pool = defaults::holder(from);
    pool.is_some_and(|pool| pool.has_marked(from, to, Marks::RANGE_ASKED))
}

/// What lies at an address.
pub fn place(address: Address) -> Place {
    if !is_on() {
        return Place::Foreign;
    }
    let Some(pool) = defaults::holder(address) else {
        return Place::Foreign;
    };
    match pool.locate(address) {
        Located::Foreign => Place::Foreign,
        Located::Free => Place::Nowhere,
        Located::Start { block } | Located::Inside { block } => Place::Block(Block {
            pool,
            start: block.addr,
        }),
    }
}

/// `cuMemGetInfo`: what the device has free and in all, as it is to a program whose memory comes from the
/// pool. `free` and `total` are the driver's figures.
pub fn memory(free: usize, total: usize) -> (usize, usize) {
    if !is_on() {
        return (free, total);
    }
    let Some(pool) = current() else {
        return (free, total);
    };
    let Ok(room) = pool.room() else {
        return (free, total);
    };
    // What is freed and cached serves the next request, as it would from the driver; what pools of the
    // device's other contexts keep goes back where it is needed.
    let is_here = |&(_, other): &(i32, &Pool)| std::ptr::eq(other, pool);
    let device = defaults::of_devices()
        .find(is_here)
        .map(|(device, _)| device);
    let pools = defaults::of_devices().filter(|&(other, _)| Some(other) == device);
    let unused = pools.filter_map(|(_, pool)| {
        let room = pool.room().ok()?;
        Some(room.reserved.saturating_sub(room.allocated))
    });
    let cached = usize::try_from(unused.sum::<u64>()).unwrap_or(usize::MAX);
    let (mut free, mut total) = (free.saturating_add(cached).min(total), total);
    if let Some(limit) = room.limit {
        let left = limit.saturating_sub(room.allocated);
        free = free.min(usize::try_from(left).unwrap_or(usize::MAX));
        total = total.min(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    (free.min(total), total)
}
