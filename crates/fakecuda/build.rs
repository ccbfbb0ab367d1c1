//! Gives the library the name under which programs look for the CUDA driver, and makes a stub of
//! every driver function that `src/api` does not have.

// Only the symbols are looked at here.
#[allow(dead_code)]
#[path = "src/names.rs"]
mod names;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The functions that the files of a folder define in `driver!`: what follows `fn`, and other names
/// after a bar.
fn implemented(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in fs::read_dir(folder).expect("the sources are there") {
        let path = file.expect("the sources can be listed").path();
        let text = fs::read_to_string(&path).expect("the sources can be read");
        for line in text.lines().map(str::trim) {
            if !line.starts_with("fn cu") {
                continue;
            }
            let names = line.split('(').next().unwrap_or_default();
            for name in names
                .split([' ', '|', ':'])
                .filter(|word| word.starts_with("cu"))
            {
                found.insert(name.to_owned());
            }
        }
    }
    found
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/names.rs");
    println!("cargo::rerun-if-changed=src/api");
    // The file keeps the crate's own name: cargo puts the target folder on the library path of
    // what it runs, and no program may find a driver there that it did not ask for.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    // Handlers for fork and exit point into the library, and its threads run in it.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // As in a driver, what is called and handed out inside is its own, also where another library that has
    // the names comes first.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");

    let implemented = implemented(Path::new("src/api"));
    let symbols: BTreeSet<&str> = names::FORMS.iter().map(|form| form.symbol).collect();
    let stubs = symbols
        .into_iter()
        .filter(|symbol| !implemented.contains(*symbol));
    let lines: String = stubs.map(|stub| format!("    {stub}\n")).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("stubs.rs"), format!("stubs! {{\n{lines}}}\n"))
        .expect("the build's folder can be written to");
}
