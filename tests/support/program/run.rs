//! Running a program, with everything checked after every operation.

use super::model::{self, At, Block, Model};
use super::op::{Failure, Gives, Op, Setup};
use super::watched::{Seen, Watched};
use luma::alloc::Located;
use luma::backend::Pages;
use luma::backend::simulated::SimulatedBackend;
use luma::config::Limit;
use luma::size::{GRAIN, round_up};
use luma::{Error, Pool, PoolConfig, Preset, Stats, Status};
use std::sync::Arc;

type Checked<T = ()> = Result<T, String>;

/// What an operation came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The pool refused it, as it may.
    Refused(Status),
}

/// A pool and its model.
pub struct Run {
    setup: Setup,
    device: Arc<Watched>,
    pool: Pool,
    model: Model,
    /// The armed failure, and the backend call that it is for.
    armed: Option<(u64, Failure)>,
}

fn backend_limit(bytes: u64) -> u64 {
    if bytes == 0 { u64::MAX } else { bytes }
}

impl Run {
    pub fn new(setup: Setup) -> Checked<Self> {
        let device = match setup.gives {
            Gives::Grains => SimulatedBackend::new(setup.capacity),
            Gives::WholePages => {
                SimulatedBackend::with_pages(setup.capacity, Pages::of(model::PAGE))
            }
            Gives::Segments => SimulatedBackend::without_pages(setup.capacity),
        };
        let device = Arc::new(Watched::new(device, backend_limit(setup.limit)));
        let config = PoolConfig {
            preset: setup.preset,
            memory_limit: Some(Limit::Bytes(setup.limit)),
            ..PoolConfig::default()
        };
        let pool = Pool::with_backend(device.clone(), &config)
            .map_err(|error| format!("no pool: {error}"))?;
        let model = Model {
            limit: setup.limit,
            ..Model::default()
        };
        Ok(Self {
            setup,
            device,
            pool,
            model,
            armed: None,
        })
    }

    /// Does one operation and checks everything.
    ///
    /// # Errors
    /// What did not agree with the model.
    pub fn step(&mut self, op: &Op) -> Checked<Outcome> {
        self.device.begin();
        let before = self.stats()?;
        let outcome = match *op {
            Op::Alloc { bytes, align } => self.allocate(bytes, align, &before)?,
            Op::Free { place } => self.free(place)?,
            Op::FreeForeign { address } => self.free_badly(address, &before)?,
            Op::FreeInside { place, offset } => {
                let address = pick(&self.model.live, place).map_or(offset, |block| {
                    block.addr + 1 + offset % block.size.saturating_sub(1).max(1)
                });
                self.free_badly(address, &before)?
            }
            Op::FreeAgain { place } => {
                let address = pick(&self.model.freed, place).unwrap_or_default();
                self.free_badly(address, &before)?
            }
            Op::EmptyCache => self.empty_cache(&before)?,
            Op::SetLimit { bytes } => self.set_limit(bytes, &before)?,
            Op::ResetPeak => self.reset_peak()?,
            Op::FailCall { call, failure } => {
                let device = &self.device.device;
                device.fail_call(call, failure.error());
                self.armed = Some((device.calls() + call, failure));
                Outcome::Done
            }
            Op::Inspect => self.inspect()?,
        };
        self.check(&before)?;
        if self.fired() {
            self.armed = None;
        }
        Ok(outcome)
    }

    /// Calls that the backend got so far.
    pub fn backend_calls(&self) -> u64 {
        self.device.device.calls()
    }

    /// Frees everything, empties the cache and closes the pool: nothing may be left.
    ///
    /// # Errors
    /// What did not agree with the model.
    pub fn finish(mut self) -> Checked {
        // Far enough away that it never comes.
        self.step(&Op::FailCall {
            call: 1 << 40,
            failure: Failure::OutOfMemory,
        })?;
        let blocks = self.model.live.len();
        // Half of the programs leave that to the pool.
        let frees = self.model.alloc_calls % 2 == 0;
        if frees {
            for place in (0..blocks).rev() {
                self.step(&Op::Free { place })?;
            }
            self.step(&Op::EmptyCache)?;
            let stats = self.stats()?;
            agree!(stats.reserved_bytes, 0, "reserved after all was given back");
            agree!(
                stats.backend_allocations,
                stats.backend_releases,
                "backend allocations and releases"
            );
        }
        self.device.seen().live = Default::default();
        let closed = self.pool.close().map_err(|error| error.to_string())?;
        let left = if frees { 0 } else { blocks as u64 };
        agree!(closed, left, "live blocks of the closed pool");
        agree!(self.device.device.used(), 0, "memory left with the pool");
        agree!(self.device.device.grants(), 0, "grants left with the pool");
        self.check_device()?;
        let status = self.pool.allocate(1, 0).map_err(|error| error.status());
        agree!(status, Err(Status::InvalidValue), "after the close");
        Ok(())
    }

    fn stats(&self) -> Checked<Stats> {
        self.pool.stats().map_err(|error| error.to_string())
    }

