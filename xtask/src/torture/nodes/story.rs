//! What the ledger of a case tells by itself: which executions there were, which of them were alive at the same time, and
//! whether that was allowed by the gates. Lines are appended whole, by all nodes to one file, so their order is the order in
//! which things happened; no clock is asked.

use std::collections::{BTreeMap, BTreeSet};

use super::super::ledger::{Ledger, What};
use super::flows::{Flow, MANY_LOCKS, PAIR};

/// One attempt of one step, as it told.
#[derive(Debug)]
pub(super) struct Execution<'a> {
    pub(super) run: &'a str,
    pub(super) step: &'a str,
    pub(super) attempt: u32,
    pub(super) node: &'a str,
    /// Its first and its last word. One that was killed may be dead since the last.
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) begun_at: f64,
    pub(super) last_at: f64,
    pub(super) has_ended: bool,
    pub(super) has_failed: bool,
}

/// Executions in the order in which they began.
#[derive(Debug)]
pub(super) struct Story<'a> {
    pub(super) executions: Vec<Execution<'a>>,
    flows: &'a BTreeMap<String, Flow>,
}

impl<'a> Story<'a> {
    pub(super) fn read(
        ledger: &'a Ledger,
        flows: &'a BTreeMap<String, Flow>,
        findings: &mut Vec<String>,
    ) -> Self {
        let mut known: BTreeMap<(&str, &str, u32), usize> = BTreeMap::new();
        let mut executions: Vec<Execution<'a>> = Vec::new();
        for (at, line) in ledger.lines.iter().enumerate() {
            let key = (line.run.as_str(), line.step.as_str(), line.attempt);
            if line.what == What::Begin {
                if known.insert(key, executions.len()).is_some() {
                    findings.push(format!(
                        "attempt {} of {} was executed twice",
                        line.attempt,
                        named(&line.run, &line.step)
                    ));
                }
                executions.push(Execution {
                    run: &line.run,
                    step: &line.step,
                    attempt: line.attempt,
                    node: &line.value,
                    first: at,
                    last: at,
                    begun_at: line.seconds,
                    last_at: line.seconds,
                    has_ended: false,
                    has_failed: false,
                });
                continue;
            }
            let Some(execution) = known.get(&key).map(|place| &mut executions[*place]) else {
                findings.push(format!("{} speaks without having begun", named(&line.run, &line.step)));
                continue;
            };
            execution.last = at;
            execution.last_at = line.seconds;
            execution.has_ended |= line.what == What::End;
            execution.has_failed |= line.what == What::Fail;
        }
        Self { executions, flows }
    }

    pub(super) fn of<'s>(&'s self, run: &'s str, step: &'s str) -> impl Iterator<Item = &'s Execution<'a>> {
        self.executions.iter().filter(move |one| one.run == run && one.step == step)
    }

    /// What must hold whatever the store says.
    pub(super) fn check(&self, findings: &mut Vec<String>) {
        self.attempts_follow_each_other(findings);
        for key in MANY_LOCKS {
            self.at_most(1, &format!("lock {key}"), findings, |step| step.lock == Some(key));
        }
        self.at_most(PAIR.1, &format!("limit {}", PAIR.0), findings, |step| step.has_pair);
        self.places(findings);
        self.runs_at_once(findings);
    }

    fn flow_step(&self, execution: &Execution<'_>) -> Option<&super::flows::Step> {
        self.flows.get(execution.run)?.step(execution.step)
    }

    /// An attempt is over, with all of its processes, before the next one begins, wherever that is.
    fn attempts_follow_each_other(&self, findings: &mut Vec<String>) {
        for one in &self.executions {
            let later = self.of(one.run, one.step).find(|other| {
                other.attempt != one.attempt && one.first < other.first && other.first < one.last
            });
            if let Some(later) = later {
                findings.push(format!(
                    "attempt {} of {} was still alive on {} when attempt {} had begun on {}",
                    one.attempt,
                    named(one.run, one.step),
                    one.node,
                    later.attempt,
                    later.node
                ));
            }
        }
    }

    /// Never more than so many of those that hold a key at once.
    fn at_most(
        &self,
        most: usize,
        what: &str,
        findings: &mut Vec<String>,
        holds: impl Fn(&super::flows::Step) -> bool,
    ) {
        let holders: Vec<&Execution<'_>> =
            self.executions.iter().filter(|one| self.flow_step(one).is_some_and(&holds)).collect();
        if let Some(crowd) = crowd(&holders, most) {
            findings.push(format!("{what} was granted to {crowd} at once, and allows {most}"));
        }
    }

    /// `max_parallel` of each run.
    fn places(&self, findings: &mut Vec<String>) {
        for (run, flow) in self.flows {
            let of_run: Vec<&Execution<'_>> = self.executions.iter().filter(|one| one.run == run).collect();
            if let Some(crowd) = crowd(&of_run, flow.max_parallel) {
                findings.push(format!("{crowd} ran at once, and max_parallel is {}", flow.max_parallel));
            }
        }
    }

    /// `max_runs` of each workflow: a run lasts from its first word to its last.
    fn runs_at_once(&self, findings: &mut Vec<String>) {
        for (name, most) in
            self.flows.values().filter_map(|flow| Some((flow.name, flow.max_runs?))).collect::<BTreeSet<_>>()
        {
            let mut spans: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
            for one in self
                .executions
                .iter()
                .filter(|one| self.flows.get(one.run).is_some_and(|flow| flow.name == name))
            {
                let span = spans.entry(one.run).or_insert((one.first, one.last));
                *span = (span.0.min(one.first), span.1.max(one.last));
            }
            for (first, _) in spans.values() {
                let at_once = spans.values().filter(|(begin, end)| begin <= first && first <= end).count();
                if at_once > most {
                    findings
                        .push(format!("{at_once} runs of `{name}` went on at once, and max_runs is {most}"));
                    break;
                }
            }
        }
    }
}

