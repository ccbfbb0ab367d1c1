#![forbid(unsafe_code)]
//! Parked chunks: freed, but in no lane, until more than the work of one stream is done.

use super::chunk::{ChunkId, Lane, State};
use super::engine::{Block, Engine, NotLive};

impl Engine {
    /// Parks the block that begins at `addr`: it is freed, but in no lane until [`Engine::end_free`].
    pub fn begin_free(&mut self, addr: u64) -> Result<(ChunkId, Block), NotLive> {
        self.begin_free_if(addr, |_| true)?.ok_or(NotLive)
    }

    /// [`Engine::begin_free`] for a block whose tag `may_go` accepts; `None`: it does not.
    #[inline]
    pub fn begin_free_if(
        &mut self,
        addr: u64,
        may_go: impl FnOnce(u16) -> bool,
    ) -> Result<Option<(ChunkId, Block)>, NotLive> {
        let ended = self.end_live_if(addr, may_go, |chunk| {
            chunk.state = State::Parked;
            chunk.tag = 0;
        })?;
        let Some((id, block)) = ended else {
            return Ok(None);
        };
        let region = self.chunks[id].region;
        self.regions[region].busy += 1;
        self.lanes.parked.0 += block.size;
        self.lanes.parked.1 += 1;
        Ok(Some((id, block)))
    }

    /// Lists a parked chunk in an open lane, at time `freed_at` of its clock. Not for chunks parked
    /// before [`Engine::free_all`] or [`Engine::forget_region`], which end them.
    /// Gives its bytes.
    pub fn end_free(&mut self, chunk: ChunkId, lane: Lane, freed_at: u64) -> u64 {
        match self
            .chunks
            .get(chunk)
            .map(|chunk| (chunk.state, chunk.size))
        {
            Some((State::Parked, bytes)) => {
                self.unpark(chunk);
                self.list_freed(chunk, lane, freed_at);
                bytes
            }
            _ => {
                debug_assert!(false, "chunk {chunk} is parked");
                0
            }
        }
    }

    /// Counts a parked chunk out, which is to be given another state.
    pub(super) fn unpark(&mut self, id: ChunkId) {
        let chunk = &self.chunks[id];
        self.lanes.parked.0 -= chunk.size;
        self.lanes.parked.1 -= 1;
        self.regions[chunk.region].busy -= 1;
    }

    /// Bytes in parked chunks.
    pub fn parked_bytes(&self) -> u64 {
        self.lanes.parked.0
    }

    /// Parked chunks.
    pub fn parked_chunks(&self) -> usize {
        self.lanes.parked.1
    }
}
