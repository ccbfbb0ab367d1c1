//! Opaque handles: numbers that look like pointers, recycled like them.

/// The things of one kind by their handles. A handle that was removed is the next to be given out, as
/// with the driver, so that a program that keeps one too long meets another thing under it.
#[derive(Debug)]
pub struct Table<T> {
    base: u64,
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

/// Handles are multiples of this.
const STEP: u64 = 64;

impl<T> Table<T> {
    /// An empty table. `kind` tells the handles of different tables apart.
    pub const fn new(kind: u64) -> Self {
        Self {
            base: 0x0fc0_0000_0000 + (kind << 32),
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    fn index(&self, handle: u64) -> Option<usize> {
        let distance = handle.checked_sub(self.base)?;
        (distance % STEP == 0).then_some((distance / STEP) as usize)
    }

    /// Puts a thing in and gives its handle.
    pub fn insert(&mut self, thing: T) -> u64 {
        let index = self.free.pop().unwrap_or(self.slots.len());
        if index == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[index] = Some(thing);
        self.base + index as u64 * STEP
    }

    /// Takes a thing out.
    pub fn remove(&mut self, handle: u64) -> Option<T> {
        let index = self.index(handle)?;
        let thing = self.slots.get_mut(index)?.take()?;
        self.free.push(index);
        Some(thing)
    }

    /// The thing of a handle.
    pub fn get(&self, handle: u64) -> Option<&T> {
        self.slots.get(self.index(handle)?)?.as_ref()
    }

    /// The thing of a handle.
    pub fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        let index = self.index(handle)?;
        self.slots.get_mut(index)?.as_mut()
    }

    /// All handles with their things.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let base = self.base;
        let slots = self.slots.iter().enumerate();
        slots.filter_map(move |(index, slot)| Some((base + index as u64 * STEP, slot.as_ref()?)))
    }

    /// How many things there are.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
