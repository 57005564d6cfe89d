//! What the random commands submit, as plain data: small workflows that want everything that a gate can hold back. Owns
//! how they are made and how they are written as a document.

use std::fmt::{self, Write};

use laneway_core::definition::{OnFailure, When};
use laneway_core::max_runs::Strategy as OneTooMany;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Workflows by name, with how many runs of each there may be.
pub(super) const FLOWS: [(&str, Option<usize>); 3] = [("free", None), ("one", Some(1)), ("two", Some(2))];

/// Named limits, as documents declare them.
pub(super) const LIMITS: [(&str, Bound); 3] =
    [("cap", Bound::AtOnce(2)), ("tight", Bound::AtOnce(1)), ("rate", Bound::Every(2_000))];

/// Versions of `order`, smallest first; the text and its numbers.
pub(super) const VERSIONS: [(&str, [u32; 2]); 4] =
    [("1", [1, 0]), ("1.5", [1, 5]), ("2", [2, 0]), ("10", [10, 0])];

const WHENS: [(When, &str); 6] = [
    (When::AllSucceeded, "all_succeeded"),
    (When::AllDone, "all_done"),
    (When::AllFailed, "all_failed"),
    (When::OneSucceeded, "one_succeeded"),
    (When::OneFailed, "one_failed"),
    (When::Always, "always"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    AtOnce(usize),
    /// One in so many milliseconds.
    Every(i64),
}

impl Bound {
    /// As a document or a person writes it. Two in twice the time are the same, and are spelt otherwise.
    pub(super) fn text(self) -> String {
        match self {
            Self::AtOnce(count) => count.to_string(),
            Self::Every(millis) => format!("2/{}ms", 2 * millis),
        }
    }
}

#[derive(Clone)]
pub(super) struct Doc {
    /// Which of `FLOWS`.
    pub(super) flow: usize,
    pub(super) on_failure: OnFailure,
    pub(super) max_parallel: usize,
    pub(super) one_too_many: OneTooMany,
    pub(super) timeout: Option<i64>,
    pub(super) cleanup_timeout: i64,
    pub(super) is_shared: bool,
    pub(super) declares: bool,
    pub(super) steps: Vec<Wants>,
}

/// One step.
#[derive(Debug, Clone)]
pub(super) struct Wants {
    pub(super) needs: Vec<usize>,
    pub(super) when: When,
    pub(super) condition: Option<bool>,
    pub(super) retries: u32,
    pub(super) backoff: i64,
    pub(super) lock: Option<&'static str>,
    /// Key, and which of `VERSIONS`.
    pub(super) order: Option<(&'static str, usize)>,
    pub(super) limits: Vec<&'static str>,
    pub(super) priority: i64,
    pub(super) fails_when_lost: bool,
    pub(super) zone: Option<&'static str>,
    pub(super) is_function: bool,
    /// It runs nothing, and asks for nothing that others could hold.
    pub(super) wait: Option<Wait>,
}

/// What a step waits for, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Signal { timeout: Option<i64> },
    For { span: i64, timeout: Option<i64> },
}

impl Wait {
    fn text(self) -> String {
        let limit = |timeout: Option<i64>| timeout.map(|ms| format!(", timeout: {ms}ms")).unwrap_or_default();
        match self {
            Self::Signal { timeout } => format!("wait: {{signal: go{}}}", limit(timeout)),
            // A constant that would always time out is refused.
            Self::For { span, timeout } => {
                format!("wait: {{for: \"${{{{ '{span}ms' }}}}\"{}}}", limit(timeout))
            }
        }
    }
}

impl Doc {
    pub(super) fn name(&self) -> &'static str {
        FLOWS[self.flow].0
    }

    pub(super) fn max_runs(&self) -> Option<usize> {
        FLOWS[self.flow].1
    }

    pub(super) fn text(&self) -> String {
        let on_failure = match self.on_failure {
            OnFailure::Halt => "halt",
            OnFailure::Abort => "abort",
            OnFailure::Continue => "continue",
        };
        let mut text = format!(
            "name: {}\non_failure: {on_failure}\nmax_parallel: {}\ntimeout: {}ms\ncleanup_timeout: {}ms\n",
            self.name(),
            self.max_parallel,
            self.timeout.unwrap_or(0),
            self.cleanup_timeout
        );
        if let Some(limit) = self.max_runs() {
            writeln!(text, "max_runs: {{limit: {limit}, strategy: {}}}", self.one_too_many.as_str())
                .expect(TAKES);
        }
        if self.declares {
            let limits = LIMITS.map(|(name, bound)| format!("{name}: {}", bound.text()));
            writeln!(text, "limits: {{{}}}", limits.join(", ")).expect(TAKES);
        }
        text.push_str("steps:\n");
        for (index, step) in self.steps.iter().enumerate() {
            writeln!(text, "  s{index}: {{{}}}", step.text()).expect(TAKES);
        }
        text
    }
}

impl fmt::Debug for Doc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_shared { "shared" } else { "local" };
        f.write_str(&format!("{kind} {}", self.text()).replace('\n', " | "))
    }
}

const TAKES: &str = "a string takes all";