    /// Whether the armed failure happened in this operation.
    fn fired(&self) -> bool {
        self.armed
            .is_some_and(|(call, _)| self.device.device.calls() >= call)
    }

    fn allocate(&mut self, bytes: u64, align: u64, before: &Stats) -> Checked<Outcome> {
        let calls = self.device.device.calls();
        let seen = self.device.seen().clone();
        let answer = self.pool.allocate(bytes, align);
        if align != 0 && !align.is_power_of_two() {
            let status = answer.map_err(|error| error.status());
            agree!(status, Err(Status::InvalidValue), "a bad alignment");
            agree!(self.stats()?, *before, "figures after a bad alignment");
            return Ok(Outcome::Refused(Status::InvalidValue));
        }
        if bytes == 0 {
            agree!(answer, Ok(None), "an allocation of no bytes");
            agree!(self.stats()?, *before, "figures after no bytes");
            return Ok(Outcome::Done);
        }
        self.model.alloc_calls += 1;
        let align = align.max(GRAIN);
        let size = round_up(bytes, GRAIN);
        let best_fits = size.map_or_else(Vec::new, |size| {
            self.model.best_fits(&self.setup, &seen, size)
        });
        match answer {
            Ok(addr) => {
                let addr = addr.ok_or("no address for some bytes")?;
                let size = size.ok_or("more bytes than there are addresses")?;
                self.check_block(addr, size, align)?;
                if align == GRAIN && !best_fits.is_empty() {
                    require!(
                        best_fits.contains(&addr),
                        "{addr:#x} is none of the best fits {best_fits:x?}"
                    );
                    agree!(self.device.device.calls(), calls, "backend calls");
                }
                if self.setup.preset == Preset::Default {
                    let step = self.device.seen().largest_step;
                    let bound = model::largest_step(size, align, before.reserved_bytes);
                    require!(step <= bound, "grew by {step}, more than {bound}");
                }
                let usable = self
                    .pool
                    .usable_size(addr)
                    .ok_or("a block of no usable size")?;
                let block = Block {
                    addr,
                    size: usable,
                    requested: bytes,
                };
                let largest = model::largest_block(self.setup.preset, size);
                require!(
                    (size..=largest).contains(&usable),
                    "{usable} bytes for {size}"
                );
                self.model.live.push(block);
                self.model.peak = self.model.peak.max(self.model.allocated());
                self.device.seen().live = self.model.live();
                Ok(Outcome::Done)
            }
            Err(error) => {
                self.check_refusal(&error)?;
                if let (Some(size), false) = (size, self.fired()) {
                    require!(
                        !self.model.must_serve(&self.setup, &seen, size, align),
                        "refused what there is room for: {error}"
                    );
                }
                Ok(Outcome::Refused(error.status()))
            }
        }
    }

    fn check_block(&self, addr: u64, size: u64, align: u64) -> Checked {
        agree!(addr % align, 0, "alignment of {addr:#x} to {align}");
        let end = addr
            .checked_add(size)
            .ok_or("a block beyond all addresses")?;
        let overlapped = self.model.live().touches((addr, end));
        require!(!overlapped, "{size} bytes at {addr:#x} are live already");
        Ok(())
    }

    fn check_refusal(&mut self, error: &Error) -> Checked {
        if error.status() == Status::OutOfMemory {
            self.model.out_of_memory += 1;
            return Ok(());
        }
        let injected = matches!(self.armed, Some((_, Failure::Driver)) if self.fired());
        require!(injected, "failed without a failure: {error}");
        agree!(error.status(), Status::Driver, "status of {error}");
        let told = error.message().contains(Failure::MESSAGE);
        require!(told, "the message hides the failure: {error}");
        Ok(())
    }

    fn free(&mut self, place: usize) -> Checked<Outcome> {
        if self.model.live.is_empty() {
            return Ok(Outcome::Done);
        }
        let block = self.model.live.swap_remove(place % self.model.live.len());
        let calls = self.device.device.calls();
        self.pool
            .free(block.addr)
            .map_err(|error| format!("free of {block:?}: {error}"))?;
        agree!(self.device.device.calls(), calls, "backend calls of a free");
        self.model.free_calls += 1;
        self.model.freed.push(block.addr);
        self.device.seen().live = self.model.live();
        Ok(Outcome::Done)
    }

    /// Frees what is no live block's start; where the address is one by now, does nothing.
    fn free_badly(&self, addr: u64, before: &Stats) -> Checked<Outcome> {
        let says = match self.model.locate(addr, &self.device.seen()) {
            At::Start(_) => return Ok(Outcome::Done),
            At::Foreign => "is not from this pool".to_owned(),
            At::Free => "is free already".to_owned(),
            At::Inside(block) => format!(
                "is {} bytes inside the block of {} bytes at {:#x}",
                addr - block.addr,
                block.size,
                block.addr
            ),
        };
        let Err(error) = self.pool.free(addr) else {
            return Err(format!("freed {addr:#x}, which {says}"));
        };
        agree!(error.status(), Status::InvalidPointer, "status of {error}");
        require!(
            error.message().contains(&says) && error.message().contains(&format!("{addr:#x}")),
            "{error:?} for {addr:#x}, which {says}"
        );
        agree!(self.stats()?, *before, "figures after a bad free");
        Ok(Outcome::Refused(Status::InvalidPointer))
    }

