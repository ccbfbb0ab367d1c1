//! Gives the library that depends on this package its name.
//!
//! Cargo hands the arguments for a package's shared library on to the shared libraries that depend on it, behind
//! their own and in the order of the packages' names, and of several names the linker takes the last: without
//! this, the library would have that of luma's own.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libluma_interpose.so");
}
