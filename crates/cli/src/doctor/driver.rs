//! The CUDA driver of this machine, asked directly.

use std::env;
use std::ffi::{c_int, c_uint};

use libloading::Library;
use serde::Serialize;

const NAME: &str = "libcuda.so.1";

/// What there is of a driver.
#[derive(Serialize)]
pub struct Driver {
    library: &'static str,
    found: bool,
    /// Where the dynamic loader looks.
    searched: Vec<String>,
    /// What the loader or the driver said when it failed.
    failure: Option<String>,
    /// Such as 12080 for 12.8.
    version: Option<i32>,
    devices: Option<i32>,
}

type Init = unsafe extern "C" fn(c_uint) -> c_uint;
type GetNumber = unsafe extern "C" fn(*mut c_int) -> c_uint;

pub fn look() -> Driver {
    let mut driver = Driver {
        library: NAME,
        found: false,
        searched: searched(),
        failure: None,
        version: None,
        devices: None,
    };
    // SAFETY: loading runs the library's initialisers. The name is the driver's own, which every
    // CUDA program loads in this way.
    match unsafe { Library::new(NAME) } {
        Err(error) => driver.failure = Some(error.to_string()),
        Ok(library) => {
            driver.found = true;
            match ask(&library, &mut driver) {
                Ok(()) => {}
                Err(failure) => driver.failure = Some(failure),
            }
            // A driver has threads of its own by now: unloading it would pull code from under them.
            std::mem::forget(library);
        }
    }
    driver
}

fn ask(library: &Library, driver: &mut Driver) -> Result<(), String> {
    // SAFETY: the types are those of the driver's documentation.
    let (version, init, count) = unsafe {
        (
            symbol::<GetNumber>(library, "cuDriverGetVersion")?,
            symbol::<Init>(library, "cuInit")?,
            symbol::<GetNumber>(library, "cuDeviceGetCount")?,
        )
    };
    driver.version = Some(number(version, "cuDriverGetVersion")?);
    // SAFETY: the driver's only flag is 0.
    match unsafe { init(0) } {
        0 => {}
        // CUDA_ERROR_NO_DEVICE: a driver, and nothing that it drives.
        100 => {
            driver.devices = Some(0);
            return Ok(());
        }
        code => return Err(format!("cuInit failed with CUresult {code}")),
    }
    driver.devices = Some(number(count, "cuDeviceGetCount")?);
    Ok(())
}

/// # Safety
/// `T` must be the type of the function of that name.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, String> {
    // SAFETY: as the caller says.
    let symbol = unsafe { library.get::<T>(name.as_bytes()) };
    symbol
        .map(|symbol| *symbol)
        .map_err(|error| format!("{NAME} is no CUDA driver: {error}"))
}

fn number(function: GetNumber, name: &str) -> Result<i32, String> {
    let mut value: c_int = 0;
    // SAFETY: the function writes one int.
    match unsafe { function(&raw mut value) } {
        0 => Ok(value),
        code => Err(format!("{name} failed with CUresult {code}")),
    }
}

fn searched() -> Vec<String> {
    let path = match env::var_os("LD_LIBRARY_PATH") {
        Some(path) if !path.is_empty() => format!("LD_LIBRARY_PATH={}", path.to_string_lossy()),
        _ => "LD_LIBRARY_PATH (not set)".into(),
    };
    vec![path, "/etc/ld.so.cache".into(), "/lib and /usr/lib".into()]
}

impl Driver {
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.found {
            lines.push(format!(
                "not found: {}",
                self.failure.as_deref().unwrap_or_default()
            ));
            lines.push(format!("looked in {}", self.searched.join(", ")));
            return lines;
        }
        lines.push(match self.version {
            Some(version) => {
                format!(
                    "{NAME}, for CUDA up to {}.{}",
                    version / 1000,
                    version % 1000 / 10
                )
            }
            None => NAME.into(),
        });
        lines.extend(self.failure.clone());
        lines
    }

    pub fn devices_line(&self) -> String {
        match self.devices {
            Some(1) => "1 CUDA device".into(),
            Some(count) => format!("{count} CUDA devices"),
            None if self.found => "unknown: the driver cannot be asked".into(),
            None => "none: there is no driver".into(),
        }
    }
}
