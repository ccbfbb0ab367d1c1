//! What a look-up by name gives.

use super::door::Outcome;
use crate::table::{self, Hook};
use crate::{real, start, switch};
use std::ffi::{CStr, c_void};

/// A look-up of a name.
pub struct LookUp<'a> {
    /// Where: a handle of `dlopen`'s, or one of the two that stand for the caller's scope.
    pub handle: *mut c_void,
    pub name: &'a CStr,
    /// The address that it comes from.
    pub caller: usize,
    /// The linker's function behind this library.
    pub function: usize,
}

impl LookUp<'_> {
    /// Decides what it gives. `find` asks the linker's function for the same, from here.
    pub fn decide(&self, find: impl FnOnce() -> *mut c_void) -> Outcome {
        let go_on = Outcome::go_on(self.function);
        // What comes behind the caller: if he stands before this library, the linker finds it by itself.
        if self.handle == libc::RTLD_NEXT {
            return go_on;
        }
        if real::is_ours(self.caller) {
            return self.by_ourselves();
        }
        if let Some(hook) = table::of_symbol(self.name) {
            return self.of_hook(hook, find());
        }
        if self.name.to_bytes().starts_with(b"luma_") {
            let own = real::own(self.name);
            if !own.is_null() {
                return self.of_luma(own, find());
            }
        }
        go_on
    }

    /// luma's own look-ups of the driver's functions: what they find is behind this library, also if it is in
    /// the program's scope and was not asked there. A hook would call luma.
    fn by_ourselves(&self) -> Outcome {
        if self.handle != libc::RTLD_DEFAULT && self.name.to_bytes().starts_with(b"cu") {
            start::begin();
            let found = real::behind(self.name);
            if !found.is_null() {
                return Outcome::answer(found);
            }
        }
        Outcome::go_on(self.function)
    }

    /// `found`: what the linker finds.
    fn of_hook(&self, hook: &Hook, mut found: *mut c_void) -> Outcome {
        let ours = hook.address();
        if self.is_before_us(found, ours) {
            return Outcome::answer(found);
        }
        if found == ours {
            // The program's scope was asked, and has this library: which is no driver by itself.
            found = self.without_us();
        }
        // Where there is none, dlerror has why.
        if found.is_null() {
            return Outcome::answer(found);
        }
        hook.real.learn(found);
        if !switch::is_on() {
            return Outcome::answer(found);
        }
        hook.count_answer();
        Outcome::answer(ours)
    }

    /// Another copy of luma gives way, so that a process has one pool.
    fn of_luma(&self, ours: *mut c_void, found: *mut c_void) -> Outcome {
        if found.is_null() || self.is_before_us(found, ours) {
            return Outcome::answer(found);
        }
        Outcome::answer(ours)
    }

    /// Whether what was found is that of a library that stands before this one in the program's scope.
    fn is_before_us(&self, found: *mut c_void, ours: *mut c_void) -> bool {
        !found.is_null() && found != ours && found == real::in_program(self.name)
    }

    /// What the caller would find if this library did not have the name.
    fn without_us(&self) -> *mut c_void {
        let mut found = real::behind(self.name);
        if found.is_null() && self.handle == libc::RTLD_DEFAULT {
            // A library that is not in the program's scope may have the driver in its own.
            found = real::of_library(self.caller, self.name);
            if found.is_null() {
                // Once more, for what dlerror is to say.
                found = real::behind(self.name);
            }
        }
        found
    }
}
