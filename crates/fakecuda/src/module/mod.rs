//! Modules, libraries and what is in them.
//!
//! A module belongs to a context. A library belongs to none: it has a module in each context in which
//! something of it was asked for. Functions and kernels have one handle each while their module or
//! library is loaded.

mod binary;
mod function;
mod image;
mod library;
mod link;
mod ptx;

pub use function::{Limits, REGISTERS};
pub use image::{Image, MOST_PARAMETER_BYTES, Parameter};

use crate::context::ContextId;
use crate::handle::Table;
use crate::memory;
use crate::state::State;
use crate::status::{Code, Result};
use function::{Function, Kernel};
use library::Library;
use link::Link;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A variable in memory.
#[derive(Clone, Copy, Debug)]
pub struct Global {
    pub address: u64,
    pub bytes: u64,
    pub is_managed: bool,
}

/// A module.
#[derive(Debug)]
struct Module {
    context: ContextId,
    image: Arc<Image>,
    /// The library whose module it is.
    library: Option<u64>,
    functions: BTreeMap<String, u64>,
    globals: BTreeMap<String, Global>,
}

/// All modules and libraries.
#[derive(Debug)]
pub struct Modules {
    modules: Table<Module>,
    functions: Table<Function>,
    libraries: Table<Library>,
    kernels: Table<Kernel>,
    links: Table<Link>,
}

impl Modules {
    pub fn new() -> Self {
        Self {
            modules: Table::new(32),
            functions: Table::new(33),
            libraries: Table::new(34),
            kernels: Table::new(35),
            links: Table::new(36),
        }
    }

    /// Modules that programs loaded, and libraries.
    pub fn live_modules(&self) -> u64 {
        let modules = self.modules.iter();
        let own = modules
            .filter(|(_, module)| module.library.is_none())
            .count();
        (own + self.libraries.len()) as u64
    }

    /// A context goes: its modules go, their memory has gone with it.
    pub fn unload_all_of(&mut self, context: ContextId) {
        let modules = self.modules.iter();
        let gone = modules.filter(|(_, module)| module.context == context);
        for handle in gone.map(|(handle, _)| handle).collect::<Vec<_>>() {
            self.remove_module(handle);
        }
        for handle in self
            .libraries
            .iter()
            .map(|(handle, _)| handle)
            .collect::<Vec<_>>()
        {
            if let Some(library) = self.libraries.get_mut(handle) {
                library.modules.remove(&context);
                if library.managed_in == Some(context) {
                    library.managed.clear();
                }
            }
        }
    }

    fn remove_module(&mut self, handle: u64) -> Option<Module> {
        let module = self.modules.remove(handle)?;
        for function in module.functions.values() {
            self.functions.remove(*function);
        }
        Some(module)
    }

    fn module(&self, handle: u64) -> Result<&Module> {
        self.modules.get(handle).ok_or(Code::INVALID_HANDLE)
    }
}

impl State {
    /// Loads an image into the current context.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY`: its variables need more than there is.
    pub fn load_module(&mut self, image: Image) -> Result<u64> {
        let context = self.current()?;
        self.instantiate(context, Arc::new(image), None)
    }

    /// Makes a module of an image in a context, with its variables.
    fn instantiate(
        &mut self,
        context: ContextId,
        image: Arc<Image>,
        library: Option<u64>,
    ) -> Result<u64> {
        let mut module = Module {
            context,
            image: Arc::clone(&image),
            library,
            functions: BTreeMap::new(),
            globals: BTreeMap::new(),
        };
        // A library's managed variables are the same in all contexts.
        let managed = library.and_then(|library| self.modules.libraries.get(library));
        let managed = managed.map_or_else(BTreeMap::new, |library| library.managed.clone());
        for (name, variable) in &image.variables {
            let global = if let Some(global) = managed.get(name) {
                Ok(*global)
            } else {
                self.place(context, variable)
            };
            match global {
                Ok(global) => {
                    module.globals.insert(name.clone(), global);
                }
                Err(code) => {
                    self.release_globals(module.globals, &managed);
                    return Err(code);
                }
            }
        }
        if let Some(library) = library.and_then(|library| self.modules.libraries.get_mut(library)) {
            if library.managed.is_empty() {
                library.managed_in = Some(context);
            }
            let shared = module
                .globals
                .iter()
                .filter(|(_, global)| global.is_managed);
            library.managed = shared
                .map(|(name, global)| (name.clone(), *global))
                .collect();
        }
        Ok(self.modules.modules.insert(module))
    }

    /// Gives a variable its memory and its first value.
    fn place(&mut self, context: ContextId, variable: &image::Variable) -> Result<Global> {
        let bytes = variable.bytes.max(1);
        let address = if variable.is_managed {
            self.managed_global_allocate(context, bytes)?
        } else {
            self.global_allocate(context, bytes)?
        };
        let start = memory::host(address);
        let initial = &variable.initial;
        // SAFETY: the memory was just allocated, is as long, and nobody else knows of it.
        unsafe {
            start.write_bytes(0, bytes as usize);
            start.copy_from_nonoverlapping(initial.as_ptr(), initial.len());
        }
        Ok(Global {
            address,
            bytes: variable.bytes,
            is_managed: variable.is_managed,
        })
    }

    fn release_globals(
        &mut self,
        globals: BTreeMap<String, Global>,
        kept: &BTreeMap<String, Global>,
    ) {
        for (name, global) in globals {
            if !kept.contains_key(&name) {
                self.global_release(global.address);
            }
        }
    }

    /// The context of a module.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: there is no such module.
    pub fn module_context(&self, handle: u64) -> Result<ContextId> {
        Ok(self.modules.module(handle)?.context)
    }

    /// Unloads a module. Work that uses it has ended.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: there is none. `NOT_PERMITTED`: it is a library's.
    pub fn unload_module(&mut self, handle: u64) -> Result {
        if self.modules.module(handle)?.library.is_some() {
            return Err(Code::NOT_PERMITTED);
        }
        if let Some(module) = self.modules.remove_module(handle) {
            self.release_globals(module.globals, &BTreeMap::new());
        }
        Ok(())
    }

    /// A variable of a module.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such module. `NOT_FOUND`: no such variable.
    pub fn module_global(&self, handle: u64, name: &str) -> Result<Global> {
        let globals = &self.modules.module(handle)?.globals;
        globals.get(name).copied().ok_or(Code::NOT_FOUND)
    }

    /// The function of a name in a module, always the same.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such module. `NOT_FOUND`: no such function.
    pub fn module_function(&mut self, handle: u64, name: &str) -> Result<u64> {
        let module = self.modules.modules.get_mut(handle);
        let module = module.ok_or(Code::INVALID_HANDLE)?;
        if let Some(function) = module.functions.get(name) {
            return Ok(*function);
        }
        if !module.image.has_kernel(name) {
            return Err(Code::NOT_FOUND);
        }
        let function = Function::new(handle, name, module.library);
        let function = self.modules.functions.insert(function);
        module.functions.insert(name.to_owned(), function);
        Ok(function)
    }

    /// The functions of a module, of an image that can be read: those of others are not known before
    /// they are asked for.
    ///
    /// # Errors
    /// `INVALID_HANDLE`: no such module.
    pub fn module_functions(&mut self, handle: u64) -> Result<Vec<u64>> {
        let module = self.modules.module(handle)?;
        let known = module.image.entries.keys().chain(module.functions.keys());
        let mut names: Vec<_> = known.cloned().collect();
        names.sort_unstable();
        names.dedup();
        let functions = names.iter().map(|name| self.module_function(handle, name));
        functions.collect()
    }
}
