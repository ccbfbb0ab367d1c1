//! What kind of file a program is, as far as preloading is concerned.

use std::ffi::{CString, OsStr};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, FileKind, ReadCache, ReadRef, elf};

/// The parts of a program's file that decide whether a library can be preloaded into it.
#[derive(Debug, PartialEq, Eq)]
pub struct Machine {
    pub is_64: bool,
    /// The number of the processor's architecture (`e_machine`).
    pub architecture: u16,
    pub is_little_endian: bool,
}

/// What is in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    Elf {
        machine: Machine,
        /// The loader that it names; `None`: it is statically linked.
        loader: Option<PathBuf>,
    },
    /// A script, with the command that runs it.
    Script {
        interpreter: PathBuf,
        argument: Option<String>,
    },
    Other,
}

/// Looks into a file; `None`: it cannot be read.
pub fn kind(path: &Path) -> Option<Kind> {
    let mut file = File::open(path).ok()?;
    let mut start = [0; 256];
    let mut length = 0;
    while length < start.len() {
        match file.read(&mut start[length..]).ok()? {
            0 => break,
            more => length += more,
        }
    }
    if let Some(script) = script(&start[..length]) {
        return Some(script);
    }
    let cache = ReadCache::new(file);
    Some(
        match FileKind::parse(&cache) {
            Ok(FileKind::Elf32) => of_elf::<elf::FileHeader32<Endianness>, _>(&cache),
            Ok(FileKind::Elf64) => of_elf::<elf::FileHeader64<Endianness>, _>(&cache),
            _ => None,
        }
        .unwrap_or(Kind::Other),
    )
}

fn of_elf<'data, Elf: FileHeader<Endian = Endianness>, Data: ReadRef<'data>>(
    data: Data,
) -> Option<Kind> {
    let header = Elf::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let machine = Machine {
        is_64: header.is_type_64(),
        architecture: header.e_machine(endian),
        is_little_endian: header.is_little_endian(),
    };
    let segments = header.program_headers(endian, data).ok()?;
    let mut loader = None;
    for segment in segments {
        if let Some(path) = segment.interpreter(endian, data).ok()? {
            loader = Some(PathBuf::from(OsStr::from_bytes(path)));
        }
    }
    Some(Kind::Elf { machine, loader })
}

/// The first line of a script, as the kernel reads it.
fn script(start: &[u8]) -> Option<Kind> {
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let mut words = line.splitn(2, |byte| byte.is_ascii_whitespace());
    let interpreter = words.next().filter(|word| !word.is_empty())?;
    let argument = words.next().map(|rest| rest.trim_ascii());
    Some(Kind::Script {
        interpreter: PathBuf::from(OsStr::from_bytes(interpreter)),
        argument: argument
            .filter(|rest| !rest.is_empty())
            .map(|rest| String::from_utf8_lossy(rest).into_owned()),
    })
}

/// What makes the loader ignore `LD_PRELOAD` for a file, if anything does.
pub fn privilege(path: &Path) -> Option<&'static str> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    if mode & 0o4000 != 0 {
        return Some("set-user-ID");
    }
    // Without the group's right to run it, the bit means something else.
    if mode & 0o2010 == 0o2010 {
        return Some("set-group-ID");
    }
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: both are strings, and nothing is written.
    let length = unsafe {
        libc::getxattr(
            path.as_ptr(),
            c"security.capability".as_ptr(),
            std::ptr::null_mut(),
            0,
        )
    };
    (length > 0).then_some("given capabilities")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_script(text: &str) -> Option<(String, Option<String>)> {
        match script(text.as_bytes())? {
            Kind::Script {
                interpreter,
                argument,
            } => Some((interpreter.display().to_string(), argument)),
            _ => None,
        }
    }

    #[test]
    fn the_first_line_of_a_script_is_read_as_the_kernel_does() {
        let plain = Some(("/bin/sh".to_owned(), None));
        assert_eq!(of_script("#!/bin/sh\necho"), plain);
        assert_eq!(of_script("#! \t/bin/sh  \necho"), plain);
        assert_eq!(of_script("#!/bin/sh"), plain);
        let with = Some(("/usr/bin/env".to_owned(), Some("-S python3 -u".to_owned())));
        assert_eq!(of_script("#!/usr/bin/env -S python3 -u\n"), with);
        assert_eq!(of_script("#!\necho"), None);
        assert_eq!(of_script("echo"), None);
    }

    #[test]
    fn a_program_names_its_loader() {
        let own = std::env::current_exe().unwrap();
        let Some(Kind::Elf { machine, loader }) = kind(&own) else {
            panic!("{own:?}");
        };
        assert_eq!(machine.is_64, cfg!(target_pointer_width = "64"));
        assert_eq!(machine.is_little_endian, cfg!(target_endian = "little"));
        assert!(loader.unwrap().is_file());
        assert_eq!(kind(Path::new("/nowhere")), None);
        assert_eq!(kind(Path::new("/dev/null")), Some(Kind::Other));
    }
}
