//! Memory in the order of streams: allocations from pools, and what pools give back.
//!
//! Memory that another stream freed is given out when the free is complete, or when the allocating
//! stream waits for it already, or, where the device has no more, with a dependency on the free.

use super::pool::{PoolId, Segment};
use super::region::{Kind, Region};
use super::{BLOCK, UNIT, blocks, host_memory, space};
use crate::abi::memory::access_flags;
use crate::exec::{Point, Step, StreamId};
use crate::state::State;
use crate::status::{Code, Result};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Which frees the program has seen to be complete. Others a pool only takes as complete if it may
/// look for itself.
#[derive(Clone, Copy)]
enum Seen {
    Nothing,
    /// It has waited for a stream.
    Stream(StreamId),
    All,
}

impl State {
    /// Makes a block in the order of a stream, or a node of the graph that the stream is capturing.
    pub fn allocate_in_order(&mut self, stream: StreamId, id: PoolId, bytes: u64) -> Result<u64> {
        let pool = self.memory.pools.get(id)?;
        let of_device = pool.device();
        if bytes == 0 || pool.is_imported {
            return Err(Code::INVALID_VALUE);
        }
        if self.capture_for_operation(stream)?.is_some() {
            let device = of_device.ok_or(Code::NOT_SUPPORTED)?;
            return self.capture_allocation(stream, device, bytes);
        }
        let device = match of_device {
            Some(device) => device,
            None => self.stream_device(stream)?,
        };
        let taken = bytes
            .checked_next_multiple_of(UNIT)
            .ok_or(Code::OUT_OF_MEMORY)?;
        let (start, after) = self.take_from_pool(id, stream, taken)?;
        let fill = move || {
            // SAFETY: the block's segment stays as long as the point of this is not complete, and
            // nobody may use the block before.
            unsafe { space::fill_fresh(start, bytes) }
        };
        let after = after.into_iter().collect();
        let made = self.exec.push(stream, Step::Work(Arc::new(fill)), after);
        let buffer = self.memory.next_id();
        self.memory.regions.insert(Region {
            start,
            bytes,
            taken,
            id: buffer,
            context: None,
            device,
            sync_memops: false,
            kind: Kind::Pool {
                pool: id,
                made,
                on_host: of_device.is_none(),
            },
        });
        Ok(start)
    }

    /// Finds memory in a pool: what is free for the stream, else more of the device's, else what will
    /// be free.
    fn take_from_pool(
        &mut self,
        id: PoolId,
        stream: StreamId,
        taken: u64,
    ) -> Result<(u64, Option<Point>)> {
        let exec = &self.exec;
        let pool = self.memory.pools.get_mut(id)?;
        if pool.policies.opportunistic {
            pool.settle(|point| exec.is_complete(point));
        }
        let free = pool.find(taken, stream).or_else(|| {
            let follows = pool.policies.follow_events;
            let is_behind = |point| follows && exec.is_behind(stream, point);
            pool.find_behind(taken, is_behind)
        });
        if let Some(start) = free {
            pool.take(start, taken);
            return Ok((start, None));
        }
        let grown = self.grow_pool(id, taken).or_else(|code| {
            let device = self.memory.pools.get(id)?.device().ok_or(code)?;
            self.release_unused(device);
            self.grow_pool(id, taken).map_err(|_| code)
        });
        let pool = self.memory.pools.get_mut(id)?;
        match grown {
            Ok(start) => {
                pool.take(start, taken);
                Ok((start, None))
            }
            Err(code) if !pool.policies.internal_dependencies => Err(code),
            Err(code) => {
                let (start, after) = pool.find_pending(taken).ok_or(code)?;
                pool.take(start, taken);
                Ok((start, after))
            }
        }
    }

    /// Gives a pool a segment that has room for a block.
    fn grow_pool(&mut self, id: PoolId, taken: u64) -> Result<u64> {
        let bytes = taken
            .checked_next_multiple_of(BLOCK)
            .ok_or(Code::OUT_OF_MEMORY)?;
        let pool = self.memory.pools.get(id)?;
        let device = pool.device();
        if bytes > pool.most().saturating_sub(pool.reserved) {
            return Err(Code::OUT_OF_MEMORY);
        }
        let Some(device) = device else {
            return self.add_segment(id, bytes);
        };
        self.take_capacity(device, bytes)?;
        self.add_segment(id, bytes)
            .inspect_err(|_| self.give_capacity(device, bytes))
    }

