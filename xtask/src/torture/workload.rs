//! What is run while things go wrong: one workflow with a bit of everything, whose steps tell a ledger outside of the
//! store what they do. Lines are appended whole, so their order in the file is the order in which things happened.

use std::fmt::Write as _;

/// The name of the ledger, in the directory of a case.
pub(super) const LEDGER: &str = "ledger";

/// Of both workflows.
pub(super) const MAX_PARALLEL: usize = 2;

/// Tells the ledger: what, run, step, attempt, pid, seconds since the machine started, and a value.
const SAY: &str = "say() { read -r now _ < /proc/uptime; \
    echo \"$1 $LANEWAY_RUN $LANEWAY_TASK $LANEWAY_ATTEMPT $$ $now $2\" >> ledger; }";

/// A daemon of its own session, whose parents are dead, that says that it lives.
const DAEMON: &str = "(setsid sh -c 'while :; do \
    echo \"beat $LANEWAY_RUN $LANEWAY_TASK $LANEWAY_ATTEMPT $$ 0\" >> ledger; sleep 0.02; done' &)";

/// One step of the workflow.
struct Step {
    name: &'static str,
    needs: &'static [&'static str],
    /// Further keys, as YAML.
    keys: &'static str,
    /// Between the begin and the end that it tells.
    does: &'static str,
}

const SHORT: &str = "sleep 0.03";

const STEPS: &[Step] = &[
    // Its first attempt fails at once, its second takes long: an old word about it can meet a new attempt.
    Step {
        name: "flaky",
        needs: &[],
        keys: "retry: {max: 3, backoff: 20ms, factor: 1}",
        does: "if [ \"$LANEWAY_ATTEMPT\" = 1 ]; then say fail; exit 3; fi; sleep 0.3",
    },
    Step { name: "slow", needs: &[], keys: "timeout: 150ms", does: "sleep 5" },
    Step { name: "c1", needs: &[], keys: "", does: SHORT },
    Step { name: "c2", needs: &["c1"], keys: "", does: SHORT },
    Step { name: "c3", needs: &["c2"], keys: "", does: SHORT },
    Step { name: "f1", needs: &["c1"], keys: "", does: SHORT },
    Step { name: "f2", needs: &["c1"], keys: "", does: SHORT },
    Step { name: "f3", needs: &["c1"], keys: "", does: SHORT },
    Step { name: "f4", needs: &["c1"], keys: "", does: SHORT },
    Step { name: "j1", needs: &["f1", "f2", "f3", "f4"], keys: "", does: SHORT },
    Step { name: "j2", needs: &["f1", "f2", "f3", "f4"], keys: "", does: SHORT },
    Step { name: "make", needs: &[], keys: "", does: "echo \"made=$LANEWAY_ATTEMPT\" > \"$LANEWAY_OUTPUT\"" },
    Step {
        name: "take",
        needs: &["make"],
        keys: "env: {MADE: \"${{ steps.make.output.made }}\"}",
        does: "say took \"$MADE\"",
    },
    Step { name: "once", needs: &[], keys: "on_lost: fail", does: SHORT },
    Step { name: "wild", needs: &[], keys: "", does: DAEMON },
    Step { name: "after", needs: &["wild"], keys: "", does: SHORT },
    Step {
        name: "last",
        needs: &["c3", "j1", "j2", "flaky", "take", "once", "after", "slow"],
        keys: "when: all_done",
        does: ":",
    },
    // It also runs after a cancel, within the time for that.
    Step { name: "tidy", needs: &["c3", "flaky"], keys: "when: always", does: SHORT },
];

/// The workflow that is tortured.
pub(super) fn document() -> String {
    let mut yaml = format!("name: mix\nmax_parallel: {MAX_PARALLEL}\non_failure: continue\nsteps:\n");
    for step in STEPS {
        // Writing to a string cannot fail.
        let _ = write!(yaml, "  {}:\n    needs: [{}]\n", step.name, step.needs.join(", "));
        if !step.keys.is_empty() {
            let _ = writeln!(yaml, "    {}", step.keys);
        }
        let _ = writeln!(yaml, "    run: |");
        for line in [SAY, "say begin", "echo \"log of $LANEWAY_TASK $LANEWAY_ATTEMPT\"", step.does, "say end"]
        {
            let _ = writeln!(yaml, "      {line}");
        }
    }
    yaml
}

/// A run beside it, which also returns what dead sessions held and sweeps what dead wardens left.
pub(super) const NEIGHBOUR: &str = "name: neighbour\nsteps: {pass: {run: 'true'}}\n";

#[cfg(test)]
mod tests {
    use super::*;
    use laneway_core::definition::{Source, compile};

    #[test]
    fn the_workflows_are_good_ones() {
        for text in [document(), NEIGHBOUR.to_owned()] {
            let source = Source { file: "mix.yaml".to_owned(), default_name: "mix".to_owned(), text };
            if let Err(diagnostics) = compile(&source) {
                panic!("{}", diagnostics.render(false));
            }
        }
    }
}