impl Wants {
    fn text(&self) -> String {
        let needs: Vec<String> = self.needs.iter().map(|need| format!("s{need}")).collect();
        let when = WHENS.iter().find(|(when, _)| *when == self.when).expect("all are listed").1;
        let condition = self.condition.map(|holds| format!("if: \"${{{{ {holds} }}}}\""));
        if let Some(wait) = self.wait {
            let mut keys =
                vec![wait.text(), format!("needs: [{}]", needs.join(", ")), format!("when: {when}")];
            keys.extend(condition);
            return keys.join(", ");
        }
        let mut keys = vec![
            if self.is_function { "function: f".to_owned() } else { "run: \"true\"".to_owned() },
            format!("needs: [{}]", needs.join(", ")),
            format!("when: {when}"),
            format!("priority: {}", self.priority),
            format!("limits: [{}]", self.limits.join(", ")),
        ];
        keys.extend(condition);
        if self.retries > 0 {
            keys.push(format!("retry: {{max: {}, backoff: {}ms, factor: 1}}", self.retries, self.backoff));
        }
        keys.extend(self.lock.map(|key| format!("lock: {key}")));
        keys.extend(
            self.order
                .map(|(key, version)| format!("order: {{key: {key}, version: \"{}\"}}", VERSIONS[version].0)),
        );
        keys.extend(self.fails_when_lost.then(|| "on_lost: fail".to_owned()));
        keys.extend(self.zone.map(|zone| format!("runs_on: {{zone: {zone}}}")));
        keys.join(", ")
    }
}

pub(super) fn docs() -> impl Strategy<Value = Doc> {
    let head = (
        select(vec![0, 0, 0, 1, 2]),
        select(vec![OnFailure::Halt, OnFailure::Abort, OnFailure::Continue]),
        1..4_usize,
        select(OneTooMany::ALL.to_vec()),
        (select(vec![None, None, None, Some(5_000)]), select(vec![60_000, 60_000, 2_500, 0])),
        any::<bool>(),
        select(vec![true, true, true, false]),
    );
    (head, vec(step(), 1..5)).prop_map(
        |((flow, on_failure, max_parallel, one_too_many, timeouts, is_shared, declares), mut steps)| {
            let mut least = 0;
            for (index, step) in steps.iter_mut().enumerate() {
                step.needs.retain(|need| *need < index);
                // Versions grow with the steps: a document that orders them against its needs is refused.
                if let Some((_, version)) = &mut step.order {
                    least = least.max(*version);
                    *version = least;
                }
            }
            let (timeout, cleanup_timeout) = timeouts;
            Doc {
                flow,
                on_failure,
                max_parallel,
                one_too_many,
                timeout,
                cleanup_timeout,
                is_shared,
                declares,
                steps,
            }
        },
    )
}

fn step() -> impl Strategy<Value = Wants> {
    let graph = (
        prop::sample::subsequence(vec![0, 1, 2], 0..=2),
        select(WHENS.map(|(when, _)| when).to_vec()),
        select(vec![None, None, None, None, Some(true), Some(false)]),
    );
    let attempts = (
        select(vec![(0, 0), (0, 0), (1, 0), (1, 1_000), (2, 3_000)]),
        select(vec![0, 0, 0, -1, 2]),
        select(vec![false, false, false, true]),
    );
    let keys = (
        select(vec![None, None, None, Some("a"), Some("a"), Some("b")]),
        select(vec![
            None,
            None,
            None,
            Some(("o", 0)),
            Some(("o", 1)),
            Some(("o", 2)),
            Some(("o", 3)),
            Some(("p", 1)),
        ]),
        select(vec![
            vec![],
            vec![],
            vec![],
            vec!["cap"],
            vec!["tight"],
            vec!["rate"],
            vec!["cap", "rate"],
            vec!["tight", "cap"],
        ]),
        select(vec![None, None, None, None, Some("eu"), Some("us"), Some("mars")]),
        select(vec![false, false, false, false, false, true]),
    );
    let signal = |timeout| Some(Wait::Signal { timeout });
    let span = |span, timeout| Some(Wait::For { span, timeout });
    let waits = select(vec![
        None,
        None,
        None,
        None,
        None,
        None,
        signal(None),
        signal(Some(2_000)),
        span(0, None),
        span(1_000, None),
        span(2_000, Some(1_000)),
    ]);
    (graph, attempts, keys, waits).prop_map(|(graph, attempts, keys, wait)| {
        let wants = Wants {
            needs: graph.0,
            when: graph.1,
            condition: graph.2,
            retries: attempts.0.0,
            backoff: attempts.0.1,
            priority: attempts.1,
            fails_when_lost: attempts.2,
            lock: keys.0,
            order: keys.1,
            limits: keys.2,
            zone: keys.3,
            is_function: keys.4,
            wait,
        };
        match wait {
            None => wants,
            Some(_) => Wants {
                retries: 0,
                priority: 0,
                fails_when_lost: false,
                lock: None,
                order: None,
                limits: Vec::new(),
                zone: None,
                is_function: false,
                ..wants
            },
        }
    })
}
