//! Starting the program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::environment::Variable;
use super::wait::Signals;

/// The program, running.
pub struct Started {
    pub child: Child,
    pub signals: Signals,
}

impl Started {
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

/// Why it does not run.
#[derive(Debug)]
pub struct Refusal {
    program: PathBuf,
    error: io::Error,
}

impl Refusal {
    /// What a shell's exit status would be.
    pub fn status(&self) -> u8 {
        match self.error.kind() {
            io::ErrorKind::NotFound => 127,
            _ => 126,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program.display();
        if self.error.kind() != io::ErrorKind::NotFound {
            return write!(f, "{program}: cannot be run: {}", self.error);
        }
        match find(self.program.as_os_str()) {
            // Of a file that is there, it is the interpreter that is missing.
            Some(path) => write!(
                f,
                "{}: its interpreter (the first line of a script, or the loader of a program) is not there",
                path.display()
            ),
            None if self.program.components().count() == 1 => {
                write!(f, "{program}: there is no such program in PATH")
            }
            None => write!(f, "{program}: there is no such file"),
        }
    }
}

/// Starts the program. Input, output, process group and ignored signals are luma's own.
pub fn start(command: &[OsString], variables: &[Variable]) -> Result<Started, Refusal> {
    let [program, arguments @ ..] = command else {
        unreachable!("the command line has a program");
    };
    let signals = Signals::hold();
    let inherited = signals.inherited();
    let mut start = Command::new(program);
    start
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)));
    // SAFETY: the function makes system calls only.
    unsafe {
        start.pre_exec(move || {
            inherited.restore();
            Ok(())
        });
    }
    let child = start.spawn().map_err(|error| Refusal {
        program: program.into(),
        error,
    })?;
    Ok(Started { child, signals })
}

/// The file that a program's name means, as a shell looks for it.
pub fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        let path = Path::new(program);
        return path.is_file().then(|| path.to_owned());
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut files = env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| file.is_file() && file::is_executable(file))
}

mod file {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    pub fn is_executable(path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
    }
}
