//! Gives the library the name under which programs look for NVIDIA's management library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // The file keeps the crate's own name, as fakecuda's does and for the same reason.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
}
