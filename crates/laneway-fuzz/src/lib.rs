//! What hostile input is tried on, and how more of it is made: each target takes any bytes, and may refuse them, but must not
//! panic, hang or do what its comment forbids. `corpus/TARGET/` has inputs worth keeping, one a file; the tests try each of
//! them, and thousands made from them. The targets are plain functions, so that a fuzzer with coverage can drive them as well:
//!
//! ```text
//!   fuzz_target!(|bytes: &[u8]| laneway_fuzz::target("document").unwrap()(bytes));
//! ```
//! Found something? Keep the bytes as a file of the corpus, with a name that says what they are.

mod mutant;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use laneway_core::definition::{Source, compile, read_params};
use laneway_core::expression::{Expression, Scope, Template};
use laneway_core::schedule::{CatchUp, Cron, Schedule, Zone};
use laneway_core::time::Millis;
use laneway_core::{output, params};

pub use mutant::Mutants;

/// Takes any bytes.
pub type Target = fn(&[u8]);

/// What is tried, by the name of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("document", document),
    ("expression", expression),
    ("cron", cron),
    ("output", step_output),
    ("params", params_file),
    ("archive", archive),
];

pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}

/// Longer than any small input may take, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(20);

/// A workflow: read, checked and planned, or refused in words that a terminal can show. What is accepted is accepted again.
fn document(bytes: &[u8]) {
    within_reason("a document", || {
        let Ok(source) = Source::from_bytes("fuzz.yaml", "fuzz", bytes.to_vec()) else { return };
        match compile(&source) {
            Ok(plan) => {
                let again = compile(&source).unwrap_or_else(|error| panic!("{}", error.render(false)));
                assert_eq!(plan.version, again.version);
                assert_eq!(plan.order.len(), plan.workflow.steps.len());
                if let Err(errors) = params::bind(&plan.workflow, Scope::new()) {
                    assert!(!errors.is_empty());
                }
            }
            Err(refusal) => {
                let said = refusal.render(false);
                assert!(said.contains("error"), "{said}");
                assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
            }
        }
    });
}

/// An expression and a template of it: parsed and evaluated within bounds, over values that a run has.
fn expression(bytes: &[u8]) {
    within_reason("an expression", || {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let scope = scope();
        if let Ok(expression) = Expression::parse(text) {
            // Whatever it gives, it gives something.
            let _ = expression.evaluate(&scope);
            let _ = expression.holds(&scope);
        }
        if let Ok(template) = Template::parse(text)
            && let Ok(rendered) = template.render(&scope)
        {
            assert!(rendered.len() <= 1 << 21 && !rendered.contains('\0'));
        }
    });
}

fn scope() -> Scope {
    let values = output::parse(
        br#"{"params": {"n": 3, "s": "text", "l": [1, 2, 3], "o": {"k": "v"}}, "steps": {"a": {"status": "succeeded", "output": {"x": "y"}}}}"#,
    );
    values.unwrap_or_default()
}

/// A pattern: refused, or with moments that lie ahead and ascend.
fn cron(bytes: &[u8]) {
    within_reason("a pattern", || {
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        let Ok(cron) = Cron::parse(text) else { return };
        for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe"] {
            let Ok(zone) = Zone::parse(zone) else { continue };
            let schedule = Schedule { cron: cron.clone(), zone, catch_up: CatchUp::None };
            let after = Millis(1_774_000_000_000);
            let moments: Vec<i64> = schedule.ticks(after).take(5).map(|tick| tick.at.0).collect();
            assert!(moments.iter().all(|at| *at > after.0), "{moments:?}");
            assert!(moments.is_sorted_by(|a, b| a < b), "{moments:?}");
        }
    });
}

/// What a step wrote for others.
fn step_output(bytes: &[u8]) {
    within_reason("an output", || {
        let _ = output::parse(bytes);
    });
}

/// A file of parameters.
fn params_file(bytes: &[u8]) {
    within_reason("parameters", || {
        let Ok(source) = Source::from_bytes("params.yaml", "params", bytes.to_vec()) else { return };
        let _ = read_params(&source);
    });
}

/// An archive: whatever it says, nothing is written outside of where it is unpacked, and nothing leads out of there.
fn archive(bytes: &[u8]) {
    within_reason("an archive", || {
        let outer = scratch();
        let (inner, beside) = (outer.join("in"), outer.join("beside"));
        std::fs::write(&beside, "untouched").expect("a file");
        let _ = laneway_engine::bundle::unpack(bytes, &inner);
        let mut found: Vec<PathBuf> = entries(&outer);
        found.sort();
        assert!(found.iter().all(|path| *path == inner || *path == beside), "{found:?}");
        assert_eq!(std::fs::read(&beside).expect("a file"), b"untouched");
        assert_stays_within(&inner, &inner);
        std::fs::remove_dir_all(&outer).expect("what was made");
    });
}

fn assert_stays_within(dir: &Path, root: &Path) {
    for path in entries(dir) {
        let about = std::fs::symlink_metadata(&path).expect("an entry");
        if about.is_dir() {
            assert_stays_within(&path, root);
        } else if about.is_symlink()
            && let Ok(target) = std::fs::canonicalize(&path)
        {
            assert!(target.starts_with(root), "{} leads to {}", path.display(), target.display());
        } else {
            assert!(
                about.is_file() || about.is_symlink(),
                "{} is neither file nor directory",
                path.display()
            );
        }
    }
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn scratch() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!("laneway-fuzz-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::canonicalize(dir).expect("a directory")
}

fn within_reason(what: &str, task: impl FnOnce()) {
    let begun = Instant::now();
    task();
    assert!(begun.elapsed() < PATIENCE, "{what} took {:?}", begun.elapsed());
}

/// The inputs that are kept for a target, by name.
pub fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut kept: Vec<(String, Vec<u8>)> = entries(&dir)
        .into_iter()
        .filter_map(|path| {
            Some((path.file_name()?.to_string_lossy().into_owned(), std::fs::read(&path).ok()?))
        })
        .collect();
    kept.sort();
    kept
}
