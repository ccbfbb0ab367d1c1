//! Functions and kernels: what is launched, and what programs ask and say about it.

use super::image::{Entry, Parameter};
use crate::attribute;
use crate::context::ContextId;
use crate::state::State;
use crate::status::{Code, Result};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::Arc;

/// Registers of a thread. There is no code that would need more or less.
pub const REGISTERS: i32 = 32;

// Numbers of `CUdevice_attribute`.
const DEVICE_MOST_THREADS: u32 = 1;
const DEVICE_SHARED: u32 = 8;
const DEVICE_CAPABILITY_MAJOR: u32 = 75;
const DEVICE_CAPABILITY_MINOR: u32 = 76;
const DEVICE_MOST_SHARED: u32 = 97;

// Numbers of `CUfunction_attribute`.
const MOST_THREADS: u32 = 0;
const SHARED: u32 = 1;
const CONSTANT: u32 = 2;
const LOCAL: u32 = 3;
const REGISTER_COUNT: u32 = 4;
const PTX_VERSION: u32 = 5;
const BINARY_VERSION: u32 = 6;
const CACHE_MODE: u32 = 7;
const DYNAMIC_SHARED: u32 = 8;
const CARVEOUT: u32 = 9;
const CLUSTER_MUST_BE_SET: u32 = 10;
const CLUSTER_WIDTH: u32 = 11;
const CLUSTER_DEPTH: u32 = 13;
const CLUSTER_NOT_PORTABLE: u32 = 14;
const CLUSTER_PREFERENCE: u32 = 15;
const DEVICE_NODE_UPDATE: u32 = 16;
const SHARED_MODE: u32 = 17;

/// What programs said about a function.
pub type Attributes = BTreeMap<u32, i32>;

/// A function of a module.
#[derive(Debug)]
pub struct Function {
    module: u64,
    /// The library whose module it is in.
    library: Option<u64>,
    name: Arc<CStr>,
    attributes: Attributes,
}

/// A kernel of a library.
#[derive(Debug)]
pub struct Kernel {
    library: u64,
    name: Arc<CStr>,
    /// For each device.
    attributes: BTreeMap<usize, Attributes>,
}

/// Names of images hold no zero.
fn text(name: &str) -> Arc<CStr> {
    CString::new(name).unwrap_or_default().into()
}

impl Function {
    pub(super) fn new(module: u64, name: &str, library: Option<u64>) -> Self {
        Self {
            module,
            library,
            name: text(name),
            attributes: Attributes::new(),
        }
    }
}

impl Kernel {
    pub(super) fn new(library: u64, name: &str) -> Self {
        Self {
            library,
            name: text(name),
            attributes: BTreeMap::new(),
        }
    }
}

/// A function or a kernel, by what a launch needs of it.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: Arc<CStr>,
    /// The context of a function; a kernel has none.
    pub context: Option<ContextId>,
    /// `None`: not known.
    pub parameters: Option<Vec<Parameter>>,
}

/// What a launch of a function on a device may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Threads of a block.
    pub threads: i32,
    /// Shared memory that the function declares itself.
    pub static_shared: i32,
    /// Bytes of shared memory that a launch may add.
    pub dynamic_shared: i32,
    /// Whether clusters may be larger than all devices take.
    pub is_portable: bool,
}

impl State {
    fn function(&self, handle: u64) -> Result<&Function> {
        self.modules
            .functions
            .get(handle)
            .ok_or(Code::INVALID_HANDLE)
    }

    fn kernel(&self, handle: u64) -> Result<&Kernel> {
        self.modules.kernels.get(handle).ok_or(Code::INVALID_HANDLE)
    }

    /// What an image says about a function or a kernel.
    fn entry(&self, handle: u64) -> Result<Option<&Entry>> {
        let (image, name) = if let Ok(function) = self.function(handle) {
            (&self.modules.module(function.module)?.image, &function.name)
        } else {
            let kernel = self.kernel(handle)?;
            let library = self.modules.libraries.get(kernel.library);
            (&library.ok_or(Code::INVALID_HANDLE)?.image, &kernel.name)
        };
        Ok(name.to_str().ok().and_then(|name| image.entries.get(name)))
    }

    /// A function or a kernel by its handle.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: there is none.
    pub fn named(&self, handle: u64) -> Result<Named> {
        let parameters = self
            .entry(handle)?
            .and_then(|entry| entry.parameters.clone());
        let (name, context) = if let Ok(function) = self.function(handle) {
            (
                &function.name,
                Some(self.modules.module(function.module)?.context),
            )
        } else {
            (&self.kernel(handle)?.name, None)
        };
        Ok(Named {
            name: Arc::clone(name),
            context,
            parameters,
        })
    }

    /// The module of a function.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such function.
    pub fn function_module(&self, handle: u64) -> Result<u64> {
        Ok(self.function(handle)?.module)
    }

