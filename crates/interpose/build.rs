//! Keeps the library loaded, and binds it to itself. Its name it has from the package `soname`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Programs keep the addresses that they were given, and handlers for fork and exit point here.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // Look-ups by the library itself must come to its own `dlsym`, which tells them from others by where
    // they come from: another preloaded library that has the name may not stand between.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
