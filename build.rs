//! Names the shared library for the dynamic linker, and keeps it loaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = std::env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it");
    let minor = std::env::var("CARGO_PKG_VERSION_MINOR").expect("cargo sets it");
    // Before 1.0 each minor version may break the interface, so the name has both numbers.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libluma.so.{major}.{minor}");
    // Handlers for fork and exit point into the library, so it must outlive dlclose.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
