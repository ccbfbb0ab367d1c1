//! Kernel launches. A kernel does what the host function does that stands in for it, or nothing.

mod name;
pub mod occupancy;
mod stand_in;

pub use crate::abi::launch::Launch;
pub use stand_in::{launches, register};

use crate::abi::launch::{PARAM_BUFFER_POINTER, PARAM_BUFFER_SIZE, PARAM_END};
use crate::attribute;
use crate::context::ContextId;
use crate::exec::Work;
use crate::module::Parameter;
use crate::state::State;
use crate::status::{Code, Result};
use stand_in::StandIn;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

/// A launch as a program asks for it.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// A function or a kernel.
    pub function: u64,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of shared memory beside what the kernel declares.
    pub shared_bytes: u32,
    /// The stream's handle as given, for the host function.
    pub stream: u64,
    /// One pointer for each parameter, or null.
    pub parameters: *const *mut c_void,
    /// Names and values, or null.
    pub extra: *const *mut c_void,
}

/// The parameters of a launch, copied.
#[derive(Debug)]
struct Parameters {
    /// Aligned for any of them.
    buffer: Vec<u128>,
    offsets: Vec<usize>,
}

/// A launch that may run, once or at each launch of a graph.
#[derive(Debug)]
struct Prepared {
    name: Arc<CStr>,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: u64,
    stand_in: Option<(StandIn, Parameters)>,
}

impl Prepared {
    fn run(&self) {
        stand_in::count();
        let Some((stand_in, parameters)) = &self.stand_in else {
            return;
        };
        // A kernel may change its parameters; the next launch has them as they were.
        let mut buffer = parameters.buffer.clone();
        let start = buffer.as_mut_ptr().cast::<u8>();
        let mut pointers: Vec<*mut c_void> = parameters
            .offsets
            .iter()
            .map(|&offset| start.wrapping_add(offset).cast())
            .collect();
        let launch = Launch {
            struct_size: size_of::<Launch>(),
            name: self.name.as_ptr(),
            grid: self.grid,
            block: self.block,
            shared_bytes: self.shared_bytes as usize,
            stream: self.stream as *mut c_void,
            params: pointers.as_mut_ptr(),
            nparams: pointers.len(),
        };
        crate::thread::as_host_function(|| {
            // SAFETY: who registered the function promised that it may be called so, as long as it is
            // registered and work that was launched before has not ended.
            unsafe { (stand_in.function)(&launch, stand_in.user()) };
        });
    }
}

/// Where parameters of these sizes lie one after another. Each is aligned to the largest power of two
/// that divides its size, up to 16.
fn layout(sizes: &[usize]) -> Vec<Parameter> {
    let mut end = 0usize;
    let places = sizes.iter().map(|&bytes| {
        let align = 1 << bytes.trailing_zeros().min(4);
        let offset = end.next_multiple_of(align);
        end = offset + bytes;
        Parameter { offset, bytes }
    });
    places.collect()
}

/// The buffer that `extra` names, with its size; `None`: it names none.
///
/// # Safety
/// It is a list of names and values as documented.
unsafe fn extra_buffer(mut extra: *const *mut c_void) -> Result<Option<(*const u8, usize)>> {
    let mut buffer = None;
    let mut bytes = None;
    loop {
        // SAFETY: the caller gives names and values up to the end.
        let name = unsafe { *extra } as usize;
        if name == PARAM_END {
            return Ok(buffer.zip(bytes).filter(|(_, bytes)| *bytes > 0));
        }
        // SAFETY: each name has a value; that of the size is a pointer to one.
        unsafe {
            let value = *extra.add(1);
            match name {
                PARAM_BUFFER_POINTER => buffer = Some(value.cast_const().cast::<u8>()),
                PARAM_BUFFER_SIZE if !value.is_null() => bytes = Some(value.cast::<usize>().read()),
                _ => return Err(Code::INVALID_VALUE),
            }
            extra = extra.add(2);
        }
    }
}

