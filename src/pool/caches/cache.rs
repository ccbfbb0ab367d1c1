#![forbid(unsafe_code)]
//! One thread's cache in one pool.
//!
//! Its table holds the blocks that it adopted: those that are handed out, and those that were freed
//! and wait in the list of their size for the next request of that size. For the engine both are
//! live.

use crate::alloc::address_map::AddressMap;
use crate::alloc::host_memory::TryPush;
use crate::alloc::{Engine, HostMemoryExhausted, Request};
use crate::size::{GRAIN, GRAIN_BITS};

/// The largest blocks that are cached.
pub(super) const LARGEST: u64 = 1 << 20;
/// The most bytes that one cache keeps.
const MOST_BYTES: u64 = 64 << 20;
/// The most blocks that one cache keeps.
const MOST_CACHED: u64 = 2048;
/// The most blocks in a table, handed out or cached, which bounds what a table takes of the host.
const MOST_OWNED: usize = 1 << 14;

/// After so many requests that it could not serve, a cache is judged by those that it did serve.
const JUDGED_AFTER: u32 = 256;
/// If those were fewer, it rests for so many requests of its thread: the sizes vary too much for the memory that is
/// free, and most blocks that are cached only have to be freed again for others.
const REST: u32 = 4096;

/// A list for each size.
const CLASSES: usize = (LARGEST >> GRAIN_BITS) as usize;
/// In [`Node::next`]: the end of a list.
const END: u32 = u32::MAX;
/// In [`Node::next`]: the block is handed out, so that it is in no list.
const HANDED_OUT: u32 = u32::MAX - 1;

/// A block.
#[derive(Debug)]
struct Node {
    addr: u64,
    /// The next one in the list of its size, or of vacant nodes.
    next: u32,
    class: u16,
    /// By how much less than its size was asked for.
    shortfall: u8,
}

/// Why a cache does not take a block back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is not in the table.
    NotOwned,
    /// It is free already.
    Cached,
    /// There is no room for it.
    Full,
    /// The cache rests.
    Resting,
}

/// A cache. In whole cache lines, so that threads do not share any.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Cache {
    /// The first cached block of each size. Empty until the first block is adopted.
    heads: Vec<u32>,
    nodes: Vec<Node>,
    vacant: u32,
    /// From a block's address to its node.
    map: AddressMap,
    /// Cached blocks.
    pub(super) cached: u64,
    /// The bytes in them.
    pub(super) cached_bytes: u64,
    /// How many bytes it may hand out; the engine counts them as allocated already.
    pub(super) room: u64,
    /// What was asked for, of the blocks that are handed out.
    pub(super) requested: u64,
    /// Requests that it served.
    pub(super) allocations: u64,
    /// Blocks that it took back.
    pub(super) frees: u64,
    /// The cache that last took back a block which this cache's thread freed and did not own.
    pub(super) other: u8,
    /// Requests that it could not serve since it was last judged.
    missed: u32,
    /// What `allocations` was then.
    judged_at: u64,
    /// Requests that it will not try to serve.
    rest: u32,
    /// The class at which the next eviction begins.
    hand: usize,
    /// A bit for each class: its list may have blocks.
    filled: [u64; CLASSES / 64],
}

fn class_of(size: u64) -> usize {
    ((size >> GRAIN_BITS) as usize).wrapping_sub(1)
}

impl Node {
    fn size(&self) -> u64 {
        (u64::from(self.class) + 1) << GRAIN_BITS
    }

    fn requested(&self) -> u64 {
        self.size() - u64::from(self.shortfall)
    }
}

impl Cache {
    pub(super) const fn new() -> Self {
        Self {
            heads: Vec::new(),
            nodes: Vec::new(),
            vacant: END,
            map: AddressMap::new(),
            cached: 0,
            cached_bytes: 0,
            room: 0,
            requested: 0,
            allocations: 0,
            frees: 0,
            other: u8::MAX,
            missed: 0,
            judged_at: 0,
            rest: 0,
            hand: 0,
            filled: [0; CLASSES / 64],
        }
    }

    /// Whether blocks for a request may be cached.
    #[inline]
    pub(super) fn suits(request: &Request) -> bool {
        request.size <= LARGEST && request.align == GRAIN && request.usable_at.is_none()
    }