    fn add_segment(&mut self, id: PoolId, bytes: u64) -> Result<u64> {
        let memory = &mut self.memory;
        let pool = memory.pools.get_mut(id)?;
        let offset = pool.file_end;
        let start = match &pool.file {
            None if pool.device().is_none() => host_memory::map_pages(bytes)?.0,
            None => blocks::take_pages(&mut memory.addresses, bytes)?,
            Some(file) => {
                let file = file.as_raw_fd();
                let start = memory.addresses.take(bytes, BLOCK, 0)?;
                let shown = space::lengthen(file, offset + bytes)
                    .and_then(|()| space::show(Some(file), start, bytes, offset, false))
                    .and_then(|()| space::protect(start, bytes, access_flags::READ_WRITE));
                if let Err(code) = shown {
                    // Where even that fails the addresses stay out of use.
                    if space::hide(start, bytes).is_ok() {
                        memory.addresses.give(start, bytes);
                    }
                    return Err(code);
                }
                pool.file_end += bytes;
                start
            }
        };
        pool.add_segment(start, Segment { bytes, offset });
        Ok(start)
    }

    /// Gives a segment back that nobody uses.
    fn remove_segment(&mut self, id: PoolId, start: u64, segment: Segment) {
        let memory = &mut self.memory;
        let Ok(pool) = memory.pools.get(id) else {
            return;
        };
        let device = pool.device();
        match &pool.file {
            None if device.is_none() => host_memory::unmap_pages(start, segment.bytes),
            None => blocks::give_pages(&mut memory.addresses, start, segment.bytes),
            Some(file) => {
                space::punch(Some(file.as_raw_fd()), segment.offset, segment.bytes);
                if space::hide(start, segment.bytes).is_ok() {
                    memory.addresses.give(start, segment.bytes);
                }
            }
        }
        if let Some(device) = device {
            self.give_capacity(device, segment.bytes);
        }
    }

