//! Memory pools: what they hold, and who may have it when.
//!
//! A pool holds segments of device memory, and gives out pieces of them in the order of streams: a
//! piece that was freed at a [`Point`] of a stream is at once that stream's own again, and anybody's
//! when the point is complete.

use super::{Access, BLOCK};
use crate::abi::memory::{MemLocation, MemPoolProps, access_flags, location};
use crate::exec::{Point, StreamId};
use crate::status::{Code, Result};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

/// Names a pool. Never given twice, other than its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PoolId(pub u64);

/// What the program sets, and is told again.
#[derive(Clone, Copy, Debug)]
pub struct Policies {
    pub follow_events: bool,
    pub opportunistic: bool,
    pub internal_dependencies: bool,
    /// Reserved bytes that are kept when somebody synchronises.
    pub threshold: u64,
}

/// Memory that a pool has from the device.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub bytes: u64,
    /// Where it is in the pool's own file, if that has one.
    pub offset: u64,
}

/// A piece of a segment that is free.
#[derive(Clone, Copy, Debug)]
struct Piece {
    bytes: u64,
    /// Complete when everybody may have it.
    after: Option<Point>,
}

/// A pool.
#[derive(Debug)]
pub struct Pool {
    pub handle: u64,
    pub props: MemPoolProps,
    pub is_default: bool,
    /// From another process: its memory can be looked at, and no new memory made.
    pub is_imported: bool,
    /// It goes when its last block does.
    pub is_destroyed: bool,
    /// Where its memory is, if that can be shared.
    pub file: Option<OwnedFd>,
    pub policies: Policies,
    pub reserved: u64,
    pub reserved_high: u64,
    pub used: u64,
    pub used_high: u64,
    /// `CUmemAccess_flags` of other places.
    access: BTreeMap<MemLocation, u32>,
    segments: BTreeMap<u64, Segment>,
    pieces: BTreeMap<u64, Piece>,
    /// The end of the file so far; segments of a file are not used again.
    pub file_end: u64,
    /// Imported pages that go when a point is complete.
    pub leaving: Vec<(Point, u64, u64)>,
}

/// When two neighbours are one: they are for the same takers.
fn joint(one: Option<Point>, other: Option<Point>) -> Option<Option<Point>> {
    match (one, other) {
        (None, None) => Some(None),
        (Some(one), Some(other)) if one.stream == other.stream => Some(Some(Point {
            stream: one.stream,
            number: one.number.max(other.number),
        })),
        _ => None,
    }
}

impl Pool {
    pub fn new(handle: u64, props: MemPoolProps, file: Option<OwnedFd>) -> Self {
        Self {
            handle,
            props,
            is_default: false,
            is_imported: false,
            is_destroyed: false,
            file,
            policies: Policies {
                follow_events: true,
                opportunistic: true,
                internal_dependencies: true,
                threshold: 0,
            },
            reserved: 0,
            reserved_high: 0,
            used: 0,
            used_high: 0,
            access: BTreeMap::new(),
            segments: BTreeMap::new(),
            pieces: BTreeMap::new(),
            file_end: 0,
            leaving: Vec::new(),
        }
    }