    /// Hands out a cached block for a request that suits. `None`: there is none of its size, or no room
    /// for it below the peak.
    #[inline]
    pub(super) fn take(&mut self, request: &Request) -> Option<u64> {
        let head = self.heads.get_mut(class_of(request.size))?;
        if *head == END || self.room < request.size {
            return None;
        }
        let node = &mut self.nodes[*head as usize];
        *head = node.next;
        node.next = HANDED_OUT;
        node.shortfall = (request.size - request.requested) as u8;
        let addr = node.addr;
        self.cached -= 1;
        self.cached_bytes -= request.size;
        self.room -= request.size;
        self.requested += request.requested;
        self.allocations += 1;
        Some(addr)
    }

    #[inline]
    fn find(&self, addr: u64) -> Option<u32> {
        self.map.get(addr, |id| self.nodes[id as usize].addr)
    }

    /// Takes back a block that it handed out.
    #[inline]
    pub(super) fn put(&mut self, addr: u64) -> Result<(), Refused> {
        let id = self.find(addr).ok_or(Refused::NotOwned)?;
        let node = &mut self.nodes[id as usize];
        if node.next != HANDED_OUT {
            return Err(Refused::Cached);
        }
        let (size, class) = (node.size(), usize::from(node.class));
        if self.rest > 0 {
            return Err(Refused::Resting);
        }
        if self.cached >= MOST_CACHED || self.cached_bytes + size > MOST_BYTES {
            return Err(Refused::Full);
        }
        let head = &mut self.heads[class];
        if *head == END {
            self.filled[class / 64] |= 1 << (class % 64);
        }
        self.requested -= node.requested();
        node.next = *head;
        *head = id;
        self.cached += 1;
        self.cached_bytes += size;
        self.room += size;
        self.frees += 1;
        Ok(())
    }

    /// Whether a block is cached: free for everybody but the engine.
    pub(super) fn is_cached(&self, addr: u64) -> bool {
        self.find(addr)
            .is_some_and(|id| self.nodes[id as usize].next != HANDED_OUT)
    }

    /// What was asked for, of a block that it handed out.
    pub(super) fn requested_of(&self, addr: u64) -> Option<u64> {
        self.find(addr)
            .map(|id| self.nodes[id as usize].requested())
    }

    /// It could not serve a request, for which the engine is asked.
    pub(super) fn miss(&mut self, engine: &mut Engine) {
        if self.rest > 0 {
            self.rest -= 1;
            self.judged_at = self.allocations;
            return;
        }
        self.missed += 1;
        if self.missed < JUDGED_AFTER {
            return;
        }
        if self.allocations - self.judged_at < u64::from(self.missed) {
            self.rest = REST;
            self.evict(engine, u64::MAX);
        }
        self.missed = 0;
        self.judged_at = self.allocations;
    }

    /// Adopts a block that the engine has just handed out. `false`: the table is full, or the cache rests.
    pub(super) fn adopt(
        &mut self,
        engine: &mut Engine,
        addr: u64,
        request: &Request,
        tag: u16,
    ) -> Result<bool, HostMemoryExhausted> {
        if self.map.len() >= MOST_OWNED || self.rest > 0 {
            return Ok(false);
        }
        if self.heads.is_empty() {
            self.heads
                .try_reserve_exact(CLASSES)
                .map_err(|_| HostMemoryExhausted)?;
            self.heads.resize(CLASSES, END);
        }
        self.map.reserve(|id| self.nodes[id as usize].addr)?;
        let node = Node {
            addr,
            next: HANDED_OUT,
            class: class_of(request.size) as u16,
            shortfall: (request.size - request.requested) as u8,
        };
        let id = if self.vacant == END {
            self.nodes.try_push(node)?;
            self.nodes.len() as u32 - 1
        } else {
            let id = self.vacant;
            let slot = &mut self.nodes[id as usize];
            self.vacant = slot.next;
            *slot = node;
            id
        };
        self.map.insert(addr, id);
        self.requested += request.requested;
        engine.adopt(addr, tag);
        Ok(true)
    }

    /// Gives a handed out block up to the engine, for which it is live as any other.
    pub(super) fn disown(&mut self, engine: &mut Engine, addr: u64) {
        if let Some(id) = self.find(addr) {
            let requested = self.nodes[id as usize].requested();
            self.requested -= requested;
            self.remove(id);
            engine.disown(addr, requested);
        }
    }

    /// Takes a block that is in no list out of the table.
    fn remove(&mut self, id: u32) {
        let addr = self.nodes[id as usize].addr;
        self.map.remove(addr, |id| self.nodes[id as usize].addr);
        self.nodes[id as usize].next = self.vacant;
        self.vacant = id;
    }

