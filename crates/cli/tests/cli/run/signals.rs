//! Signals that come while the program runs, and the terminal.

use super::{can_compile, luma_run, program};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, ptr};

/// A run that is killed if its test fails.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = luma_run(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn pid(&self) -> libc::pid_t {
        self.child.id().try_into().unwrap()
    }

    fn send(&self, signal: i32) {
        // SAFETY: the process is a child that was not waited for.
        assert_eq!(unsafe { libc::kill(self.pid(), signal) }, 0);
    }

    fn wait_until_stopped(&self) {
        let begin = Instant::now();
        while state(self.pid()) != 'T' {
            assert!(
                begin.elapsed() < Duration::from_secs(20),
                "luma does not stop"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn state(pid: libc::pid_t) -> char {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let rest = line.rsplit(')').next().unwrap();
    rest.trim_start().chars().next().unwrap()
}

#[test]
fn signals_reach_the_program_once_each() {
    if !can_compile() {
        return;
    }
    let signals = program("signals");
    let mut running = Running::start(&["--quiet", "--", &signals]);
    assert_eq!(running.line(), "ready");
    let sent = [
        libc::SIGTERM,
        libc::SIGINT,
        libc::SIGHUP,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGALRM,
        libc::SIGWINCH,
        libc::SIGTSTP,
        libc::SIGPIPE,
        libc::SIGRTMIN() + 1,
    ];
    for signal in sent {
        running.send(signal);
        assert_eq!(running.line(), format!("got {signal}"));
    }
    running.send(libc::SIGUSR2);
    let status = running.child.wait().unwrap();
    assert_eq!(status.code(), Some(sent.len().try_into().unwrap()));
}

#[test]
fn a_signal_that_ends_the_program_ends_luma() {
    let mut running = Running::start(&["--quiet", "--", "sh", "-c", "echo ready; exec sleep 60"]);
    assert_eq!(running.line(), "ready");
    running.send(libc::SIGTERM);
    assert_eq!(running.child.wait().unwrap().signal(), Some(libc::SIGTERM));
}

#[test]
fn a_program_that_stops_stops_luma() {
    if !can_compile() {
        return;
    }
    let signals = program("signals");
    let mut running = Running::start(&["--quiet", "--", &signals, "stop"]);
    assert_eq!(running.line(), "stops");
    running.wait_until_stopped();
    // To luma alone, whose program is to go on, too.
    running.send(libc::SIGCONT);
    assert_eq!(running.line(), "goes on");
    assert_eq!(running.child.wait().unwrap().code(), Some(7));
}

/// What the program sends to its group, of which luma is one, it has already.
#[test]
fn a_signal_to_the_program_s_own_group_comes_once() {
    if !can_compile() {
        return;
    }
    let signals = program("signals");
    for sender in ["group", "child"] {
        let mut running = Running::start(&["--quiet", "--", &signals, sender]);
        assert_eq!(running.line(), "ready");
        assert_eq!(running.line(), format!("got {}", libc::SIGUSR1));
        // Whatever else luma might pass on comes before this.
        running.send(libc::SIGUSR2);
        assert_eq!(running.child.wait().unwrap().code(), Some(1), "{sender}");
    }
}

/// A clock outlives `exec`, so that it may be one that somebody set for the program.
#[test]
fn a_clock_that_was_set_before_luma_ends_the_program() {
    let mut command = luma_run(&["--quiet", "--", "sleep", "60"]);
    // SAFETY: the function makes a system call only.
    unsafe {
        command.pre_exec(|| {
            libc::alarm(1);
            Ok(())
        });
    }
    let status = command.status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGALRM));
}

#[test]
fn ignored_signals_stay_ignored() {
    let ignored = |command: &mut Command| {
        // SAFETY: the function makes system calls only.
        unsafe {
            command.pre_exec(|| {
                // What the tests themselves ignore, as in the background of a script, is another matter.
                for signal in [libc::SIGINT, libc::SIGQUIT] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                for signal in [libc::SIGPIPE, libc::SIGHUP, libc::SIGCHLD] {
                    libc::signal(signal, libc::SIG_IGN);
                }
                Ok(())
            });
        }
        super::tools::run(command, super::RUN_TIME).stdout
    };
    let program = ["grep", "SigIgn", "/proc/self/status"];
    let plain = ignored(super::tools::command(program[0]).args(&program[1..]));
    assert!(plain.starts_with("SigIgn:"), "{plain}");
    assert_eq!(ignored(luma_run(&["--quiet", "--"]).args(program)), plain);
}

/// Only the session's first process is told of it, which luma is where `ssh` or a container starts it.
#[test]
fn a_terminal_that_is_hung_up_ends_the_program() {
    let mut seen = Seen::start(luma_run(&[
        "--quiet",
        "--",
        "sh",
        "-c",
        "echo ready; exec sleep 60",
    ]));
    seen.until("ready");
    seen.terminal = fs::File::open("/dev/null").unwrap();
    assert_eq!(seen.child.wait().unwrap().signal(), Some(libc::SIGHUP));
}

/// The two ends of a terminal.
fn terminal() -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (0, 0);
    // SAFETY: both are written where that succeeds.
    unsafe {
        let made = libc::openpty(
            &raw mut master,
            &raw mut slave,
            ptr::null_mut(),
            ptr::null(),
            ptr::null(),
        );
        assert_eq!(made, 0, "{}", io::Error::last_os_error());
        // Whoever has it keeps the terminal from being hung up.
        libc::fcntl(master, libc::F_SETFD, libc::FD_CLOEXEC);
        (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave))
    }
}

