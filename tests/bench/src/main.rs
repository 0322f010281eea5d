//! Benchmarks side by side: every figure compares two things that are timed in turn in one run. See the README beside this crate.
//!
//! ```text
//! capsule-bench [b1|b2|b10|spin|all]     a table on standard output; results.json and results.svg in target/bench
//! ```
#![warn(missing_docs)]

mod bare;
mod call;
mod decode;
mod figure;
mod guests;
mod plot;
mod server;
mod spin;
mod start;

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use capsule_tools::{Grants, Options, ToolSource, Toolbox};
use figure::Figure;
use serde_json::Value;

/// What went wrong, for a person to read: a benchmark that cannot run, or a side that gave a wrong answer.
type Failed = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Failed>;

/// What one benchmark says: its figures, and what it had to leave out.
#[derive(Default)]
struct Done {
    figures: Vec<Figure>,
    left_out: Vec<String>,
}

/// A benchmark: what it is called on the command line, and what runs it.
type Benchmark = (&'static str, fn() -> Result<Done>);

const BENCHMARKS: [Benchmark; 4] = [
    ("b1", start::run),
    ("b2", call::run),
    ("b10", decode::run),
    ("spin", spin::run),
];

fn main() -> ExitCode {
    let asked: Vec<String> = env::args().skip(1).collect();
    match run(&asked) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // With standard error gone as well, the exit code still says it.
            let _ = writeln!(io::stderr(), "capsule-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(asked: &[String]) -> Result<()> {
    let chosen = chosen(asked)?;
    if cfg!(debug_assertions) {
        writeln!(
            io::stderr(),
            "capsule-bench: a debug build; its figures mean nothing (use --release)"
        )?;
    }
    let mut figures = Vec::new();
    for (name, benchmark) in chosen {
        writeln!(io::stderr(), "capsule-bench: {name} ...")?;
        let done = benchmark().map_err(|cause| format!("{name}: {cause}"))?;
        for left_out in done.left_out {
            writeln!(io::stderr(), "capsule-bench: {name}: left out: {left_out}")?;
        }
        figures.extend(done.figures);
    }
    io::stdout().write_all(figure::table(&figures).as_bytes())?;
    let folder = write(&figures)?;
    writeln!(
        io::stderr(),
        "capsule-bench: results.json and results.svg are in {}",
        folder.display()
    )?;
    Ok(())
}

/// The benchmarks of these names; all of them without a name.
fn chosen(asked: &[String]) -> Result<Vec<Benchmark>> {
    if asked.is_empty() || asked.iter().any(|name| name == "all") {
        return Ok(BENCHMARKS.to_vec());
    }
    let mut chosen = Vec::new();
    for name in asked {
        let found = BENCHMARKS.iter().find(|(known, _)| known == name);
        chosen.push(
            *found.ok_or_else(|| format!("no benchmark is called `{name}`; there are b1, b2, b10, spin and all"))?,
        );
    }
    Ok(chosen)
}

/// Leaves the figures of this run in `bench` beside the folder of the program; answers the folder.
fn write(figures: &[Figure]) -> Result<PathBuf> {
    let folder = program_folder()?.join("../bench");
    fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let results = Value::Array(figures.iter().map(Figure::json).collect());
    fs::write(folder.join("results.json"), format!("{results:#}\n"))?;
    fs::write(folder.join("results.svg"), plot::svg(figures))?;
    Ok(folder)
}

/// The folder of this program, where its neighbours of the same build are.
fn program_folder() -> Result<PathBuf> {
    let program = env::current_exe()?;
    Ok(program.parent().ok_or("this program has no folder")?.to_owned())
}

/// A tool that the product ships.
fn shipped(component: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../plugins/tools/prebuilt")
        .join(component)
}

/// A toolbox with this tool alone, with the default limits and no grant.
fn load(source: &ToolSource) -> Result<Toolbox> {
    let loaded = Toolbox::load(std::slice::from_ref(source), &Grants::default(), &Options::default());
    loaded.map_err(|errors| {
        let messages: Vec<_> = errors.into_iter().map(|error| error.message.clone()).collect();
        messages.join("; ").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_is_asked_for_by_name_and_all_run_without_one() {
        let names = |asked: &[&str]| -> std::result::Result<Vec<&str>, String> {
            let asked: Vec<String> = asked.iter().map(|&name| name.to_owned()).collect();
            let chosen = chosen(&asked).map_err(|error| error.to_string())?;
            Ok(chosen.into_iter().map(|(name, _)| name).collect())
        };
        assert_eq!(names(&[]), Ok(vec!["b1", "b2", "b10", "spin"]));
        assert_eq!(names(&["spin", "b1"]), Ok(vec!["spin", "b1"]));
        assert_eq!(names(&["b1", "all"]), Ok(vec!["b1", "b2", "b10", "spin"]));
        let refused = "no benchmark is called `b3`; there are b1, b2, b10, spin and all";
        assert_eq!(names(&["b3"]), Err(refused.to_owned()));
    }
}
