#![forbid(unsafe_code)]
//! How a pool is made.

use crate::alloc::{Growth, Policy};
use crate::backend::callbacks::{CallbackBackend, Callbacks};
use crate::backend::cuda::{self, CudaBackend, Kind};
use crate::backend::host::{HostBackend, HostDevice};
use crate::backend::simulated::SimulatedBackend;
use crate::backend::{Backend, Memory};
use crate::config::{BackendChoice, Checks, Limit, PresetChoice, environment};
use crate::error::{Error, Result, Status};
use crate::log::{self, Level};
use crate::size::{GRAIN, round_down};
use crate::text::text;
use std::sync::{Arc, OnceLock};

/// Where a pool's memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BackendKind {
    /// CUDA where there is a driver and a device, otherwise host memory.
    #[default]
    Auto,
    /// CUDA device memory.
    Cuda,
    /// Host memory.
    Host,
    /// The functions in [`PoolConfig::callbacks`].
    Callbacks,
    /// CUDA pinned host memory.
    CudaHost,
    /// CUDA managed memory.
    CudaManaged,
    /// Addresses without memory.
    Simulated,
}

impl BackendKind {
    /// [`BackendKind::Auto`] as what it is here: CUDA where there is a driver with a device, host memory
    /// where there is none. The others as they are.
    ///
    /// # Errors
    /// `NoDevice`: there is a driver, and it fails.
    pub(super) fn resolved(self) -> Result<Self> {
        Ok(match self {
            Self::Auto if cuda::is_available()? => Self::Cuda,
            Self::Auto => Self::Host,
            kind => kind,
        })
    }
}

/// A set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Preset {
    /// luma's own choice.
    #[default]
    Default,
    /// XLA's `BFCAllocator`.
    Xla,
    /// luma-cuda 0.3.2.
    Luma03,
}

impl Preset {
    /// Its policy.
    pub const fn policy(self) -> Policy {
        match self {
            Self::Default => Policy::DEFAULT,
            Self::Xla => Policy::XLA,
            Self::Luma03 => Policy::LUMA_0_3,
        }
    }
}

/// How a pool is made. `None` in a field: what the preset says.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolConfig {
    /// Where memory comes from.
    pub backend: BackendKind,
    /// The device's number.
    pub device: i32,
    /// The set of policies.
    pub preset: Preset,
    /// How the pool grows.
    pub growth: Option<Growth>,
    /// The most the pool may hold.
    pub memory_limit: Option<Limit>,
    /// The smallest segment in bytes.
    pub min_segment: Option<u64>,
    /// The smallest rest that is split off, in bytes.
    pub min_split: Option<u64>,
    /// Whether a block of at least twice the request is split whatever the rest.
    pub split_when_double: Option<bool>,
    /// Whether wholly free segments are given back when the backend refuses.
    pub release_on_failure: Option<bool>,
    /// Whether each block is a segment of its own.
    pub whole_segments: bool,
    /// Whether streams are told apart from the first call on (otherwise no event is recorded while there is
    /// one), and made to wait for one another before a request fails.
    pub tells_streams_apart: bool,
    /// The size of a host or simulated device of the pool's own.
    pub capacity: Option<u64>,
    /// For [`BackendKind::Callbacks`].
    pub callbacks: Option<Callbacks>,
    /// Checked mode; `None`: as `LUMA_DEBUG` says.
    pub checks: Option<Checks>,
}

/// The simulated device that pools over host memory share.
fn shared_host() -> Arc<HostDevice> {
    static SHARED: OnceLock<Arc<HostDevice>> = OnceLock::new();
    SHARED
        .get_or_init(|| HostDevice::new(environment().host_capacity))
        .clone()
}

