//! While the program runs: signals are passed on, a stop is followed, the end is told.
//!
//! Program and luma are in one process group. What the terminal sends to it, both have, and what the program sends
//! to it; all else that luma is sent is passed on. Signals are held back and taken one by one, so that no handler
//! runs and none is lost.

use std::fs;
use std::mem::MaybeUninit;
use std::process::ExitCode;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use libc::{c_int, pid_t, sigset_t};

use super::start::Started;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this exit status.
    Exited(u8),
    /// By this signal.
    Signal(i32),
}

/// Signals that come of luma's own faults, or that cannot be held back.
const OWN: [c_int; 9] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// What the terminal sends to all processes of a group.
const OF_TERMINAL: [c_int; 6] = [
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGWINCH,
];

/// Whether `SIGPIPE` was ignored when luma began. Rust's runtime ignores it before `main`, and its processes do
/// not.
static IGNORED_PIPE: AtomicBool = AtomicBool::new(false);

extern "C" fn before_main() {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the action is written where that succeeds.
    let ignored = unsafe {
        libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    };
    IGNORED_PIPE.store(ignored, Ordering::Relaxed);
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

/// What a process has from its parent.
#[derive(Clone, Copy)]
pub struct Inherited {
    mask: sigset_t,
    child: libc::sighandler_t,
}

impl Inherited {
    /// Makes the calling process as luma was when it began.
    pub fn restore(&self) {
        // SAFETY: the mask is one that the system gave.
        unsafe {
            if self.child == libc::SIG_IGN {
                libc::signal(libc::SIGCHLD, libc::SIG_IGN);
            }
            if IGNORED_PIPE.load(Ordering::Relaxed) {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, ptr::null_mut());
        }
    }
}

/// Where a signal came from.
#[derive(Clone, Copy)]
enum Sender {
    /// A terminal or a clock, say.
    Kernel,
    Process(pid_t),
}

/// The signals that are held back.
pub struct Signals {
    held: sigset_t,
    inherited: Inherited,
}

impl Signals {
    /// Holds all signals back, to be done before the program starts.
    pub fn hold() -> Self {
        // SAFETY: the sets are filled before they are used; luma has no handlers.
        unsafe {
            let mut held = MaybeUninit::uninit();
            libc::sigfillset(held.as_mut_ptr());
            let mut held = held.assume_init();
            for signal in OWN {
                libc::sigdelset(&raw mut held, signal);
            }
            let mut mask = MaybeUninit::uninit();
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const held, mask.as_mut_ptr());
            // Where it is ignored, nobody learns how a child ended.
            let child = libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            let inherited = Inherited {
                mask: mask.assume_init(),
                child,
            };
            Self { held, inherited }
        }
    }

    pub fn inherited(&self) -> Inherited {
        self.inherited
    }

    /// Waits for the next signal.
    fn next(&self) -> (c_int, Sender) {
        loop {
            let mut about = MaybeUninit::<libc::siginfo_t>::uninit();
            // SAFETY: the set is filled; the information is written where a number comes back, and has the sender
            // where one of the functions that send signals was called.
            unsafe {
                let signal = libc::sigwaitinfo(&raw const self.held, about.as_mut_ptr());
                if signal > 0 {
                    let about = about.assume_init();
                    let sender = if about.si_code <= 0 {
                        Sender::Process(about.si_pid())
                    } else {
                        Sender::Kernel
                    };
                    return (signal, sender);
                }
            }
        }
    }
}

/// Waits for the end of the program.
pub fn wait_for(started: &mut Started) -> Result<Ending> {
    let pid = pid_t::try_from(started.id()).context("the program's number")?;
    loop {
        match started.signals.next() {
            (libc::SIGCHLD, _) => {
                if let Some(ending) = look(pid)? {
                    return Ok(ending);
                }
            }
            (libc::SIGCONT, _) => resume(pid),
            (signal, sender) if is_for_luma_alone(signal, sender, pid) => send(pid, signal),
            _ => {}
        }
    }
}

/// Whether the program does not have a signal that luma got.
fn is_for_luma_alone(signal: c_int, sender: Sender, pid: pid_t) -> bool {
    match sender {
        // It was for the group that both are in, or to tell luma something: a handler in the program that sends
        // it on would get it back for ever.
        Sender::Process(sender) => !is_of_program(sender, pid),
        // SAFETY: the calls have no side effects. A terminal that is hung up tells the session's first process.
        Sender::Kernel if signal == libc::SIGHUP => unsafe { libc::getsid(0) == libc::getpid() },
        // A clock that was set before luma began goes on in luma.
        Sender::Kernel => !OF_TERMINAL.contains(&signal),
    }
}

/// Whether a process is the program, or was started by it.
fn is_of_program(mut process: pid_t, program: pid_t) -> bool {
    /// A chain that changes while it is followed ends, too.
    const LONGEST: usize = 256;
    for _ in 0..LONGEST {
        if process == program {
            return true;
        }
        let parent = stat(process).and_then(|[_, parent]| parent.parse().ok());
        match parent {
            Some(parent) if parent > 1 => process = parent,
            _ => return false,
        }
    }
    false
}

/// The end of the program, if that is what has happened. If it was stopped, so is luma until both go on.
fn look(pid: pid_t) -> Result<Option<Ending>> {
    loop {
        let mut status = 0;
        // SAFETY: the status is written.
        match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG | libc::WUNTRACED) } {
            0 => return Ok(None),
            -1 => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    bail!("the program's end cannot be waited for: {error}");
                }
            }
            _ if libc::WIFEXITED(status) => {
                return Ok(Some(Ending::Exited(libc::WEXITSTATUS(status) as u8)));
            }
            _ if libc::WIFSIGNALED(status) => {
                return Ok(Some(Ending::Signal(libc::WTERMSIG(status))));
            }
            // It may go on by now.
            _ if is_stopped(pid) => {
                // SAFETY: the shell that waits for luma sees it stopped.
                unsafe { libc::raise(libc::SIGSTOP) };
                resume(pid);
            }
            _ => {}
        }
    }
}

fn resume(pid: pid_t) {
    if is_stopped(pid) {
        send(pid, libc::SIGCONT);
    }
}

fn send(pid: pid_t, signal: c_int) {
    // SAFETY: the number is the program's as long as nobody has waited for its end.
    unsafe { libc::kill(pid, signal) };
}

/// Whether job control has stopped it.
fn is_stopped(pid: pid_t) -> bool {
    stat(pid).is_some_and(|[state, _]| state == "T")
}

/// A process's state and its parent's number.
fn stat(pid: pid_t) -> Option<[String; 2]> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // They follow the name, which is in parentheses and may hold any bytes.
    let line = String::from_utf8_lossy(&line);
    let mut words = line.rsplit(')').next()?.split_whitespace();
    Some([words.next()?.to_owned(), words.next()?.to_owned()])
}

/// Ends luma as the program ended.
pub fn end_as(ending: Ending) -> ExitCode {
    let signal = match ending {
        Ending::Exited(status) => return ExitCode::from(status),
        Ending::Signal(signal) => signal,
    };
    // SAFETY: the sets are filled before they are used. The memory of luma is of no use to who looks for the
    // program's fault.
    unsafe {
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::signal(signal, libc::SIG_DFL);
        let mut only = MaybeUninit::uninit();
        libc::sigemptyset(only.as_mut_ptr());
        libc::sigaddset(only.as_mut_ptr(), signal);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, only.as_ptr(), ptr::null_mut());
    }
    // The first process of a container takes no signal that it does not handle.
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}
