//! Blocks of device memory: their addresses, and the pages behind them.
//!
//! Small blocks share chunks of [`BLOCK`] bytes, which are accessible as long as there is any block in
//! them. Larger ones have their pages to themselves, and lose them when they go.

use super::ranges::Ranges;
use super::{BLOCK, SMALL, UNIT, space};
use crate::abi::memory::access_flags;
use crate::status::{Code, Result};
use std::collections::BTreeMap;

/// What small blocks have of a chunk. The rest is never free, so that free ranges of two chunks never
/// touch, and no block is in both.
const CHUNK: u64 = BLOCK - UNIT;

/// Rounds a request up to what it takes: small ones to [`UNIT`] bytes, others to [`BLOCK`] bytes.
pub fn rounded(bytes: u64) -> Result<u64> {
    let unit = if bytes < SMALL { UNIT } else { BLOCK };
    bytes
        .checked_next_multiple_of(unit)
        .ok_or(Code::OUT_OF_MEMORY)
}

/// The free addresses of the window.
#[derive(Debug, Default)]
pub struct Addresses {
    /// `None` until there is a window.
    free: Option<Ranges>,
}

impl Addresses {
    fn free(&mut self) -> Result<&mut Ranges> {
        match &mut self.free {
            Some(free) => Ok(free),
            none => {
                let (base, length) = space::bounds()?;
                let free = none.insert(Ranges::default());
                free.give(base, length);
                Ok(free)
            }
        }
    }

    /// Takes addresses, at the wished place if that is free.
    pub fn take(&mut self, length: u64, alignment: u64, wish: u64) -> Result<u64> {
        let free = self.free()?;
        if wish != 0 && wish % alignment == 0 && free.take_at(wish, length) {
            return Ok(wish);
        }
        free.take(length, alignment).ok_or(Code::OUT_OF_MEMORY)
    }

    /// Gives addresses back.
    pub fn give(&mut self, at: u64, length: u64) {
        if let Some(free) = &mut self.free {
            free.give(at, length);
        }
    }
}

/// The chunks of small blocks of one device.
#[derive(Debug, Default)]
struct Chunks {
    free: Ranges,
    /// How many blocks are in each chunk.
    blocks: BTreeMap<u64, u32>,
}

/// All chunks.
#[derive(Debug, Default)]
pub struct Blocks {
    devices: BTreeMap<usize, Chunks>,
}

impl Blocks {
    /// Takes a block of a [`rounded`] size, the first `bytes` of it with what fresh memory holds.
    pub fn take(
        &mut self,
        addresses: &mut Addresses,
        device: usize,
        bytes: u64,
        taken: u64,
    ) -> Result<u64> {
        let at = if taken < SMALL {
            self.take_small(addresses, device, taken)?
        } else {
            take_pages(addresses, taken)?
        };
        // SAFETY: the pages are accessible, and the block is nobody's yet.
        unsafe { space::fill_fresh(at, bytes) };
        Ok(at)
    }

    /// Gives a block back.
    pub fn give(&mut self, addresses: &mut Addresses, device: usize, at: u64, taken: u64) {
        if taken < SMALL {
            self.give_small(addresses, device, at, taken);
        } else {
            give_pages(addresses, at, taken);
        }
    }

    fn take_small(&mut self, addresses: &mut Addresses, device: usize, taken: u64) -> Result<u64> {
        let chunks = self.devices.entry(device).or_default();
        let at = match chunks.free.take(taken, UNIT) {
            Some(at) => at,
            None => {
                let chunk = take_pages(addresses, BLOCK)?;
                chunks.blocks.insert(chunk, 0);
                chunks.free.give(chunk, CHUNK);
                chunks.free.take(taken, UNIT).ok_or(Code::OUT_OF_MEMORY)?
            }
        };
        if let Some(blocks) = chunks.blocks.get_mut(&(at / BLOCK * BLOCK)) {
            *blocks += 1;
        }
        Ok(at)
    }

    fn give_small(&mut self, addresses: &mut Addresses, device: usize, at: u64, taken: u64) {
        // SAFETY: the chunk is accessible as long as the block is in it, and the block is nobody's.
        unsafe { space::fill_freed(at, taken) };
        let chunks = self.devices.entry(device).or_default();
        chunks.free.give(at, taken);
        let chunk = at / BLOCK * BLOCK;
        let Some(blocks) = chunks.blocks.get_mut(&chunk) else {
            return;
        };
        *blocks -= 1;
        if *blocks == 0 {
            chunks.blocks.remove(&chunk);
            chunks.free.take_at(chunk, CHUNK);
            give_pages(addresses, chunk, BLOCK);
        }
    }
}

/// Takes whole pages, accessible.
pub fn take_pages(addresses: &mut Addresses, length: u64) -> Result<u64> {
    let at = addresses.take(length, BLOCK, 0)?;
    if let Err(code) = space::protect(at, length, access_flags::READ_WRITE) {
        addresses.give(at, length);
        return Err(code);
    }
    Ok(at)
}

/// Gives whole pages back: what they held is gone, and they are inaccessible.
pub fn give_pages(addresses: &mut Addresses, at: u64, length: u64) {
    if let Ok(offset) = space::offset(at) {
        space::punch(None, offset, length);
    }
    // Where that fails for want of mappings the empty pages stay accessible, and nothing else is lost.
    let _ = space::protect(at, length, access_flags::NONE);
    addresses.give(at, length);
}
