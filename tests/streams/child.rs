//! Tests that need the environment to be another one, which is read once a process.

use std::process::Command;

/// Runs a test in a process of its own in which requests wait so long at most, in seconds.
pub fn with_wait(seconds: &str, test: &str, body: impl FnOnce()) {
    if std::env::var("LUMA_OOM_WAIT").is_ok_and(|value| value == seconds) {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().expect("a test knows its own path"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LUMA_") {
            command.env_remove(&name);
        }
    }
    command.args(["--exact", test, "--nocapture"]);
    let output = command
        .env("LUMA_OOM_WAIT", seconds)
        .output()
        .expect("it runs");
    let told =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let passed = output.status.success() && told[0].contains("1 passed");
    assert!(
        passed,
        "{test} with LUMA_OOM_WAIT={seconds}:\n{}\n{}",
        told[0], told[1]
    );
}

/// Tests in processes of their own.
macro_rules! with_wait {
    ($($seconds:literal $name:ident $body:block)*) => {
        $(#[test]
        fn $name() {
            let path = concat!(module_path!(), "::", stringify!($name));
            let (_, test) = path.split_once("::").expect("a path");
            crate::child::with_wait($seconds, test, || $body);
        })*
    };
}