/// The first moment at which more than so many are alive, by name.
fn crowd(executions: &[&Execution<'_>], most: usize) -> Option<String> {
    executions.iter().find_map(|one| {
        let alive = |other: &&&Execution<'_>| other.first <= one.first && one.first <= other.last;
        let names: Vec<String> = executions
            .iter()
            .filter(alive)
            .map(|other| format!("{}.a{} on {}", named(other.run, other.step), other.attempt, other.node))
            .collect();
        (names.len() > most).then(|| names.join(", "))
    })
}

/// As people see it: the end of the run's id, and the step.
pub(super) fn named(run: &str, step: &str) -> String {
    format!("{}/{step}", &run[run.len().saturating_sub(6)..])
}

#[cfg(test)]
mod tests {
    use super::super::flows::Step;
    use super::*;

    /// What is found in a story such as `begin:r1.s0.1`, of runs whose one step has a lock.
    fn found(story: &str) -> Vec<String> {
        let line = |word: &str| {
            let (what, who) = word.split_once(':').expect("a colon");
            let who: Vec<&str> = who.split('.').collect();
            format!("{what} {} {} {} 1 0.5 node0", who[0], who[1], who[2])
        };
        let text: Vec<String> = story.split(' ').map(line).collect();
        let step = Step { lock: Some("left"), ..Step::default() };
        let flow = Flow { name: "single", max_runs: Some(2), max_parallel: 1, steps: vec![step] };
        let flows = ["r1", "r2", "r3"].map(|run| (run.to_owned(), flow.clone())).into();
        let mut findings = Vec::new();
        let ledger = Ledger::parse(&text.join("\n"), &mut findings);
        Story::read(&ledger, &flows, &mut findings).check(&mut findings);
        findings
    }

    #[test]
    fn a_good_story_has_nothing_to_find() {
        assert_eq!(found("begin:r1.s0.1 end:r1.s0.1 begin:r2.s0.1 beat:r2.s0.1"), Vec::<String>::new());
        assert_eq!(
            found("begin:r1.s0.1 begin:r1.s0.2 end:r1.s0.2"),
            Vec::<String>::new(),
            "the first was killed"
        );
    }

    #[test]
    fn doubles_overlaps_and_crowds_are_found() {
        assert!(found("begin:r1.s0.1 begin:r1.s0.1")[0].contains("executed twice"));
        assert!(found("begin:r1.s0.1 begin:r1.s0.2 beat:r1.s0.1")[0].contains("still alive"));
        assert!(found("begin:r1.s0.1 begin:r2.s0.1 end:r1.s0.1")[0].contains("lock left"));
        let three = "begin:r1.s0.1 begin:r2.s0.1 begin:r3.s0.1 end:r1.s0.1 end:r2.s0.1 end:r3.s0.1";
        assert!(found(three).iter().any(|finding| finding.contains("max_runs")));
        assert!(found("beat:r1.s0.1")[0].contains("without having begun"));
    }
}
