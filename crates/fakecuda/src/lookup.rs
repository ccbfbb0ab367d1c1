//! Finding a function by its name and a version.

use crate::api;
use crate::entry::Entry;
use crate::environment::environment;
use crate::names::FORMS;
use crate::stubs;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Where a name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// To a function.
    Function(*const ()),
    /// Nowhere: there is no such name, or this driver is older than it.
    Nothing,
    /// Nowhere at the version that was asked for, though the driver has it at a later one.
    NewerOnly,
}

/// Every exported function of the driver.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    api::entries().chain(stubs::ENTRIES)
}

/// An exported function.
pub fn entry(symbol: &str) -> Option<&'static Entry> {
    static ENTRIES: LazyLock<HashMap<&str, &Entry>> =
        LazyLock::new(|| entries().map(|entry| (entry.name, entry)).collect());
    ENTRIES.get(symbol).copied()
}

/// Whether a function is exported only for programs to find it.
pub fn is_stub(entry: &Entry) -> bool {
    stubs::ENTRIES.iter().any(|stub| std::ptr::eq(stub, entry))
}

/// The newest form of a function that is there, if the form of this name is not.
pub fn supported_form(name: &str) -> Option<&'static str> {
    let is_there = |symbol| entry(symbol).is_some_and(|entry| !is_stub(entry));
    let forms = FORMS
        .iter()
        .filter(|form| form.name == name && !form.per_thread && is_there(form.symbol));
    let newest = forms.max_by_key(|form| form.version)?;
    (!is_there(name)).then_some(newest.symbol)
}

/// The function that a name means at a version: its newest form that is not newer. Of the forms
/// whose null stream is the thread's own, if they are asked for and there is one.
pub fn find(name: &str, version: i32, per_thread: bool) -> Found {
    let first = FORMS.partition_point(|form| form.name < name);
    let forms = || {
        let all = FORMS[first..].iter().take_while(|form| form.name == name);
        all.filter(|form| form.version <= environment().version)
    };
    let is_missing = environment().missing.iter().any(|missing| missing == name);
    if is_missing || forms().next().is_none() {
        return Found::Nothing;
    }
    let newest = |own: bool| {
        let fitting = forms().filter(move |form| form.per_thread == own && form.version <= version);
        fitting.max_by_key(|form| form.version)
    };
    let form = Some(true)
        .filter(|_| per_thread)
        .and_then(newest)
        .or_else(|| newest(false));
    match form {
        Some(form) => {
            entry(form.symbol).map_or(Found::Nothing, |entry| Found::Function(entry.function))
        }
        None => Found::NewerOnly,
    }
}

/// Whether a function is the form of another whose null stream is the thread's own.
pub fn is_per_thread(entry: &Entry) -> bool {
    entry.name.ends_with("_ptsz") || entry.name.ends_with("_ptds")
}