impl Parameters {
    /// Copies what a launch gives.
    ///
    /// # Errors
    /// `INVALID_VALUE`: less is given than the parameters need.
    ///
    /// # Safety
    /// The launch gives its parameters as documented, of these sizes.
    unsafe fn copy(places: &[Parameter], launch: &Configuration) -> Result<Self> {
        let end = places
            .iter()
            .map(|place| place.offset + place.bytes)
            .max()
            .unwrap_or(0);
        let mut buffer = vec![0u128; end.div_ceil(size_of::<u128>())];
        let to = buffer.as_mut_ptr().cast::<u8>();
        if !places.is_empty() && !launch.extra.is_null() {
            // SAFETY: the caller promises it.
            let (from, bytes) =
                unsafe { extra_buffer(launch.extra)? }.ok_or(Code::INVALID_VALUE)?;
            if bytes < end || from.is_null() {
                return Err(Code::INVALID_VALUE);
            }
            // SAFETY: both are at least as long.
            unsafe { to.copy_from_nonoverlapping(from, end) };
        } else {
            for (index, place) in places.iter().enumerate() {
                if launch.parameters.is_null() {
                    return Err(Code::INVALID_VALUE);
                }
                // SAFETY: there is a pointer for each parameter, to as many bytes.
                unsafe {
                    let from = *launch.parameters.add(index);
                    if from.is_null() {
                        return Err(Code::INVALID_VALUE);
                    }
                    to.add(place.offset)
                        .copy_from_nonoverlapping(from.cast(), place.bytes);
                }
            }
        }
        let offsets = places.iter().map(|place| place.offset).collect();
        Ok(Self { buffer, offsets })
    }
}

impl State {
    /// Checks a launch in a context and copies its parameters.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such function, or one of another context. `INVALID_VALUE`: sizes that no
    /// device takes, or this function does not, or parameters that are missing or given twice.
    ///
    /// # Safety
    /// The parameters are given as documented.
    pub unsafe fn kernel_work(&self, context: ContextId, launch: &Configuration) -> Result<Work> {
        let named = self.named(launch.function)?;
        if named.context.is_some_and(|own| own != context) {
            return Err(Code::INVALID_HANDLE);
        }
        let device = self.context(context)?.device;
        self.check_sizes(device, launch)?;
        if !launch.parameters.is_null() && !launch.extra.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let needs_some = named
            .parameters
            .as_ref()
            .is_some_and(|known| !known.is_empty());
        if needs_some && launch.parameters.is_null() && launch.extra.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let stand_in = stand_in::find(&named.name.to_string_lossy());
        let stand_in = stand_in.map(|stand_in| {
            // The image knows best where they are, if the test means the same parameters.
            let known = named.parameters.unwrap_or_default();
            let is_same = known
                .iter()
                .map(|place| place.bytes)
                .eq(stand_in.sizes.iter().copied());
            let places = if stand_in.sizes.is_empty() || is_same {
                known
            } else {
                layout(&stand_in.sizes)
            };
            // SAFETY: the caller promises it.
            let parameters = unsafe { Parameters::copy(&places, launch)? };
            Ok((stand_in, parameters))
        });
        let prepared = Prepared {
            name: named.name,
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            stream: launch.stream,
            stand_in: stand_in.transpose()?,
        };
        Ok(Arc::new(move || prepared.run()))
    }

    /// Checks grid, block and shared memory against a device and a function.
    fn check_sizes(&self, device: usize, launch: &Configuration) -> Result {
        let limits = self.limits(launch.function, device)?;
        let fits = |sizes: [u32; 3], first: u32| {
            (first..).zip(sizes).all(|(which, size)| {
                size > 0 && i64::from(size) <= i64::from(attribute::known(which, device))
            })
        };
        // Numbers of `CUdevice_attribute`: the largest block in x, y and z, then the largest grid.
        if !fits(launch.block, 2) || !fits(launch.grid, 5) {
            return Err(Code::INVALID_VALUE);
        }
        let threads: u64 = launch.block.iter().map(|&size| u64::from(size)).product();
        if threads > limits.threads as u64
            || i64::from(launch.shared_bytes) > i64::from(limits.dynamic_shared)
        {
            return Err(Code::INVALID_VALUE);
        }
        Ok(())
    }
}
