//! Libraries.

use super::function::Kernel;
use super::{Global, Image};
use crate::context::ContextId;
use crate::state::State;
use crate::status::{Code, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A library.
#[derive(Debug)]
pub struct Library {
    pub(super) image: Arc<Image>,
    /// Its module in each context in which it was asked for.
    pub(super) modules: BTreeMap<ContextId, u64>,
    pub(super) kernels: BTreeMap<String, u64>,
    /// Its managed variables, which all modules share, and the context that they end with.
    pub(super) managed: BTreeMap<String, Global>,
    pub(super) managed_in: Option<ContextId>,
}

impl State {
    /// Loads a library.
    pub fn load_library(&mut self, image: Image) -> u64 {
        self.modules.libraries.insert(Library {
            image: Arc::new(image),
            modules: BTreeMap::new(),
            kernels: BTreeMap::new(),
            managed: BTreeMap::new(),
            managed_in: None,
        })
    }

    fn library(&self, handle: u64) -> Result<&Library> {
        self.modules
            .libraries
            .get(handle)
            .ok_or(Code::INVALID_HANDLE)
    }

    /// The contexts that a library is loaded into.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: there is none.
    pub fn library_contexts(&self, handle: u64) -> Result<Vec<ContextId>> {
        Ok(self.library(handle)?.modules.keys().copied().collect())
    }

    /// Unloads a library. Work that uses it has ended.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: there is none.
    pub fn unload_library(&mut self, handle: u64) -> Result {
        let library = self
            .modules
            .libraries
            .remove(handle)
            .ok_or(Code::INVALID_HANDLE)?;
        for module in library.modules.values() {
            if let Some(module) = self.modules.remove_module(*module) {
                self.release_globals(module.globals, &library.managed);
            }
        }
        for kernel in library.kernels.values() {
            self.modules.kernels.remove(*kernel);
        }
        self.release_globals(library.managed, &BTreeMap::new());
        Ok(())
    }

    /// The module of a library in the current context.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such library. `OUT_OF_MEMORY`: of its variables.
    pub fn library_module(&mut self, handle: u64) -> Result<u64> {
        let context = self.current()?;
        let library = self.library(handle)?;
        if let Some(module) = library.modules.get(&context) {
            return Ok(*module);
        }
        let image = Arc::clone(&library.image);
        let module = self.instantiate(context, image, Some(handle))?;
        if let Some(library) = self.modules.libraries.get_mut(handle) {
            library.modules.insert(context, module);
        }
        Ok(module)
    }

    /// The kernel of a name in a library, always the same.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such library. `NOT_FOUND`: no such kernel.
    pub fn library_kernel(&mut self, handle: u64, name: &str) -> Result<u64> {
        let library = self.modules.libraries.get_mut(handle);
        let library = library.ok_or(Code::INVALID_HANDLE)?;
        if let Some(kernel) = library.kernels.get(name) {
            return Ok(*kernel);
        }
        if !library.image.has_kernel(name) {
            return Err(Code::NOT_FOUND);
        }
        let kernel = self.modules.kernels.insert(Kernel::new(handle, name));
        library.kernels.insert(name.to_owned(), kernel);
        Ok(kernel)
    }

    /// The kernels of a library, as far as they are known.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such library.
    pub fn library_kernels(&mut self, handle: u64) -> Result<Vec<u64>> {
        let library = self.library(handle)?;
        let known = library.image.entries.keys().chain(library.kernels.keys());
        let mut names: Vec<_> = known.cloned().collect();
        names.sort_unstable();
        names.dedup();
        let kernels = names.iter().map(|name| self.library_kernel(handle, name));
        kernels.collect()
    }

    /// A managed variable of a library.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such library. `NOT_FOUND`: no such variable, or the library is loaded into
    /// no context and there is no current one.
    pub fn library_managed(&mut self, handle: u64, name: &str) -> Result<Global> {
        let image = Arc::clone(&self.library(handle)?.image);
        let is_managed = image
            .variables
            .get(name)
            .is_some_and(|variable| variable.is_managed);
        if !is_managed {
            return Err(Code::NOT_FOUND);
        }
        if let Some(global) = self.library(handle)?.managed.get(name) {
            return Ok(*global);
        }
        let module = self.library_module(handle).map_err(|code| match code {
            Code::INVALID_CONTEXT => Code::NOT_FOUND,
            other => other,
        })?;
        self.module_global(module, name)
    }
}