impl PoolConfig {
    /// What a default pool is like: the fields that are set here, otherwise the environment.
    pub(crate) fn with_environment(mut self) -> Self {
        let environment = environment();
        if self.backend == BackendKind::Auto {
            self.backend = match environment.backend {
                BackendChoice::Auto => BackendKind::Auto,
                BackendChoice::Cuda => BackendKind::Cuda,
                BackendChoice::Host => BackendKind::Host,
            };
        }
        if self.preset == Preset::Default {
            self.preset = match environment.preset {
                PresetChoice::Default => Preset::Default,
                PresetChoice::Xla => Preset::Xla,
                PresetChoice::Luma03 => Preset::Luma03,
            };
        }
        self.memory_limit = self.memory_limit.or(environment.memory_limit);
        if let (BackendKind::Callbacks, Some(Limit::Fraction(_))) =
            (self.backend, self.memory_limit)
        {
            log::log(Level::Warning, || {
                "LUMA_MEMORY_LIMIT is ignored: it is a percentage of the device, and callbacks do not say how much they have; set it in bytes".into()
            });
            self.memory_limit = None;
        }
        self
    }

    /// The preset's policy with the fields that are set.
    pub(super) fn policy(&self) -> Result<Policy> {
        let preset = self.preset.policy();
        let policy = Policy {
            growth: self.growth.unwrap_or(preset.growth),
            min_segment: self.min_segment.unwrap_or(preset.min_segment),
            min_split: match self.whole_segments {
                true => round_down(u64::MAX, GRAIN),
                false => self.min_split.unwrap_or(preset.min_split),
            },
            split_when_double: !self.whole_segments
                && self.split_when_double.unwrap_or(preset.split_when_double),
            whole: self.whole_segments,
            ties: preset.ties,
            release_on_failure: self.release_on_failure.unwrap_or(preset.release_on_failure),
        };
        for (name, value) in [
            ("min_segment_bytes", policy.min_segment),
            ("min_split_bytes", policy.min_split),
        ] {
            if value == 0 || value % GRAIN != 0 {
                return Err(Error::new(
                    Status::InvalidValue,
                    text!("{name} is a multiple of {GRAIN} above 0, not {value}"),
                ));
            }
        }
        Ok(policy)
    }

    /// The limit in bytes, `u64::MAX` for none, on a backend with this memory.
    pub(super) fn limit(&self, memory: Option<Memory>) -> Result<u64> {
        let total = memory.map(|memory| memory.total);
        let bytes = match (self.memory_limit, total) {
            (None, _) => 0,
            (Some(Limit::Fraction(_)), None) => {
                return Err(Error::new(
                    Status::InvalidValue,
                    "the limit is a percentage of the device, and this backend does not say how much it has: set it in bytes",
                ));
            }
            (Some(limit), total) => limit.bytes(total.unwrap_or(0)),
        };
        Ok(if bytes == 0 { u64::MAX } else { bytes })
    }

    /// The backend that it names.
    pub(super) fn backend(&self) -> Result<Arc<dyn Backend>> {
        let no_capacity = |kind: &str| match self.capacity {
            None => Ok(()),
            Some(_) => Err(Error::new(
                Status::InvalidValue,
                text!(
                    "capacity is for the host and simulated backends; the {kind} backend has the memory that it has"
                ),
            )),
        };
        let one_device = |kind: &str| match self.device {
            0 => Ok(()),
            device => Err(Error::new(
                Status::NoDevice,
                text!("there is no device {device}: the {kind} backend has device 0 only"),
            )),
        };
        let cuda = |kind| -> Result<Arc<dyn Backend>> {
            no_capacity("CUDA")?;
            Ok(Arc::new(CudaBackend::of_device(self.device, kind)?))
        };
        match self.backend.resolved()? {
            BackendKind::Auto | BackendKind::Host => {
                one_device("host")?;
                let device = self.capacity.map_or_else(shared_host, HostDevice::new);
                Ok(Arc::new(HostBackend::new(device)))
            }
            BackendKind::Simulated => {
                one_device("simulated")?;
                let capacity = self.capacity.unwrap_or(environment().host_capacity);
                Ok(Arc::new(SimulatedBackend::new(capacity)))
            }
            BackendKind::Callbacks => {
                no_capacity("callback")?;
                let callbacks = self.callbacks.ok_or_else(|| {
                    Error::new(
                        Status::InvalidValue,
                        "the callback backend needs both alloc_fn and free_fn",
                    )
                })?;
                Ok(Arc::new(CallbackBackend::new(callbacks)))
            }
            BackendKind::Cuda => cuda(Kind::Device),
            BackendKind::CudaHost => cuda(Kind::Pinned),
            BackendKind::CudaManaged => cuda(Kind::Managed),
        }
    }
}
