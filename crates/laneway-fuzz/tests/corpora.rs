//! Every input of the corpora, and many made from them. `LANEWAY_FUZZ_CASES` makes more of them, `LANEWAY_FUZZ_SEED` others.

use laneway_fuzz::{Mutants, TARGETS, corpus, target};

/// For each target: seconds, in a program that is hardly optimised.
const CASES: u64 = 3_000;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Shows what it was given if that is its undoing.
struct Shown<'a>(&'a str, &'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let text: String =
                self.1.iter().flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
            #[expect(clippy::print_stderr, reason = "what was found has to be seen")]
            {
                eprintln!("{} fails on {} bytes: {text}", self.0, self.1.len());
            }
        }
    }
}

fn try_all(name: &str) {
    let run = target(name).expect("a target");
    let kept = corpus(name);
    assert!(kept.len() >= 5, "{name} has {} inputs", kept.len());
    for (_, bytes) in &kept {
        let _shown = Shown(name, bytes);
        run(bytes);
    }
    let (cases, seed) = (number("LANEWAY_FUZZ_CASES", CASES), number("LANEWAY_FUZZ_SEED", 1));
    for bytes in Mutants::new(&kept, seed).take(cases as usize) {
        let _shown = Shown(name, &bytes);
        run(&bytes);
    }
}

#[test]
fn documents() {
    try_all("document");
}

#[test]
fn expressions() {
    try_all("expression");
}

#[test]
fn patterns_of_moments() {
    try_all("cron");
}

#[test]
fn outputs_of_steps() {
    try_all("output");
}

#[test]
fn files_of_parameters() {
    try_all("params");
}

#[test]
fn archives() {
    try_all("archive");
}

#[test]
fn no_target_is_forgotten() {
    assert_eq!(TARGETS.len(), 6);
}

#[test]
fn same_seed_makes_the_same_inputs() {
    let kept = corpus("cron");
    let some = |seed| Mutants::new(&kept, seed).take(20).collect::<Vec<_>>();
    assert_eq!(some(3), some(3));
    assert_ne!(some(3), some(4));
}
