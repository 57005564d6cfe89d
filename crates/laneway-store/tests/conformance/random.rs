//! Random graphs under random verbs of several nodes that fail, die and are stale. After every verb
//! all that `audit.rs` knows must hold; at the end the run is drained, and it must end.

use std::fmt::Write;
use std::time::Duration;

use laneway_core::definition::{OnLost, When};
use laneway_core::event::Closing;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::reason::Reason;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use laneway_store::model::{About, Outcome};
use laneway_store::{Error, Fate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRng, TestRunner};

use crate::audit;
use crate::harness::{
    Database, Held, Node, Place, START, block_on, canceled, failed, for_each_database, plan, succeeded,
};

for_each_database! { by name:
    every_history_is_sound_and_every_run_ends,
    every_history_with_groups_is_sound_and_every_run_ends,
}

const RULES: [&str; 6] = ["all_succeeded", "all_done", "all_failed", "one_succeeded", "one_failed", "always"];

/// Set by `cargo xtask check --full`.
const FULL: &str = "LANEWAY_TEST_FULL";

/// How many times as many cases that plays.
const FULL_FACTOR: u32 = 10;

/// Runs a property; a failing case is shrunk, shown, and kept with its seed beside this file.
/// `PROPTEST_CASES` asks for more of them, or for less, and `cargo xtask check --full` for ten
/// times as many. Without that the cases are always the same: what a change breaks is told with
/// that change, and the hunt for what was always there is somebody's choice.
pub(crate) fn prove<S: Strategy>(name: &'static str, cases: u32, cases_of: S, property: impl Fn(S::Value)) {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let factor = if std::env::var_os(FULL).is_some() { FULL_FACTOR } else { 1 };
    let config = Config {
        cases: asked.unwrap_or(cases * factor),
        max_shrink_iters: 400,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        source_file: Some(file!()),
        test_name: Some(name),
        ..Config::default()
    };
    let mut runner = match asked {
        Some(_) => TestRunner::new(config),
        None => {
            let same = TestRng::deterministic_rng(config.rng_algorithm);
            TestRunner::new_with_rng(config, same)
        }
    };
    let proven = runner.run(&cases_of, |case| {
        property(case);
        Ok(())
    });
    if let Err(error) = proven {
        panic!("{name}: {error}\n{runner}");
    }
}

/// A document of up to seven steps, each of which needs some of those before it.
pub(crate) fn document(
    heads: impl Strategy<Value = String>,
    with_extras: bool,
) -> impl Strategy<Value = String> {
    let step = (any::<u8>(), 0..RULES.len(), 0..12_u8);
    (heads, vec(step, 1..8)).prop_map(move |(head, steps)| {
        let mut text = format!("name: flow\n{head}\nsteps:\n");
        for (index, (mask, rule, extra)) in steps.into_iter().enumerate() {
            let needs: Vec<String> =
                (0..index).filter(|need| mask & (1 << need) != 0).map(|need| format!("s{need}")).collect();
            let extra = if with_extras { extra } else { extra.min(2) };
            let extra = match extra {
                0 => ", if: \"${{ false }}\"",
                1 => ", if: \"${{ 1 + 1 == 2 }}\"",
                3 | 4 => ", retry: {max: 1, backoff: 0s}",
                5 => ", retry: {max: 2, backoff: 1s}",
                6 => ", on_lost: fail",
                7 => ", if: \"${{ run.workflow == 'flow' }}\", retry: {max: 1, backoff: 3s}",
                _ => "",
            };
            let needs = needs.join(", ");
            writeln!(text, "  s{index}: {{run: \"true\", needs: [{needs}], when: {}{extra}}}", RULES[rule])
                .expect("a string takes all");
        }
        text
    })
}