    /// The library of a kernel.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such kernel.
    pub fn kernel_library(&self, handle: u64) -> Result<u64> {
        Ok(self.kernel(handle)?.library)
    }

    /// Whether a handle is that of a kernel, which functions that take a `CUfunction` take, too.
    pub fn is_kernel(&self, handle: u64) -> bool {
        self.kernel(handle).is_ok()
    }

    /// The function of a kernel in the current context.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such kernel.
    pub fn kernel_function(&mut self, handle: u64) -> Result<u64> {
        let kernel = self.kernel(handle)?;
        let name = kernel.name.to_string_lossy().into_owned();
        let module = self.library_module(kernel.library)?;
        self.module_function(module, &name)
    }

    /// What was said about a function or a kernel for a device. What was said about the function comes
    /// before what was said about its kernel.
    fn said(&self, handle: u64, device: usize, which: u32) -> Result<Option<i32>> {
        let of_kernel = |kernel: &Kernel| {
            let attributes = kernel.attributes.get(&device)?;
            attributes.get(&which).copied()
        };
        let Ok(function) = self.function(handle) else {
            return Ok(of_kernel(self.kernel(handle)?));
        };
        let library = function
            .library
            .and_then(|library| self.modules.libraries.get(library));
        let kernel = library.and_then(|library| {
            let kernel = library.kernels.get(function.name.to_str().ok()?)?;
            self.modules.kernels.get(*kernel)
        });
        let own = function.attributes.get(&which).copied();
        Ok(own.or_else(|| kernel.and_then(of_kernel)))
    }

    /// An attribute of a function or a kernel on a device.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such function. `INVALID_VALUE`: no such attribute.
    pub fn function_attribute(&self, handle: u64, device: usize, which: u32) -> Result<i32> {
        let entry = self.entry(handle)?;
        let of_device = |which| attribute::known(which, device);
        let declared = entry.map_or(0, |entry| entry.shared_bytes);
        let declared = i32::try_from(declared).unwrap_or(i32::MAX);
        let said = self.said(handle, device, which)?;
        Ok(match which {
            MOST_THREADS => {
                let most = of_device(DEVICE_MOST_THREADS);
                let limit = entry.and_then(|entry| entry.most_threads);
                limit
                    .and_then(|limit| i32::try_from(limit).ok())
                    .map_or(most, |limit| limit.min(most))
            }
            SHARED => declared,
            CONSTANT | LOCAL | CACHE_MODE | CLUSTER_MUST_BE_SET | DEVICE_NODE_UPDATE => 0,
            REGISTER_COUNT => REGISTERS,
            PTX_VERSION | BINARY_VERSION => {
                of_device(DEVICE_CAPABILITY_MAJOR) * 10 + of_device(DEVICE_CAPABILITY_MINOR)
            }
            DYNAMIC_SHARED => said.unwrap_or((of_device(DEVICE_SHARED) - declared).max(0)),
            CARVEOUT => said.unwrap_or(-1),
            CLUSTER_WIDTH..=SHARED_MODE => said.unwrap_or(0),
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    /// Sets an attribute of a function, or of a kernel on a device.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such function. `INVALID_VALUE`: an attribute that cannot be set, or not to
    /// this value.
    pub fn set_function_attribute(
        &mut self,
        handle: u64,
        device: usize,
        which: u32,
        value: i32,
    ) -> Result {
        let declared = self.function_attribute(handle, device, SHARED)?;
        let is_possible = match which {
            DYNAMIC_SHARED => {
                let most = attribute::known(DEVICE_MOST_SHARED, device);
                value >= 0 && value <= most - declared
            }
            CARVEOUT => (-1..=100).contains(&value),
            CLUSTER_WIDTH..=CLUSTER_DEPTH => value >= 0,
            CLUSTER_NOT_PORTABLE => matches!(value, 0 | 1),
            CLUSTER_PREFERENCE | SHARED_MODE => value >= 0,
            _ => false,
        };
        if !is_possible {
            return Err(Code::INVALID_VALUE);
        }
        if let Some(function) = self.modules.functions.get_mut(handle) {
            function.attributes.insert(which, value);
        } else if let Some(kernel) = self.modules.kernels.get_mut(handle) {
            kernel
                .attributes
                .entry(device)
                .or_default()
                .insert(which, value);
        }
        Ok(())
    }

    /// What a launch on a device may ask for.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such function.
    pub fn limits(&self, handle: u64, device: usize) -> Result<Limits> {
        let value = |which| self.function_attribute(handle, device, which);
        Ok(Limits {
            threads: value(MOST_THREADS)?,
            static_shared: value(SHARED)?,
            dynamic_shared: value(DYNAMIC_SHARED)?,
            is_portable: value(CLUSTER_NOT_PORTABLE)? == 0,
        })
    }
}