    /// The most that it may reserve.
    pub fn most(&self) -> u64 {
        match self.props.max_size as u64 {
            0 => u64::MAX,
            most => most.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX),
        }
    }

    /// Where its memory is.
    pub fn place(&self) -> MemLocation {
        self.props.location
    }

    /// The device that its memory is on, if it is on one.
    pub fn device(&self) -> Option<usize> {
        (self.place().kind == location::DEVICE).then_some(self.place().id as usize)
    }

    /// Where a place's access is noted: there is one for all of the host.
    fn access_place(&self, place: MemLocation) -> MemLocation {
        if place.kind != location::DEVICE && self.device().is_none() {
            return self.place();
        }
        place
    }

    /// What a device, or the host, may do with its memory.
    pub fn access(&self, place: MemLocation) -> u32 {
        let place = self.access_place(place);
        if place == self.place() {
            return access_flags::READ_WRITE;
        }
        self.access
            .get(&place)
            .copied()
            .unwrap_or(access_flags::NONE)
    }

    /// Sets what devices may do, all or nothing. Where the memory is everything may always be done, and
    /// the host never has access to a device's pools.
    pub fn set_access(&mut self, changes: &[(MemLocation, u32)]) -> Result {
        let is_possible = |&(place, flags): &(MemLocation, u32)| {
            let is_own = self.access_place(place) == self.place();
            match flags {
                access_flags::READ_WRITE => is_own || place.kind == location::DEVICE,
                access_flags::NONE | access_flags::READ => {
                    !is_own && place.kind == location::DEVICE
                }
                _ => false,
            }
        };
        if !changes.iter().all(is_possible) {
            return Err(Code::INVALID_VALUE);
        }
        self.access.extend(changes.iter().copied());
        Ok(())
    }

    fn segment_of(&self, at: u64) -> Option<(u64, Segment)> {
        let (&start, &segment) = self.segments.range(..=at).next_back()?;
        (at < start + segment.bytes).then_some((start, segment))
    }

    /// Where in the pool's file an address is, and how far the segment goes from there.
    pub fn file_offset(&self, at: u64) -> Option<u64> {
        let (start, segment) = self.segment_of(at)?;
        Some(segment.offset + (at - start))
    }

    /// Takes a new segment in, all of it free.
    pub fn add_segment(&mut self, start: u64, segment: Segment) {
        self.segments.insert(start, segment);
        self.reserved += segment.bytes;
        self.reserved_high = self.reserved_high.max(self.reserved);
        let bytes = segment.bytes;
        self.pieces.insert(start, Piece { bytes, after: None });
    }

    /// Takes out a segment that is free and that everybody may have.
    pub fn remove_free_segment(&mut self) -> Option<(u64, Segment)> {
        self.remove_segment_of(u64::MAX)
    }

    /// Takes out such a segment, if at least so many bytes stay reserved.
    pub fn remove_if_above(&mut self, kept: u64) -> Option<(u64, Segment)> {
        self.remove_segment_of(self.reserved.checked_sub(kept)?)
    }

    fn remove_segment_of(&mut self, most: u64) -> Option<(u64, Segment)> {
        let (&start, &segment) = self.segments.iter().find(|(start, segment)| {
            let piece = self.pieces.get(start);
            let is_free = |piece: &Piece| piece.bytes == segment.bytes && piece.after.is_none();
            segment.bytes <= most && piece.is_some_and(is_free)
        })?;
        self.segments.remove(&start);
        self.pieces.remove(&start);
        self.reserved -= segment.bytes;
        Some((start, segment))
    }

    /// The shortest free piece that is long enough, and that a stream may have without waiting.
    pub fn find(&self, bytes: u64, stream: StreamId) -> Option<u64> {
        self.find_piece(bytes, |after| {
            after.is_none_or(|point| point.stream == stream)
        })
        .map(|(start, _)| start)
    }

    /// The shortest that is long enough, and that a stream waits for already.
    pub fn find_behind(&self, bytes: u64, is_behind: impl Fn(Point) -> bool) -> Option<u64> {
        self.find_piece(bytes, |after| after.is_some_and(&is_behind))
            .map(|(start, _)| start)
    }

    /// The shortest that is long enough, and what to wait for.
    pub fn find_pending(&self, bytes: u64) -> Option<(u64, Option<Point>)> {
        self.find_piece(bytes, |_| true)
    }

    fn find_piece(
        &self,
        bytes: u64,
        is_meant: impl Fn(Option<Point>) -> bool,
    ) -> Option<(u64, Option<Point>)> {
        let fitting = self.pieces.iter().filter(|(_, piece)| piece.bytes >= bytes);
        fitting
            .filter(|(_, piece)| is_meant(piece.after))
            .min_by_key(|(_, piece)| piece.bytes)
            .map(|(&start, piece)| (start, piece.after))
    }

    /// Takes the first bytes of a free piece.
    pub fn take(&mut self, start: u64, bytes: u64) {
        if let Some(piece) = self.pieces.remove(&start) {
            if piece.bytes > bytes {
                let rest = Piece {
                    bytes: piece.bytes - bytes,
                    after: piece.after,
                };
                self.pieces.insert(start + bytes, rest);
            }
        }
        self.used += bytes;
        self.used_high = self.used_high.max(self.used);
    }

    /// Gives a piece back, for all when a point is complete.
    pub fn give(&mut self, start: u64, bytes: u64, after: Option<Point>) {
        self.used -= bytes;
        self.insert_piece(start, bytes, after);
    }

    fn insert_piece(&mut self, mut start: u64, mut bytes: u64, mut after: Option<Point>) {
        let segment = self.segment_of(start).map(|(start, _)| start);
        let is_beside = |at: u64| self.segment_of(at).map(|(start, _)| start) == segment;
        if let Some((&before, &piece)) = self.pieces.range(..start).next_back() {
            if before + piece.bytes == start && is_beside(before) {
                if let Some(both) = joint(piece.after, after) {
                    (start, bytes, after) = (before, bytes + piece.bytes, both);
                }
            }
        }
        let end = start + bytes;
        if let Some(&piece) = self.pieces.get(&end) {
            if is_beside(end) {
                if let Some(both) = joint(after, piece.after) {
                    (bytes, after) = (bytes + piece.bytes, both);
                    self.pieces.remove(&end);
                }
            }
        }
        self.pieces.insert(start, Piece { bytes, after });
    }

    /// Counts a block of another process's.
    pub fn add_import(&mut self, bytes: u64) {
        self.used += bytes;
        self.used_high = self.used_high.max(self.used);
    }

    /// Counts it no more.
    pub fn remove_import(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    /// Opens pieces to all whose points are complete.
    pub fn settle(&mut self, is_complete: impl Fn(Point) -> bool) {
        let settled: Vec<(u64, u64)> = self
            .pieces
            .iter()
            .filter(|(_, piece)| piece.after.is_some_and(&is_complete))
            .map(|(&start, piece)| (start, piece.bytes))
            .collect();
        // A piece may be swallowed by one that was settled just before it.
        for &(start, _) in &settled {
            self.pieces.remove(&start);
        }
        for (start, bytes) in settled {
            self.insert_piece(start, bytes, None);
        }
    }

    /// Whether an address is in a piece that work may still be on: it was freed, but not for all yet.
    pub fn is_pending(&self, address: u64) -> bool {
        let before = self.pieces.range(..=address).next_back();
        before.is_some_and(|(start, piece)| address - start < piece.bytes && piece.after.is_some())
            || self
                .leaving
                .iter()
                .any(|&(_, start, bytes)| address.wrapping_sub(start) < bytes)
    }

    /// Whether nothing of it is left.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty() && self.used == 0 && self.leaving.is_empty()
    }
}