    /// Frees a block in the order of a stream, or as a node of the graph that the stream is capturing.
    pub fn free_in_order(&mut self, stream: StreamId, start: u64) -> Result {
        if self.capture_for_operation(stream)?.is_some() {
            return self.capture_free(stream, start);
        }
        if self.graphs.describe_memory(start).is_ok() {
            // Work on it is over when this is.
            self.exec.push(stream, Step::Nothing, Vec::new());
            let freed = self.free_graph_memory(start);
            return freed.unwrap_or(Err(Code::INVALID_VALUE));
        }
        let region = self.memory.regions.at(start).ok_or(Code::INVALID_VALUE)?;
        let (bytes, taken) = (region.bytes, region.taken);
        match region.kind {
            Kind::Pool { pool, .. } => {
                let fill = move || {
                    // SAFETY: the block's segment stays as long as the point of this is not complete.
                    unsafe { space::fill_freed(start, taken) }
                };
                let point = self
                    .exec
                    .push(stream, Step::Work(Arc::new(fill)), Vec::new());
                self.memory.regions.remove(start);
                self.memory
                    .pools
                    .get_mut(pool)?
                    .give(start, taken, Some(point));
            }
            Kind::PoolImport { pool, pages } => {
                let point = self.exec.push(stream, Step::Nothing, Vec::new());
                self.memory.regions.remove(start);
                let pool = self.memory.pools.get_mut(pool)?;
                pool.remove_import(bytes);
                pool.leaving.push((point, pages.0, pages.1));
            }
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    /// `cuMemFree` of a pool's block: the program has waited for all that uses it, if not for its
    /// making.
    pub(super) fn free_pool_block(&mut self, start: u64) {
        let Some(region) = self.memory.regions.remove(start) else {
            return;
        };
        let exec = &self.exec;
        let pools = &mut self.memory.pools;
        match region.kind {
            Kind::Pool { pool: id, made, .. } => {
                let Ok(pool) = pools.get_mut(id) else {
                    return;
                };
                if exec.is_complete(made) {
                    // SAFETY: the block's segment is there, and nobody uses the block.
                    unsafe { space::fill_freed(start, region.taken) };
                    pool.give(start, region.taken, None);
                } else {
                    pool.give(start, region.taken, Some(made));
                }
                if pool.is_destroyed {
                    // It cannot fail: the pool is there.
                    let _ = self.trim_pool(id, 0, Seen::Nothing);
                }
            }
            Kind::PoolImport { pool, pages } => {
                if let Ok(pool) = pools.get_mut(pool) {
                    pool.remove_import(region.bytes);
                }
                self.hide_import(pages);
                self.memory.pools.forget_if_done(pool);
            }
            _ => {}
        }
    }

    pub(super) fn hide_import(&mut self, (at, length): (u64, u64)) {
        if space::hide(at, length).is_ok() {
            self.memory.addresses.give(at, length);
        }
    }

    /// `cuMemPoolDestroy`.
    pub fn destroy_pool(&mut self, handle: u64) -> Result {
        let id = self.memory.pools.by_handle(handle)?;
        self.memory.pools.destroy(id)?;
        self.trim_pool(id, 0, Seen::Nothing)
    }

    /// Releases segments until a pool reserves no more than `kept` bytes, or none is free.
    fn trim_pool(&mut self, id: PoolId, kept: u64, seen: Seen) -> Result {
        let exec = &self.exec;
        let pool = self.memory.pools.get_mut(id)?;
        let looks = pool.policies.opportunistic;
        pool.settle(|point| {
            let is_seen = match seen {
                Seen::Nothing => looks,
                Seen::Stream(stream) => looks || point.stream == stream,
                Seen::All => true,
            };
            is_seen && exec.is_complete(point)
        });
        let gone = |&(point, ..): &(Point, u64, u64)| exec.is_complete(point);
        let leaving: Vec<_> = pool.leaving.iter().copied().filter(gone).collect();
        pool.leaving.retain(|entry| !gone(entry));
        for (_, at, length) in leaving {
            self.hide_import((at, length));
        }
        loop {
            let pool = self.memory.pools.get_mut(id)?;
            if pool.reserved <= kept {
                break;
            }
            let Some((start, segment)) = pool.remove_free_segment() else {
                break;
            };
            self.remove_segment(id, start, segment);
        }
        self.memory.pools.forget_if_done(id);
        Ok(())
    }

    /// `cuMemPoolTrimTo`: at least `kept` bytes stay reserved.
    pub fn trim_pool_to(&mut self, handle: u64, kept: u64) -> Result {
        let id = self.memory.pools.by_handle(handle)?;
        let exec = &self.exec;
        let pool = self.memory.pools.get_mut(id)?;
        pool.settle(|point| exec.is_complete(point));
        while let Some((start, segment)) = self.memory.pools.get_mut(id)?.remove_if_above(kept) {
            self.remove_segment(id, start, segment);
        }
        Ok(())
    }

    /// Called at each point where a stream, context or device was waited for: pools fall to their
    /// release thresholds.
    pub fn trim_pools(&mut self, stream: Option<StreamId>) {
        self.release_leaving();
        let seen = stream.map_or(Seen::All, Seen::Stream);
        for id in self.memory.pools.ids() {
            let Ok(pool) = self.memory.pools.get(id) else {
                continue;
            };
            let kept = if pool.is_destroyed {
                0
            } else {
                pool.policies.threshold
            };
            // It cannot fail: the pool is there.
            let _ = self.trim_pool(id, kept, seen);
        }
    }

    /// Gives back what the pools of a device hold and do not use, before it is out of memory.
    pub(super) fn release_unused(&mut self, device: usize) {
        for id in self.memory.pools.ids() {
            if self
                .memory
                .pools
                .get(id)
                .is_ok_and(|pool| pool.device() == Some(device))
            {
                // It cannot fail: the pool is there.
                let _ = self.trim_pool(id, 0, Seen::Nothing);
            }
        }
    }
}