    /// The next class that has cached blocks.
    fn next_filled(&mut self) -> Option<usize> {
        let words = self.filled.len();
        // The hand's word twice: first from the hand on, in the end before it.
        for turn in 0..=words {
            let at = (self.hand / 64 + turn) % words;
            let mut word = self.filled[at];
            if turn == 0 {
                word &= u64::MAX << (self.hand % 64);
            }
            while word != 0 {
                let class = at * 64 + word.trailing_zeros() as usize;
                if self.heads[class] != END {
                    return Some(class);
                }
                self.filled[at] &= !(1 << (class % 64));
                word &= word - 1;
            }
        }
        None
    }

    /// Frees cached blocks until `bytes` are freed or none is left, one of each size in turn. Gives the
    /// bytes that were freed.
    pub(super) fn evict(&mut self, engine: &mut Engine, bytes: u64) -> u64 {
        let before = self.cached_bytes;
        while self.cached > 0 && before - self.cached_bytes < bytes {
            let Some(class) = self.next_filled() else {
                break;
            };
            self.hand = (class + 1) % CLASSES;
            let id = self.heads[class];
            let node = &self.nodes[id as usize];
            let (addr, size) = (node.addr, node.size());
            self.heads[class] = node.next;
            self.cached -= 1;
            self.cached_bytes -= size;
            self.remove(id);
            let freed = engine.free_uncounted(addr);
            debug_assert!(freed.is_ok_and(|block| block.size == size));
        }
        before - self.cached_bytes
    }

    /// Makes room where the cache is full: frees an eighth of what it keeps.
    pub(super) fn evict_some(&mut self, engine: &mut Engine) {
        let left = self.cached - self.cached.div_ceil(8);
        while self.cached > left {
            self.evict(engine, 1);
        }
    }

    /// Whether it has a block for a request.
    pub(super) fn has(&self, request: &Request) -> bool {
        let head = self.heads.get(class_of(request.size));
        Self::suits(request) && head.is_some_and(|&head| head != END)
    }

    /// Gets room for a request below the peak, and some more for later ones. `false`: the peak is too
    /// near, as long as other caches have room.
    pub(super) fn make_room(&mut self, engine: &mut Engine, bytes: u64) -> bool {
        let missing = bytes.saturating_sub(self.room);
        let below = engine.below_peak();
        if missing > below {
            return false;
        }
        if missing > 0 {
            let more = missing + (below - missing) / 8;
            engine.promise(more);
            self.room += more;
        }
        true
    }

    /// Gives its room back.
    pub(super) fn give_room(&mut self, engine: &mut Engine) {
        engine.take_promise(std::mem::take(&mut self.room));
    }

    /// Gives all blocks up: frees those that are cached; the others are the engine's.
    pub(super) fn give_up(&mut self, engine: &mut Engine) {
        self.evict(engine, u64::MAX);
        self.give_room(engine);
        for node in &self.nodes {
            if node.next == HANDED_OUT {
                engine.disown(node.addr, node.requested());
            }
        }
        self.forget();
    }

    /// Forgets all blocks, and returns what the table took to the host.
    pub(super) fn forget(&mut self) {
        *self = Self::new();
    }

    /// The bytes of the largest cached block; 0: there is none.
    pub(super) fn largest(&self) -> u64 {
        let class = self.heads.iter().rposition(|&head| head != END);
        class.map_or(0, |class| (class as u64 + 1) << GRAIN_BITS)
    }

    /// Host bytes that its tables take.
    pub(super) fn footprint(&self) -> usize {
        self.heads.capacity() * size_of::<u32>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.map.footprint()
    }

    /// Blocks in the table.
    pub(super) fn owned(&self) -> usize {
        self.map.len()
    }

