//! Workflows for nodes: small graphs made by chance, that share their keys with each other, and whose steps tell the
//! ledger what they do. What a step asks for is kept here beside its YAML, for the checker.

use std::fmt::Write as _;

use super::super::dice::Dice;
use super::MARK_LEDGER;

/// Tells the ledger: what, run, step, attempt, pid, seconds since the machine started, and the node.
const SAY: &str = "say() { read -r now _ < /proc/uptime; \
    echo \"$1 $LANEWAY_RUN $LANEWAY_TASK $LANEWAY_ATTEMPT $$ $now $TORTURE_NODE\" >> \"$TORTURE_LEDGER\"; }";

/// Between two beats of a step, in milliseconds.
pub(super) const BEAT_MS: u32 = 50;

/// So many tasks with it at once.
pub(super) const PAIR: (&str, usize) = ("pair", 2);

/// So many tasks with it in a second.
pub(super) const PACE: (&str, usize) = ("pace", 20);

/// What every `order` is about.
const LINE: &str = "line";

const LOCKS: [&str; 2] = ["left", "right"];

/// All locks there are. Of a contended load: as many as let all slots be busy while each lock is waited for.
pub(super) const MANY_LOCKS: [&str; 6] = ["east", "left", "north", "right", "south", "west"];

#[derive(Debug, Clone)]
pub(super) struct Flow {
    /// Runs of one name share their `max_runs`.
    pub(super) name: &'static str,
    pub(super) max_runs: Option<usize>,
    pub(super) max_parallel: usize,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Step {
    /// Places of steps before it.
    pub(super) needs: Vec<usize>,
    pub(super) lock: Option<&'static str>,
    pub(super) has_pair: bool,
    pub(super) has_pace: bool,
    /// Its version, as a number behind a dot: `1.9` is before `1.10`.
    pub(super) order: Option<usize>,
    /// Fails the first time.
    pub(super) is_flaky: bool,
    pub(super) must_run_once: bool,
    pub(super) priority: i8,
    /// How long it takes.
    pub(super) beats: u32,
    /// Ends with the second, as all the others that do, on whatever node.
    pub(super) is_in_step: bool,
}

impl Flow {
    /// Of everything a bit.
    pub(super) fn random(dice: &mut Dice) -> Self {
        let (name, max_runs) =
            dice.one_of(&[("mix", None), ("mix", None), ("single", Some(1)), ("double", Some(2))]);
        let count = 2 + dice.up_to(4) as usize;
        let steps = (0..count).map(|place| Step::random(place, dice)).collect();
        Self { name, max_runs, max_parallel: dice.up_to(3) as usize, steps }
    }

    /// Short, and everybody wants the same: for what only shows in a crowd.
    pub(super) fn crowd() -> Self {
        let first = Step { is_in_step: true, ..Step::default() };
        // What spends a rate is over at once: so that the rate is what is waited for.
        let gate = |step: Step| Step { needs: vec![0], beats: u32::from(!step.has_pace), ..step };
        let steps = vec![
            first,
            gate(Step { lock: Some(LOCKS[0]), ..Step::default() }),
            gate(Step { has_pair: true, ..Step::default() }),
            gate(Step { has_pace: true, ..Step::default() }),
        ];
        Self { name: "crowd", max_runs: None, max_parallel: 3, steps }
    }

    /// Fans out into steps that want keys of other runs, and in again. Which keys differs from run to run,
    /// so that each end hands keys on to runs in any order.
    pub(super) fn contended(dice: &mut Dice) -> Self {
        let mut keyed = |has_pair: bool, has_lock: bool| Step {
            needs: vec![0],
            lock: has_lock.then(|| dice.one_of(&MANY_LOCKS)),
            has_pair,
            has_pace: dice.is_lucky(0.05),
            ..Step::default()
        };
        let mut steps = vec![Step::default()];
        steps.extend([keyed(false, true), keyed(true, false), keyed(true, true), keyed(false, true)]);
        steps.push(Step { needs: (1..steps.len()).collect(), ..Step::default() });
        Self { name: "contended", max_runs: None, max_parallel: 5, steps }
    }

    /// One step that takes longer than a lease.
    pub(super) fn long(beats: u32) -> Self {
        let step = Step { lock: Some(LOCKS[0]), beats, ..Step::default() };
        Self { name: "long", max_runs: None, max_parallel: 1, steps: vec![step] }
    }

    /// A few short steps one behind the other, without anything else.
    pub(super) fn chain() -> Self {
        let step = |place: usize| Step {
            needs: (0..place).last().into_iter().collect(),
            beats: 1,
            ..Step::default()
        };
        Self { name: "chain", max_runs: None, max_parallel: 1, steps: (0..3).map(step).collect() }
    }