fn heads() -> impl Strategy<Value = String> {
    (0..3_usize, 1..4_u8, any::<bool>()).prop_map(|(on_failure, max_parallel, has_timeout)| {
        let on_failure = ["halt", "abort", "continue"][on_failure];
        let timeout = if has_timeout { "timeout: 12s" } else { "timeout: 0s" };
        format!("on_failure: {on_failure}\nmax_parallel: {max_parallel}\n{timeout}")
    })
}

/// One verb and two numbers that say on what.
type Command = (u8, u8, u8);

fn every_history_is_sound_and_every_run_ends(database: Database) {
    let cases = (document(heads(), true), commands());
    prove("every_history_is_sound_and_every_run_ends", database.cases(200), cases, |(document, commands)| {
        lived(database, &document, commands);
    });
}

fn every_history_with_groups_is_sound_and_every_run_ends(database: Database) {
    let group = (any::<bool>(), 0..3_u8, 0..RULES.len());
    let cases = (document(heads(), true), group, commands());
    let name = "every_history_with_groups_is_sound_and_every_run_ends";
    prove(name, database.cases(200), cases, |(document, group, commands)| {
        lived(database, &grouped(&document, group), commands);
    });
}

/// Everything that needs nothing is a group, and one more step needs that.
fn grouped(document: &str, (is_lenient, max_parallel, rule): (bool, u8, usize)) -> String {
    let of_line =
        |line: &str| line.contains("needs: []").then(|| line.trim().split(':').next().map(str::to_owned));
    let members: Vec<String> = document.lines().filter_map(of_line).flatten().collect();
    let failure = if is_lenient { "lenient" } else { "strict" };
    let bound = match max_parallel {
        0 => String::new(),
        max => format!(", max_parallel: {max}"),
    };
    format!(
        "{document}  after: {{run: \"true\", needs: [g], when: {}}}\n\
         groups: {{g: {{steps: [{}], failure: {failure}{bound}}}}}\n",
        RULES[rule],
        members.join(", ")
    )
}

fn commands() -> impl Strategy<Value = Vec<Command>> {
    vec((0..24_u8, any::<u8>(), any::<u8>()), 1..60)
}

fn lived(database: Database, document: &str, commands: Vec<Command>) {
    block_on(async {
        let mut world = World::begin(database, document).await;
        for command in commands {
            world.apply(command).await;
            world.look().await;
        }
        world.drain().await;
    });
}

struct World {
    place: Place,
    nodes: Vec<Node>,
    run: RunId,
    plan: Plan,
    now: i64,
    held: Vec<Holding>,
    /// Claims that are no longer current.
    stale: Vec<Held>,
}

struct Holding {
    node: usize,
    held: Held,
    is_started: bool,
    /// It starts in the place of one that has ended.
    is_ahead: bool,
}

impl World {
    async fn begin(database: Database, document: &str) -> Self {
        let place = Place::quick(database);
        let nodes = vec![place.node("one").await, place.node("two").await];
        let run = nodes[0].submit(document).await;
        let plan = plan(document);
        Self { place, nodes, run, plan, now: START.0, held: Vec::new(), stale: Vec::new() }
    }

    async fn apply(&mut self, (verb, a, b): Command) {
        let one = usize::from(a) % self.held.len().max(1);
        match verb {
            0..=4 => self.claim(usize::from(a) % 2, usize::from(b) % 3 + 1, usize::from(b / 3) % 3).await,
            5..=7 if self.may_start(one).await => self.start(one).await,
            8..=13 if self.may_start(one).await => self.finish(one, b).await,
            14 if !self.held.is_empty() => self.give_back(one).await,
            15 => self.die(usize::from(a) % 2).await,
            16..=17 => self.advance(u64::from(b) * 50).await,
            18 if !self.stale.is_empty() => self.be_stale(usize::from(a) % self.stale.len()).await,
            19 if b.is_multiple_of(6) => self.cancel(usize::from(a) % 2).await,
            20..=21 => self.retry(a, b).await,
            22..=23 => self.skip(a).await,
            _ => {}
        }
    }