    /// Names the first rule of its own that is broken, or that it breaks with the engine.
    pub(super) fn check(&self, engine: &Engine, tag: u16) -> Result<(), String> {
        let broken = |what: &str| Err(format!("cache {}: {what}", tag - 1));
        let (mut cached, mut bytes) = (0, 0);
        for (class, &head) in self.heads.iter().enumerate() {
            let mut id = head;
            while id != END {
                let Some(node) = self.nodes.get(id as usize) else {
                    return broken("a list names a node that does not exist");
                };
                if usize::from(node.class) != class || self.find(node.addr) != Some(id) {
                    return broken("a block in the list of another size, or not in the table");
                }
                if self.filled[class / 64] & 1 << (class % 64) == 0 {
                    return broken("a list with blocks that counts as empty");
                }
                cached += 1;
                bytes += node.size();
                if cached > self.cached {
                    return broken("more blocks in lists than are cached");
                }
                id = node.next;
            }
        }
        let (mut owned, mut requested) = (0, 0);
        for (id, node) in self.nodes.iter().enumerate() {
            if self.find(node.addr) != Some(id as u32) {
                continue;
            }
            owned += 1;
            if node.next == HANDED_OUT {
                requested += node.requested();
            }
            let block = engine.block_at(node.addr);
            if block.is_none_or(|block| block.size != node.size())
                || engine.tag(node.addr) != Some(tag)
            {
                return broken(&format!(
                    "the block at {:#x} is another one in the engine",
                    node.addr
                ));
            }
        }
        if (cached, bytes, requested) != (self.cached, self.cached_bytes, self.requested) {
            return broken("blocks and their sums do not agree");
        }
        if owned != self.map.len() {
            return broken("nodes and the table do not agree");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::Policy;

    fn engine() -> Engine {
        let mut engine = Engine::new(Policy::DEFAULT).unwrap();
        engine.add_region(1 << 30, 256 << 20, false).unwrap();
        engine
    }

    fn adopted(engine: &mut Engine, cache: &mut Cache, bytes: u64) -> u64 {
        let request = Request::new(bytes, 0).unwrap();
        let addr = engine.allocate(&request).unwrap().unwrap().addr;
        assert_eq!(cache.adopt(engine, addr, &request, 1), Ok(true));
        addr
    }

    #[test]
    fn a_block_goes_round() {
        let (mut engine, mut cache) = (engine(), Cache::new());
        let addr = adopted(&mut engine, &mut cache, 1000);
        assert_eq!((cache.requested, engine.usage().requested), (1000, 0));
        assert_eq!(cache.put(addr + 256), Err(Refused::NotOwned));
        assert_eq!(cache.put(addr), Ok(()));
        assert_eq!(cache.put(addr), Err(Refused::Cached));
        assert_eq!(cache.take(&Request::new(768, 0).unwrap()), None);
        assert_eq!(cache.take(&Request::new(769, 0).unwrap()), Some(addr));
        assert_eq!(cache.requested, 769);
        cache.check(&engine, 1).unwrap();
        cache.give_up(&mut engine);
        assert_eq!((cache.owned(), cache.requested), (0, 0));
        assert_eq!((engine.tag(addr), engine.usage().requested), (Some(0), 769));
        engine.free(addr, 0).unwrap();
        engine.check().unwrap();
    }

    #[test]
    fn evictions_take_from_each_size_in_turn() {
        let (mut engine, mut cache) = (engine(), Cache::new());
        let sizes = [256, LARGEST, 256, 64 * 256, 65 * 256, 256];
        let blocks = sizes.map(|size| adopted(&mut engine, &mut cache, size));
        for addr in blocks {
            cache.put(addr).unwrap();
        }
        assert_eq!(cache.largest(), LARGEST);
        assert_eq!(cache.evict(&mut engine, 257), 256 + 64 * 256);
        assert_eq!(cache.evict(&mut engine, 65 * 256 + 1), 65 * 256 + LARGEST);
        cache.check(&engine, 1).unwrap();
        assert_eq!(cache.largest(), 256);
        assert_eq!(cache.evict(&mut engine, u64::MAX), 512);
        assert_eq!((cache.owned(), cache.largest()), (0, 0));
        cache.check(&engine, 1).unwrap();
        engine.check_beside(0, cache.room).unwrap();
        cache.give_room(&mut engine);
        engine.check().unwrap();
        assert_eq!((engine.usage().live, engine.usage().allocated), (0, 0));
    }

    #[test]
    fn a_cache_is_bounded() {
        let (mut engine, mut cache) = (engine(), Cache::new());
        for size in [256, LARGEST] {
            let most = (MOST_BYTES / size).min(MOST_CACHED) as usize;
            let blocks: Vec<u64> = (0..=most)
                .map(|_| adopted(&mut engine, &mut cache, size))
                .collect();
            for &addr in &blocks[..most] {
                assert_eq!(cache.put(addr), Ok(()));
            }
            assert_eq!(cache.put(blocks[most]), Err(Refused::Full));
            cache.evict_some(&mut engine);
            assert_eq!(cache.put(blocks[most]), Ok(()));
            cache.give_up(&mut engine);
            assert_eq!((cache.owned(), engine.usage().live), (0, 0));
        }
    }
}