#[test]
fn the_terminal_s_interrupt_reaches_the_program_once() {
    if !can_compile() {
        return;
    }
    let signals = program("signals");
    let mut seen = Seen::start(luma_run(&["--quiet", "--", &signals]));
    seen.until("ready");
    // What Ctrl-C and Ctrl-\ send.
    seen.write(b"\x03");
    seen.until("got 2");
    seen.write(b"\x1c");
    seen.until("got 3");
    // Whatever else luma might pass on comes before this.
    // SAFETY: the process is a child that was not waited for.
    unsafe { libc::kill(seen.child.id().try_into().unwrap(), libc::SIGUSR2) };
    assert_eq!(seen.child.wait().unwrap().code(), Some(2));
}

/// In a shell with job control.
#[test]
fn the_terminal_s_stop_stops_both_until_the_shell_lets_them_go_on() {
    let mut shell = super::tools::command("sh");
    // 147: stopped by SIGSTOP.
    let job =
        r#"set -m; "$1" run --quiet -- cat; echo "status $?"; fg >/dev/null; echo "at last $?""#;
    shell.args(["-c", job, "sh"]).arg(super::luma());
    let mut seen = Seen::start(shell);
    seen.write(b"one\n");
    // The terminal's echo, and cat's.
    seen.until("one\r\none\r\n");
    seen.write(b"\x1a");
    seen.until("status 147");
    seen.write(b"two\n");
    seen.until("two\r\ntwo\r\n");
    seen.write(b"\x04");
    seen.until("at last 0");
    assert!(seen.child.wait().unwrap().success());
}

/// A command with a terminal of its own, and what it has written there.
struct Seen {
    child: Child,
    terminal: fs::File,
    text: Vec<u8>,
}

impl Drop for Seen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Seen {
    fn start(mut command: Command) -> Self {
        let (master, slave) = terminal();
        command
            .stdin(slave.try_clone().unwrap())
            .stdout(slave.try_clone().unwrap())
            .stderr(slave);
        // SAFETY: the function makes system calls only.
        unsafe {
            command.pre_exec(|| {
                // A session of its own, of which the terminal is that of standard input.
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) != 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        Self {
            child,
            terminal: master.into(),
            text: Vec::new(),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.terminal.write_all(bytes).unwrap();
    }

    /// Waits until a text was written.
    fn until(&mut self, text: &str) {
        let mut bytes = [0; 256];
        while !String::from_utf8_lossy(&self.text).contains(text) {
            let count = self
                .terminal
                .read(&mut bytes)
                .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.text)));
            self.text.extend(&bytes[..count]);
        }
    }
}