    pub(super) fn yaml(&self) -> String {
        let mut yaml =
            format!("name: {}\nmax_parallel: {}\non_failure: continue\n", self.name, self.max_parallel);
        // Writing to a string cannot fail.
        if let Some(limit) = self.max_runs {
            let _ = writeln!(yaml, "max_runs: {{limit: {limit}, strategy: queue}}");
        }
        let _ = writeln!(yaml, "limits: {{{}: {}, {}: {}/1s}}\nsteps:", PAIR.0, PAIR.1, PACE.0, PACE.1);
        for (place, step) in self.steps.iter().enumerate() {
            let _ = writeln!(yaml, "  {}:", name(place));
            for key in step.keys() {
                let _ = writeln!(yaml, "    {key}");
            }
            let _ = writeln!(yaml, "    run: |");
            for line in step.script() {
                let _ = writeln!(yaml, "      {line}");
            }
        }
        yaml
    }

    /// By the name that the ledger and the store know it by.
    pub(super) fn step(&self, wanted: &str) -> Option<&Step> {
        self.steps.iter().enumerate().find(|(place, _)| name(*place) == wanted).map(|(_, step)| step)
    }
}

pub(super) fn name(place: usize) -> String {
    format!("s{place}")
}

impl Step {
    /// What it waits for is always before it, so that nothing can wait in a circle, also across runs.
    fn random(place: usize, dice: &mut Dice) -> Self {
        let mut needs: Vec<usize> = (0..place).filter(|_| dice.is_lucky(0.4)).collect();
        needs.truncate(2);
        Self {
            needs,
            lock: dice.is_lucky(0.25).then(|| dice.one_of(&LOCKS)),
            has_pair: dice.is_lucky(0.2),
            has_pace: dice.is_lucky(0.15),
            order: dice.is_lucky(0.2).then_some(place + 7),
            is_flaky: dice.is_lucky(0.15),
            must_run_once: dice.is_lucky(0.1),
            priority: dice.one_of(&[0, 0, 0, 1, -1]),
            beats: if dice.is_lucky(0.12) { 40 } else { dice.up_to(10) },
            is_in_step: false,
        }
    }

    fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        let needs: Vec<String> = self.needs.iter().map(|place| name(*place)).collect();
        keys.push(format!("needs: [{}]", needs.join(", ")));
        keys.extend(self.lock.map(|key| format!("lock: {key}")));
        let limits = [(self.has_pair, PAIR.0), (self.has_pace, PACE.0)];
        let limits: Vec<&str> = limits.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        if !limits.is_empty() {
            keys.push(format!("limits: [{}]", limits.join(", ")));
        }
        keys.extend(self.order.map(|version| format!("order: {{key: {LINE}, version: \"1.{version}\"}}")));
        if self.is_flaky {
            keys.push("retry: {max: 3, backoff: 100ms, factor: 1}".to_owned());
        }
        if self.must_run_once {
            keys.push("on_lost: fail".to_owned());
        }
        if self.priority != 0 {
            keys.push(format!("priority: {}", self.priority));
        }
        keys
    }

    fn script(&self) -> Vec<String> {
        let mut lines = vec![SAY.to_owned(), "say begin".to_owned()];
        if self.is_flaky {
            let seen = format!("grep -q \"^fail $LANEWAY_RUN $LANEWAY_TASK \" \"${MARK_LEDGER}\"");
            lines.push(format!("if ! {seen}; then say fail; exit 3; fi"));
        }
        if self.is_in_step {
            lines.push("sleep \"$(awk '{print 1 - ($1 - int($1))}' /proc/uptime)\"".to_owned());
        }
        if self.beats > 0 {
            let pause = f64::from(BEAT_MS) / 1000.0;
            lines.push(format!("for beat in $(seq {}); do sleep {pause}; say beat; done", self.beats));
        }
        lines.push("say end".to_owned());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laneway_core::definition::{Source, compile};

    #[test]
    fn all_flows_are_good_ones() {
        let mut flows: Vec<Flow> = (0..200).map(|seed| Flow::random(&mut Dice::new(seed))).collect();
        flows.extend((0..50).map(|seed| Flow::contended(&mut Dice::new(seed))));
        flows.extend([Flow::crowd(), Flow::long(100), Flow::chain()]);
        for flow in flows {
            let text = flow.yaml();
            let source = Source { file: "flow.yaml".to_owned(), default_name: "flow".to_owned(), text };
            if let Err(diagnostics) = compile(&source) {
                panic!("{}\n{}", diagnostics.render(false), source.text);
            }
        }
    }
}
