//! The library itself: made to make its default pool and to serve one allocation.

use std::ffi::CStr;

use luma::config::{BackendChoice, PresetChoice, Settings};
use luma::ffi::{
    luma_alloc, luma_free, luma_memory_info, luma_stats, luma_stats_t, luma_status_t, luma_version,
};
use luma::pool::defaults;
use serde::Serialize;

use crate::pool::{Preset, last_error};
use crate::size;

/// Bytes of the allocation that is tried.
const TRIED: usize = 64 << 10;

/// What the library says of itself.
#[derive(Serialize)]
pub struct Library {
    pub version: String,
    /// The backend of the default pools; none where they cannot have one.
    pub backend: Option<&'static str>,
    /// Why it is that one.
    pub reason: String,
    pub capacity_bytes: Option<u64>,
    pub free_bytes: Option<u64>,
    pub preset: &'static str,
    /// 0: none.
    pub memory_limit: Option<u64>,
    /// Why an allocation from the default pool failed.
    pub failure: Option<String>,
}

/// `settings` are what the library has found in the environment.
pub fn look(settings: &Settings) -> Library {
    // SAFETY: the answer is a C string that lives as long as the library.
    let version = unsafe { CStr::from_ptr(luma_version()) }
        .to_string_lossy()
        .into_owned();
    let backend = defaults::current().and_then(|slot| slot.pool().backend_name());
    let reason = match (&backend, settings.backend) {
        (Err(error), _) => error.to_string(),
        (Ok(_), BackendChoice::Host | BackendChoice::Cuda) => "LUMA_BACKEND asks for it".into(),
        (Ok("cuda"), BackendChoice::Auto) => "there is a CUDA driver with a device".into(),
        (Ok(_), BackendChoice::Auto) => "there is no CUDA driver with a device".into(),
    };
    let preset = match settings.preset {
        PresetChoice::Default => Preset::Default,
        PresetChoice::Xla => Preset::Xla,
        PresetChoice::Luma03 => Preset::Luma03,
    };
    let mut library = Library {
        version,
        backend: backend.ok(),
        reason,
        capacity_bytes: None,
        free_bytes: None,
        preset: preset.name(),
        memory_limit: None,
        failure: try_allocation(),
    };
    let (mut free, mut total) = (0, 0);
    // SAFETY: both pointers are valid for the call.
    if unsafe { luma_memory_info(&raw mut free, &raw mut total) } == luma_status_t::LUMA_SUCCESS {
        library.capacity_bytes = Some(total as u64);
        library.free_bytes = Some(free as u64);
    }
    let mut stats = luma_stats_t {
        struct_size: size_of::<luma_stats_t>(),
        ..luma_stats_t::default()
    };
    // SAFETY: the pointer is valid for the call.
    if unsafe { luma_stats(&raw mut stats) } == luma_status_t::LUMA_SUCCESS {
        library.memory_limit = Some(stats.memory_limit);
    }
    library
}

/// Allocates and frees as a program would; answers what went wrong.
fn try_allocation() -> Option<String> {
    let block = luma_alloc(TRIED);
    if block.is_null() {
        return Some(format!(
            "an allocation of {} failed: {}",
            size::show(TRIED as u64),
            last_error()
        ));
    }
    match luma_free(block) {
        luma_status_t::LUMA_SUCCESS => None,
        _ => Some(format!("a block could not be freed: {}", last_error())),
    }
}

impl Library {
    pub fn backend_line(&self) -> String {
        let (backend, reason) = (self.backend.unwrap_or("none"), &self.reason);
        match (self.free_bytes, self.capacity_bytes) {
            (Some(free), Some(capacity)) => format!(
                "{backend}, {} free of {}: {reason}",
                size::show(free),
                size::show(capacity)
            ),
            _ => format!("{backend}: {reason}"),
        }
    }
}
