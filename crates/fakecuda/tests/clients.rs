//! Clients of the driver that others wrote, unchanged, in every mode of the double.

mod support;

use support::clients::{self, Client};

const MODES: &[&[(&str, &str)]] = &[
    &[],
    &[("FAKECUDA_STRICT", "1")],
    &[
        ("FAKECUDA_STRICT", "1"),
        ("FAKECUDA_EXEC", "lazy"),
        ("FAKECUDA_SEED", "1"),
    ],
    &[
        ("FAKECUDA_STRICT", "1"),
        ("FAKECUDA_EXEC", "lazy"),
        ("FAKECUDA_SEED", "2"),
    ],
];

fn runs(client: Option<Client>) {
    if let Some(client) = client {
        for mode in MODES {
            client.run(mode);
        }
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
