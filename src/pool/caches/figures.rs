#![forbid(unsafe_code)]
//! What a pool tells of its blocks, where the engine counts cached ones as live.

use super::Caches;
use crate::alloc::{Block, Located};
use crate::pool::Open;

impl Open {
    /// The block that begins at `addr`, if it is handed out.
    pub(in crate::pool) fn block_at(&self, addr: u64) -> Option<Block> {
        let block = self.engine.block_at(addr)?;
        (!self.is_cached(block.addr)).then_some(block)
    }

    /// What lies at `addr`.
    pub(in crate::pool) fn locate(&self, addr: u64) -> Located {
        match self.engine.locate(addr) {
            Located::Start { block } | Located::Inside { block } if self.is_cached(block.addr) => {
                Located::Free
            }
            located => located,
        }
    }

    /// Blocks that are handed out: address, size, bytes asked for.
    pub(in crate::pool) fn live_blocks(&mut self) -> Vec<(u64, u64, u64)> {
        let engine = &mut self.engine;
        let caches = self.caches.as_deref().map(|caches| caches.emptied(engine));
        let engine = &self.engine;
        let asked_for = |addr| {
            let tag = engine.tag(addr).filter(|&tag| tag != 0)?;
            caches.as_ref()?.requested_of(addr, tag)
        };
        engine
            .live_blocks()
            .map(|(block, requested)| {
                let requested = asked_for(block.addr).unwrap_or(requested);
                (block.addr, block.size, requested)
            })
            .collect()
    }

    /// Begins both peaks anew.
    pub(in crate::pool) fn reset_peak(&mut self) {
        let engine = &mut self.engine;
        // Only while nothing is cached is what the engine counts the true figure.
        let _empty = self.caches.as_deref().map(|caches| caches.emptied(engine));
        self.engine.reset_peak();
    }

    /// Host bytes that book-keeping takes.
    pub(in crate::pool) fn footprint(&self) -> usize {
        let caches = self.caches.as_deref().map(Caches::lock_all);
        self.engine.footprint() + caches.map_or(0, |caches| caches.footprint())
    }
}
