//! What the driver says of devices and of codes, for all that the header names.

use crate::library::{driver, enumeration, initialize};
use crate::support;
use std::ffi::{CStr, c_char, c_int};
use std::fs;

/// cuda.h; without it says that a test is skipped.
fn header(test: &str) -> Option<String> {
    let path = support::headers(test)?.join("cuda.h");
    Some(fs::read_to_string(path).expect("cuda.h can be read"))
}

#[test]
fn every_attribute_of_a_device_has_a_value() {
    let Some(header) = header("attributes of devices") else {
        return;
    };
    initialize();
    let prefix = "CU_DEVICE_ATTRIBUTE_";
    let attributes = enumeration(&header, "typedef enum CUdevice_attribute_enum", prefix);
    assert!(attributes.len() > 100, "{} attributes", attributes.len());
    // SAFETY: the type is that of cuda.h.
    let get = unsafe {
        driver()
            .function::<unsafe extern "C" fn(*mut c_int, u32, c_int) -> u32>("cuDeviceGetAttribute")
    };
    let ask = |which: u32| {
        let mut value = 0;
        // SAFETY: there is room for the value.
        unsafe { get(&mut value, which, 0) }
    };
    let unknown: Vec<_> = attributes
        .iter()
        .filter(|(_, value)| ask(*value) != 0)
        .collect();
    assert!(unknown.is_empty(), "no answer: {unknown:?}");
    let last = attributes.iter().map(|(_, value)| *value).max();
    const INVALID_VALUE: u32 = 1;
    assert_eq!(ask(last.expect("there are some") + 1), INVALID_VALUE);
    assert_eq!(ask(0), INVALID_VALUE);
}

#[test]
fn every_code_has_its_name_and_a_text() {
    let Some(header) = header("codes") else {
        return;
    };
    let codes = enumeration(&header, "typedef enum cudaError_enum", "CUDA_");
    assert!(codes.len() > 90, "{} codes", codes.len());
    type Get = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;
    // SAFETY: the types are those of cuda.h.
    let (name, text) = unsafe {
        (
            driver().function::<Get>("cuGetErrorName"),
            driver().function::<Get>("cuGetErrorString"),
        )
    };
    let ask = |get: Get, code: u32| {
        let mut string = std::ptr::null();
        // SAFETY: there is room for the pointer; what it points to stays.
        unsafe {
            let answer = get(code, &mut string);
            let string = (!string.is_null()).then(|| CStr::from_ptr(string).to_string_lossy());
            (answer, string.map(String::from))
        }
    };
    for (wanted, code) in codes {
        assert_eq!(ask(name, code), (0, Some(format!("CUDA_{wanted}"))));
        let (answer, said) = ask(text, code);
        assert!(
            answer == 0 && said.is_some_and(|said| !said.is_empty()),
            "{wanted}"
        );
    }
    const INVALID_VALUE: u32 = 1;
    assert_eq!(ask(name, 12345), (INVALID_VALUE, None));
    assert_eq!(ask(text, 12345), (INVALID_VALUE, None));
}
