//! Launches.

use crate::abi::launch::{
    ATTRIBUTE_CLUSTER_DIMENSION, ATTRIBUTE_COMPLETION_EVENT, ATTRIBUTE_COOPERATIVE,
    ATTRIBUTE_DEVICE_UPDATABLE, ATTRIBUTE_PROGRAMMATIC_EVENT, LaunchAttribute, LaunchConfig,
};
use crate::driver;
use crate::exec::Kind;
use crate::launch::Configuration;
use crate::launch::occupancy::Occupancy;
use crate::state::{State, lock};
use crate::status::{Code, Result};
use std::ffi::c_void;
use std::{ptr, slice};

/// The largest cluster that all devices take, and the largest at all.
pub const PORTABLE_CLUSTER: u64 = 8;
pub const LARGEST_CLUSTER: u64 = 16;

/// What a launch asks for beside sizes and parameters.
#[derive(Default)]
struct Wishes {
    is_cooperative: bool,
    /// Blocks of a cluster.
    cluster: Option<[u32; 3]>,
    /// Recorded when the kernel has run.
    events: Vec<u64>,
}

impl Wishes {
    fn read(attributes: &[LaunchAttribute]) -> Result<Self> {
        let mut wishes = Self::default();
        for attribute in attributes {
            let [first, second, ..] = attribute.value;
            match attribute.id {
                ATTRIBUTE_COOPERATIVE => wishes.is_cooperative = first as u32 != 0,
                ATTRIBUTE_CLUSTER_DIMENSION => {
                    wishes.cluster = Some([first as u32, (first >> 32) as u32, second as u32]);
                }
                ATTRIBUTE_PROGRAMMATIC_EVENT | ATTRIBUTE_COMPLETION_EVENT => {
                    wishes.events.push(first);
                }
                ATTRIBUTE_DEVICE_UPDATABLE if first as u32 != 0 => {
                    return Err(Code::NOT_SUPPORTED);
                }
                // How fast it runs, and when at the earliest, is all the others say.
                _ => {}
            }
        }
        Ok(wishes)
    }

    /// Checks clusters and cooperation against the device.
    fn check(&self, state: &State, device: usize, launch: &Configuration) -> Result {
        let limits = state.limits(launch.function, device)?;
        if let Some(cluster) = self.cluster {
            let blocks = cluster
                .iter()
                .fold(1u64, |blocks, &size| blocks.saturating_mul(size.into()));
            let most = if limits.is_portable {
                PORTABLE_CLUSTER
            } else {
                LARGEST_CLUSTER
            };
            let divides = cluster
                .iter()
                .zip(launch.grid)
                .all(|(&size, grid)| size > 0 && grid % size == 0);
            if !divides || blocks > most {
                return Err(Code::INVALID_CLUSTER_SIZE);
            }
        }
        if self.is_cooperative {
            let occupancy = Occupancy { device, limits };
            let threads = launch.block.iter().map(|&size| u64::from(size)).product();
            let each = occupancy.blocks(threads, launch.shared_bytes.into());
            let blocks = launch
                .grid
                .iter()
                .map(|&size| u128::from(size))
                .product::<u128>();
            if blocks > u128::from(each * occupancy.multiprocessors()) {
                return Err(Code::COOPERATIVE_LAUNCH_TOO_LARGE);
            }
        }
        Ok(())
    }
}

/// Launches a kernel.
///
/// # Safety
/// The parameters are given as documented.
unsafe fn launch(launch: &Configuration, wishes: &Wishes) -> Result {
    let mut guard = lock();
    guard.current()?;
    let stream = guard.stream(launch.stream)?;
    let context = guard.stream_context(stream)?;
    let device = guard.context(context)?.device;
    // SAFETY: the caller promises it.
    let work = unsafe { guard.kernel_work(context, launch)? };
    wishes.check(&guard, device, launch)?;
    let params = match guard.is_capturing(stream) {
        // SAFETY: the launch was checked.
        true => Some(unsafe { guard.launch_params(launch)? }),
        false => None,
    };
    guard.submit_described(stream, Kind::Kernel, work, params)?;
    for event in &wishes.events {
        guard.record_event(*event, stream, 0)?;
    }
    Ok(())
}

driver! {
    fn cuLaunchKernel | cuLaunchKernel_ptsz (
        function: u64,
        grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32, stream: u64,
        parameters: *const *mut c_void, extra: *const *mut c_void,
    ) {
        let configuration = Configuration {
            function,
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared_bytes,
            stream,
            parameters,
            extra,
        };
        launch(&configuration, &Wishes::default())
    }
    fn cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz (
        function: u64,
        grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        shared_bytes: u32, stream: u64, parameters: *const *mut c_void,
    ) {
        let configuration = Configuration {
            function,
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared_bytes,
            stream,
            parameters,
            extra: ptr::null(),
        };
        launch(&configuration, &Wishes { is_cooperative: true, ..Wishes::default() })
    }
    fn cuLaunchKernelEx | cuLaunchKernelEx_ptsz (
        given: *const LaunchConfig, function: u64,
        parameters: *const *mut c_void, extra: *const *mut c_void,
    ) {
        let given = given.as_ref().ok_or(Code::INVALID_VALUE)?;
        let attributes = match given.attribute_count {
            0 => &[],
            _ if given.attributes.is_null() => return Err(Code::INVALID_VALUE),
            count => slice::from_raw_parts(given.attributes, count as usize),
        };
        let configuration = Configuration {
            function,
            grid: given.grid,
            block: given.block,
            shared_bytes: given.shared_bytes,
            stream: given.stream,
            parameters,
            extra,
        };
        launch(&configuration, &Wishes::read(attributes)?)
    }
}
