//! `luma doctor`: what this machine has, what luma makes of it, and why.

mod driver;
mod environment;
mod library;
mod machine;

use crate::headings::Page;
use std::env;
use std::io::Write;

use anyhow::Result;
use luma::config::Settings;
use serde::Serialize;

use crate::Outcome;
use crate::size;
use driver::Driver;
use environment::Variable;
use library::Library;
use machine::Machine;

/// Say which driver, devices and backend there are, and why
///
/// Looks for the CUDA driver, has the library make its default pool and serve one allocation, and
/// tells what every LUMA_ variable of the environment does.
///
/// Exit status: 0 luma works here, 1 it does not or a LUMA_ variable is wrong.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// All findings.
#[derive(Serialize)]
struct Findings {
    library: Library,
    driver: Driver,
    machine: Machine,
    environment: Vec<Variable>,
    /// What is wrong and what to do, empty where all is well.
    problems: Vec<String>,
}

pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let (settings, ignored) = Settings::read(|name| env::var_os(name));
    let environment = environment::look(&ignored);
    // SAFETY: the program has one thread. A look must not write over somebody's recording.
    unsafe { env::remove_var("LUMA_TRACE") };
    let library = library::look(&settings);

    let mut problems: Vec<String> = library.failure.iter().cloned().collect();
    problems.extend(environment.iter().filter_map(Variable::problem));
    let findings = Findings {
        library,
        driver: driver::look(),
        machine: machine::look(),
        environment,
        problems,
    };

    let text = if arguments.json {
        serde_json::to_string_pretty(&findings)? + "\n"
    } else {
        findings.text()
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(if findings.problems.is_empty() {
        Outcome::Done
    } else {
        Outcome::Incomplete
    })
}

impl Findings {
    fn text(&self) -> String {
        let mut page = Page::default();
        page.line("library", &format!("luma {}", self.library.version));
        page.line("header", &self.machine.header.to_string());
        for line in self.driver.lines() {
            page.line("driver", &line);
        }
        page.line("devices", &self.driver.devices_line());
        page.line("backend", &self.library.backend_line());
        page.line("preset", self.library.preset);
        page.line(
            "limit",
            &match self.library.memory_limit {
                Some(0) => "none".into(),
                Some(bytes) => size::show(bytes),
                None => "unknown: the default pool cannot be made".into(),
            },
        );
        for line in self.machine.lines() {
            page.line("machine", &line);
        }
        if self.environment.is_empty() {
            page.line("environment", "no LUMA_ variable is set");
        }
        for variable in &self.environment {
            page.line("environment", &variable.to_string());
        }
        for problem in &self.problems {
            page.line("problem", problem);
        }
        if self.problems.is_empty() {
            page.line("result", "luma works here");
        }
        page.text
    }
}