/// All pools.
#[derive(Debug)]
pub struct Pools {
    pools: BTreeMap<PoolId, Pool>,
    handles: crate::handle::Table<PoolId>,
    made: u64,
    default: BTreeMap<MemLocation, PoolId>,
    current: BTreeMap<MemLocation, PoolId>,
}

impl Pools {
    pub fn new() -> Self {
        Self {
            pools: BTreeMap::new(),
            handles: crate::handle::Table::new(super::POOL_HANDLES),
            made: 0,
            default: BTreeMap::new(),
            current: BTreeMap::new(),
        }
    }

    /// Takes a pool in.
    pub fn insert(&mut self, make: impl FnOnce(u64) -> Pool) -> PoolId {
        self.made += 1;
        let id = PoolId(self.made);
        let handle = self.handles.insert(id);
        self.pools.insert(id, make(handle));
        id
    }

    /// The pool that a program names.
    pub fn by_handle(&self, handle: u64) -> Result<PoolId> {
        self.handles.get(handle).copied().ok_or(Code::INVALID_VALUE)
    }

    pub fn get(&self, id: PoolId) -> Result<&Pool> {
        self.pools.get(&id).ok_or(Code::INVALID_VALUE)
    }

    pub fn get_mut(&mut self, id: PoolId) -> Result<&mut Pool> {
        self.pools.get_mut(&id).ok_or(Code::INVALID_VALUE)
    }

    /// All pools, also those that are on their way out.
    pub fn ids(&self) -> Vec<PoolId> {
        self.pools.keys().copied().collect()
    }

    /// Whether an address is in memory that was freed in the order of a stream which may not have come
    /// so far.
    pub fn is_pending(&self, address: u64) -> bool {
        self.pools.values().any(|pool| pool.is_pending(address))
    }

    /// How many pools programs have made or imported, and not destroyed.
    pub fn live(&self) -> u64 {
        let pools = self.pools.values();
        pools
            .filter(|pool| !pool.is_default && !pool.is_destroyed)
            .count() as u64
    }

    /// Whether a device may touch a pool's memory.
    pub fn permits(&self, id: PoolId, device: usize, access: Access) -> bool {
        let needed = match access {
            Access::Read => access_flags::READ,
            Access::Write => access_flags::READ_WRITE,
        };
        let pool = self.pools.get(&id);
        let place = MemLocation::of_device(device as i32);
        pool.is_some_and(|pool| pool.access(place) & needed == needed)
    }

    /// A place's default pool, if it was ever asked for.
    pub fn default_of(&self, place: MemLocation) -> Option<PoolId> {
        self.default.get(&place).copied()
    }

    pub fn set_default(&mut self, place: MemLocation, id: PoolId) {
        self.default.insert(place, id);
    }

    /// The pool that was made current at a place.
    pub fn current_of(&self, place: MemLocation) -> Option<PoolId> {
        self.current.get(&place).copied()
    }

    pub fn set_current(&mut self, place: MemLocation, id: PoolId) {
        self.current.insert(place, id);
    }

    /// The program's handle ends; the pool stays as long as it has blocks.
    pub fn destroy(&mut self, id: PoolId) -> Result {
        let pool = self.pools.get_mut(&id).ok_or(Code::INVALID_VALUE)?;
        if pool.is_default {
            return Err(Code::INVALID_VALUE);
        }
        pool.is_destroyed = true;
        self.handles.remove(pool.handle);
        self.current.retain(|_, current| *current != id);
        Ok(())
    }

    /// Forgets a pool that is destroyed and empty.
    pub fn forget_if_done(&mut self, id: PoolId) {
        let is_done = |pool: &Pool| pool.is_destroyed && pool.is_empty();
        if self.pools.get(&id).is_some_and(is_done) {
            self.pools.remove(&id);
        }
    }
}