    fn empty_cache(&self, before: &Stats) -> Checked<Outcome> {
        let kept = self.model.kept(&self.setup, &self.device.seen());
        let given = self
            .pool
            .empty_cache()
            .map_err(|error| format!("empty_cache: {error}"))?;
        let after = self.stats()?.reserved_bytes;
        agree!(
            Some(given),
            before.reserved_bytes.checked_sub(after),
            "bytes given back"
        );
        if !self.fired() {
            agree!(after, kept, "bytes kept by an empty cache");
        }
        Ok(Outcome::Done)
    }

    fn set_limit(&mut self, bytes: u64, before: &Stats) -> Checked<Outcome> {
        let limit = backend_limit(bytes);
        let kept = self.model.kept(&self.setup, &self.device.seen());
        match self.pool.set_limit(bytes) {
            Ok(()) => {
                self.model.limit = if limit == u64::MAX { 0 } else { bytes };
                self.device.seen().limit = limit;
                let reserved = self.stats()?.reserved_bytes;
                require!(reserved <= limit, "{reserved} held with a limit of {limit}");
                Ok(Outcome::Done)
            }
            Err(error) if self.fired() => Ok(Outcome::Refused(error.status())),
            Err(error) => {
                agree!(error.status(), Status::InvalidValue, "status of {error}");
                require!(kept > limit, "refused with {kept} kept: {error}");
                agree!(self.stats()?, *before, "figures after a refused limit");
                Ok(Outcome::Refused(error.status()))
            }
        }
    }

    fn reset_peak(&mut self) -> Checked<Outcome> {
        self.pool.reset_peak().map_err(|error| error.to_string())?;
        self.model.peak = self.model.allocated();
        let mut seen = self.device.seen();
        seen.most = seen.memory.bytes();
        Ok(Outcome::Done)
    }

    /// What is told without changing anything: every block, every place, the device.
    fn inspect(&self) -> Checked<Outcome> {
        let sorted = self.model.sorted();
        let told = self.pool.live_blocks().map_err(|error| error.to_string())?;
        let expected: Vec<_> = sorted
            .iter()
            .map(|block| (block.addr, block.size, block.requested))
            .collect();
        agree!(told, expected, "live blocks");
        let seen = self.device.seen().clone();
        let edges = self.model.free_runs(&seen);
        let places = sorted
            .iter()
            .map(Block::interval)
            .chain(edges.iter())
            .chain(seen.grants.iter().map(|(&base, &span)| (base, base + span)))
            .flat_map(|(from, to)| [from.wrapping_sub(1), from, from + 1, to - 1, to]);
        for addr in places {
            let located = self.pool.locate(addr);
            let expected = match self.model.locate(addr, &seen) {
                At::Foreign => Located::Foreign,
                At::Free => Located::Free,
                At::Start(block) => Located::Start {
                    block: as_engine(&block),
                },
                At::Inside(block) => Located::Inside {
                    block: as_engine(&block),
                },
            };
            agree!(located, expected, "what lies at {addr:#x}");
            let usable = match expected {
                Located::Start { block } => Some(block.size),
                _ => None,
            };
            agree!(self.pool.usable_size(addr), usable, "usable at {addr:#x}");
        }
        let memory = self.pool.memory().map_err(|error| error.to_string())?;
        let held = seen.memory.bytes();
        let free = (self.setup.capacity - held).min(backend_limit(self.model.limit) - held);
        agree!(memory.total, self.setup.capacity, "the device's bytes");
        agree!(memory.free, free, "the device's free bytes");
        Ok(Outcome::Done)
    }

    /// What must hold after every operation.
    fn check(&mut self, before: &Stats) -> Checked {
        self.pool.check().map_err(|error| error.to_string())?;
        let seen: Seen = self.device.seen().clone();
        self.model.peak_reserved = seen.most;
        let stats = self.stats()?;
        agree!(
            stats,
            self.model.stats(&seen, stats.alloc_retries),
            "figures"
        );
        require!(
            stats.alloc_retries == before.alloc_retries
                || (stats.alloc_retries > before.alloc_retries && seen.gave_back),
            "retries without anything given back"
        );
        agree!(
            self.device.device.used(),
            stats.reserved_bytes,
            "device use"
        );
        let bare = self.model.live().without(&seen.memory);
        require!(bare == Default::default(), "no memory behind {bare:x?}");
        self.check_device()
    }

    fn check_device(&self) -> Checked {
        agree!(self.device.device.violations(), [""; 0], "violations");
        agree!(self.device.seen().faults, [""; 0], "faults");
        Ok(())
    }
}

fn as_engine(block: &Block) -> luma::alloc::Block {
    luma::alloc::Block {
        addr: block.addr,
        size: block.size,
    }
}

fn pick<T: Copy>(list: &[T], place: usize) -> Option<T> {
    list.get(place % list.len().max(1)).copied()
}