    /// Whoever holds a claim ahead starts it only when there is a place.
    async fn may_start(&self, one: usize) -> bool {
        let Some(holding) = self.held.get(one) else { return false };
        let state = self.nodes[0].state(self.run).await;
        let live = state.tasks.iter().filter(|task| task.status.is_live()).count();
        holding.is_started || !holding.is_ahead || live < state.max_parallel as usize
    }

    async fn claim(&mut self, node: usize, limit: usize, ahead: usize) {
        let before = self.nodes[node].state(self.run).await;
        let taken = self.nodes[node].take_ahead(self.run, limit, ahead).await;
        assert!(!before.status.is_final() || taken.is_empty(), "{taken:?} of a run that is over");
        let is_canceling = before.closing.is_some_and(Closing::is_canceling);
        for held in taken {
            let task = &before.tasks[held.at.position as usize];
            let is_ahead = task.status == TaskStatus::Pending;
            assert!(is_ahead || task.status == TaskStatus::Available);
            assert_eq!(task.attempt + 1, held.at.attempt);
            let step = self.plan.step(held.at.position);
            let is_clean_up = step.when == When::Always && before.clean_up_until.is_some();
            assert!(!is_canceling || is_clean_up, "{} of a run that is being canceled", step.name);
            assert!(!is_ahead || step.on_lost == OnLost::Retry, "{} must not be held", step.name);
            self.held.push(Holding { node, held, is_started: false, is_ahead });
        }
    }

    async fn start(&mut self, one: usize) {
        let holding = &mut self.held[one];
        let expected = if holding.is_started { Fate::Repeated } else { Fate::Recorded };
        assert_eq!(self.nodes[holding.node].start(&holding.held).await, expected);
        holding.is_started = true;
    }

    async fn finish(&mut self, one: usize, dice: u8) {
        let Holding { node, held, .. } = self.held.swap_remove(one);
        let stops = self.nodes[node].stops().await;
        let stop = stops.iter().find(|stop| stop.claim == held.at);
        let outcome = match (stop, dice % 8) {
            (Some(stop), 0..=3) => canceled(stop.reason),
            (Some(_) | None, 4 | 5) => failed(2),
            (Some(_) | None, 6) => {
                Outcome::Failed { reason: Reason::Timeout, detail: "too long".to_owned(), exit_code: None }
            }
            (Some(_) | None, _) => succeeded(),
        };
        assert_eq!(self.nodes[node].finish(&held, outcome).await, Fate::Recorded);
        self.stale.push(held);
    }

    async fn give_back(&mut self, one: usize) {
        let holding = &self.held[one];
        let fate = self.nodes[holding.node].give_back(&holding.held).await;
        if holding.is_started {
            assert_eq!(fate, Fate::ClaimLost);
        } else {
            assert_eq!(fate, Fate::Recorded);
            self.stale.push(self.held.swap_remove(one).held);
        }
    }

    async fn die(&mut self, node: usize) {
        let heir = self.place.node("heir").await;
        drop(std::mem::replace(&mut self.nodes[node], heir));
        let (lost, kept) = std::mem::take(&mut self.held).into_iter().partition(|held| held.node == node);
        self.held = kept;
        let lost: Vec<Holding> = lost;
        let reaped = self.nodes[1 - node].store.reap().await.expect("an answer");
        assert_eq!((reaped.nodes.len(), reaped.tasks), (1, lost.len()));
        self.stale.extend(lost.into_iter().map(|holding| holding.held));
    }

    async fn advance(&mut self, millis: u64) {
        self.place.advance(Duration::from_millis(millis));
        self.now += i64::try_from(millis).expect("a short time");
        let next = self.nodes[0].promote().await;
        assert!(next.is_none_or(|next| next > Millis(self.now)), "{next:?} has been");
    }

