//! cudarc, and from Python cuda-bindings, cuda-core and numba-cuda.

use crate::library;
use crate::program::MODES;
use crate::support::clients::{self, Client};

fn runs(client: Option<Client>) {
    let Some(client) = client else {
        return;
    };
    for mode in MODES {
        let mut env = mode.to_vec();
        env.push(("LD_PRELOAD", library()));
        client.run(&env);
    }
}

#[test]
fn cudarc() {
    runs(clients::cudarc());
}

#[test]
fn cuda_bindings() {
    runs(clients::python("cuda-bindings", "use_bindings.py"));
}

#[test]
fn cuda_core() {
    runs(clients::python("cuda-core", "use_core.py"));
}

#[test]
fn numba_cuda() {
    runs(clients::python("numba-cuda", "use_numba.py"));
}
