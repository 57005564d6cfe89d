//! The ledger of a case: what the steps themselves say they did, and what can be told from that alone.

use std::collections::{BTreeMap, BTreeSet};

use super::workload::MAX_PARALLEL;

/// What a line says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Begin,
    End,
    /// It is about to exit with an error.
    Fail,
    /// A daemon of it lives.
    Beat,
    /// It was given a value.
    Took,
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) what: What,
    pub(super) run: String,
    pub(super) step: String,
    pub(super) attempt: u32,
    /// Since the machine started; 0 where nobody looked.
    pub(super) seconds: f64,
    pub(super) value: String,
}

/// Lines in the order in which they were written.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) lines: Vec<Line>,
}

impl Ledger {
    pub(super) fn parse(text: &str, findings: &mut Vec<String>) -> Self {
        let mut lines = Vec::new();
        for line in text.lines() {
            match parse(line) {
                Some(line) => lines.push(line),
                None => findings.push(format!("the ledger has a torn line: `{line}`")),
            }
        }
        Self { lines }
    }

    /// Where a line stands, the first of its kind.
    pub(super) fn find(&self, what: What, step: &str, attempt: u32) -> Option<usize> {
        self.lines.iter().position(|line| line.what == what && line.step == step && line.attempt == attempt)
    }

    pub(super) fn begins<'a>(&'a self, step: &'a str) -> impl Iterator<Item = (usize, u32)> + 'a {
        let begins = self.lines.iter().enumerate();
        begins
            .filter(move |(_, line)| line.what == What::Begin && line.step == step)
            .map(|(at, line)| (at, line.attempt))
    }

    /// The first and the last line of every execution.
    fn executions(&self) -> BTreeMap<(&str, u32), (usize, usize)> {
        let mut executions: BTreeMap<(&str, u32), (usize, usize)> = BTreeMap::new();
        for (at, line) in self.lines.iter().enumerate() {
            executions.entry((&line.step, line.attempt)).or_insert((at, at)).1 = at;
        }
        executions
    }

    /// What must hold whatever the store says: an attempt begins once, no two attempts of a step at the same
    /// time, and never more than `max_parallel` steps at once.
    pub(super) fn check(&self, findings: &mut Vec<String>) {
        let runs: BTreeSet<&str> = self.lines.iter().map(|line| line.run.as_str()).collect();
        if runs.len() > 1 {
            findings
                .push(format!("the ledger knows {} runs of one submit that was acknowledged", runs.len()));
        }
        let mut begun = BTreeSet::new();
        for line in self.lines.iter().filter(|line| line.what == What::Begin) {
            if !begun.insert((&line.step, line.attempt)) {
                findings.push(format!("attempt {} of `{}` was executed twice", line.attempt, line.step));
            }
        }
        let executions = self.executions();
        for ((step, attempt), (first, last)) in &executions {
            let over = executions.iter().find(|((other, later), (begin, _))| {
                other == step && later != attempt && (*first..*last).contains(begin)
            });
            if let Some(((_, later), _)) = over {
                findings.push(format!(
                    "attempt {attempt} of `{step}` was still alive when attempt {later} had begun"
                ));
            }
        }
        self.check_parallel(findings);
    }

    /// An execution lasts until it says that it ended. One that was killed may be dead since its last word.
    fn check_parallel(&self, findings: &mut Vec<String>) {
        let executions = self.executions();
        let ends: BTreeMap<(&str, u32), usize> = executions
            .iter()
            .map(|((step, attempt), (_, last))| {
                let said =
                    [What::End, What::Fail].into_iter().find_map(|what| self.find(what, step, *attempt));
                ((*step, *attempt), said.unwrap_or(*last))
            })
            .collect();
        let mut most: Vec<String> = Vec::new();
        for (at, line) in self.lines.iter().enumerate().filter(|(_, line)| line.what == What::Begin) {
            let running = executions.iter().filter(|(key, (first, _))| *first <= at && at < ends[*key]);
            let names: BTreeSet<&str> =
                running.map(|((step, _), _)| *step).chain([line.step.as_str()]).collect();
            if names.len() > most.len() {
                most = names.into_iter().map(str::to_owned).collect();
            }
        }
        if most.len() > MAX_PARALLEL {
            let names = most.join("`, `");
            findings.push(format!("`{names}` ran at once, and max_parallel is {MAX_PARALLEL}"));
        }
    }
}

fn parse(line: &str) -> Option<Line> {
    let mut words = line.split(' ');
    let what = match words.next()? {
        "begin" => What::Begin,
        "end" => What::End,
        "fail" => What::Fail,
        "beat" => What::Beat,
        "took" => What::Took,
        _ => return None,
    };
    let (run, step, attempt) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
    let _pid: u32 = words.next()?.parse().ok()?;
    let seconds: f64 = words.next()?.parse().ok()?;
    let value = words.next().unwrap_or_default().to_owned();
    Some(Line { what, run: run.to_owned(), step: step.to_owned(), attempt, seconds, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a story such as `begin:c1.1 end:c1.1`.
    fn found(story: &str) -> Vec<String> {
        let line = |word: &str| {
            let (what, who) = word.split_once(':').expect("a colon");
            let (step, attempt) = who.split_once('.').expect("a dot");
            format!("{what} r {step} {attempt} 1 0.5")
        };
        let text: Vec<String> = story.split(' ').map(line).collect();
        let mut findings = Vec::new();
        Ledger::parse(&text.join("\n"), &mut findings).check(&mut findings);
        findings
    }

    #[test]
    fn a_good_story_has_nothing_to_find() {
        assert_eq!(found("begin:a.1 begin:b.1 end:a.1 begin:c.1 end:b.1 end:c.1"), Vec::<String>::new());
        assert_eq!(found("begin:a.1 begin:a.2 end:a.2"), Vec::<String>::new(), "the first was killed");
    }

    #[test]
    fn doubles_overlaps_and_crowds_are_found() {
        assert!(found("begin:a.1 end:a.1 begin:a.1")[0].contains("executed twice"));
        assert!(found("begin:a.1 begin:a.2 beat:a.1 end:a.2")[0].contains("still alive"));
        assert!(found("begin:a.1 begin:b.1 begin:c.1 end:a.1 end:b.1")[0].contains("ran at once"));
        let mut findings = Vec::new();
        Ledger::parse("begin r a", &mut findings);
        assert!(findings[0].contains("torn"));
    }
}