    async fn be_stale(&self, one: usize) {
        let before = (self.nodes[0].state(self.run).await, self.nodes[0].events(self.run).await);
        assert_ne!(self.nodes[0].finish(&self.stale[one], failed(9)).await, Fate::Recorded);
        assert_eq!(self.nodes[0].start(&self.stale[one]).await, Fate::ClaimLost);
        assert_eq!(self.nodes[0].give_back(&self.stale[one]).await, Fate::ClaimLost);
        assert_eq!((self.nodes[0].state(self.run).await, self.nodes[0].events(self.run).await), before);
    }

    async fn cancel(&self, node: usize) {
        let status = self.nodes[node].cancel(self.run).await;
        let cleans_up = self.nodes[node].state(self.run).await.clean_up_until.is_some();
        assert!(status.is_final() || !self.held.is_empty() || cleans_up, "nothing is left of it: {status}");
    }

    async fn retry(&self, a: u8, b: u8) {
        let steps = &self.plan.workflow.steps;
        let step = steps[usize::from(a) % steps.len()].name.clone();
        let from = b.is_multiple_of(2).then_some(step.as_str());
        let is_final = self.nodes[0].status(self.run).await.is_final();
        match self.nodes[0].retry(self.run, from).await {
            Ok(again) => assert!(is_final && !again.is_empty()),
            Err(Error::NotEnded { .. }) => assert!(!is_final),
            Err(Error::NothingToRetry { .. }) => assert!(is_final && from.is_none()),
            Err(error) => panic!("{error}"),
        }
    }

    async fn skip(&self, a: u8) {
        let before = self.nodes[0].state(self.run).await;
        // One that failed, if there is one: the others are refused, which a few tries show.
        let failed = before.tasks.iter().filter(|task| task.status == TaskStatus::Failed);
        let mut choice: Vec<&str> = failed.map(|task| task.step.as_str()).collect();
        if choice.is_empty() || a.is_multiple_of(8) {
            choice = before.tasks.iter().map(|task| task.step.as_str()).collect();
        }
        let step = choice[usize::from(a) % choice.len()].to_owned();
        match self.nodes[0].skip(self.run, &step).await {
            Ok(_) => {
                let task = self.nodes[0].task(self.run, &step).await;
                assert_eq!(task.reason, Some(Reason::SkippedByPerson));
            }
            Err(Error::NotEnded { .. }) => assert!(!before.status.is_final()),
            Err(Error::NotFailed { status, .. }) => assert_ne!(status, TaskStatus::Failed),
            Err(Error::Ended { .. }) => assert_eq!(before.closing, Some(Closing::Canceled)),
            Err(error) => panic!("{error}"),
        }
    }

    /// Everything that must hold now.
    async fn look(&self) {
        audit::check(&*self.nodes[0].store, self.run).await;
        let state = self.nodes[1].state(self.run).await;
        match self.place.database {
            Database::Sqlite => audit::recount(&self.place.path(), &self.plan, &state),
            // The doctor counts as well, and finds nothing to say of a sound store.
            Database::Postgres => {
                let found = self.nodes[0].store.examine(1).await.expect("an examination");
                let about_runs = found.findings.iter().filter(|finding| finding.about == About::Run);
                assert_eq!(about_runs.count(), 0, "{:#?}", found.findings);
            }
        }
        let running = state.tasks.iter().filter(|task| task.status == TaskStatus::Running).count();
        let started = self.held.iter().filter(|holding| holding.is_started).count();
        assert_eq!(running, started, "what runs is held: {state:#?}");
    }

    async fn drain(&mut self) {
        for _ in 0..200 {
            if self.nodes[0].status(self.run).await.is_final() {
                self.look().await;
                return;
            }
            self.claim(0, 2, 1).await;
            // Those who have their place come first.
            self.held.sort_by_key(|holding| holding.is_ahead && !holding.is_started);
            match self.held.len() {
                0 => self.advance(10_000).await,
                _ => self.finish(0, 0).await,
            }
        }
        panic!("the run does not end: {:#?}", self.nodes[0].state(self.run).await);
    }
}
