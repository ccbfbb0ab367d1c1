#![forbid(unsafe_code)]
//! Book-keeping that says when the host has no memory left for it.

/// The host has no memory left for book-keeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemoryExhausted;

/// Growing a vector without ending the process when there is no memory.
pub trait TryPush<T> {
    /// Appends `item`.
    fn try_push(&mut self, item: T) -> Result<(), HostMemoryExhausted>;
}

impl<T> TryPush<T> for Vec<T> {
    fn try_push(&mut self, item: T) -> Result<(), HostMemoryExhausted> {
        self.try_reserve(1).map_err(|_| HostMemoryExhausted)?;
        self.push(item);
        Ok(())
    }
}
