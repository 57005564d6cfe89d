//! Reads for whoever looks at a whole store: filters of the list, outcomes of workflows, lines at
//! keys, the overview.

use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_store::line::{Shared, Standing};
use laneway_store::model::{Pausable, RunFilter};
use laneway_store::overview::Unfinished;

use crate::harness::{Node, Place, START, failed, flat, flow, for_each_database, succeeded};
use crate::{server, statements};

for_each_database! {
    runs_are_filtered_by_several_states,
    runs_are_filtered_by_when_they_were_submitted,
    runs_are_found_by_how_their_id_or_workflow_begins,
    runs_are_looked_at_so_many_at_a_time,
    behind_a_run_that_is_gone_there_is_nothing,
    page_of_runs_reads_nothing_beyond_its_bounds,
    outcomes_of_workflows_are_their_newest_runs,
    a_workflow_that_is_paused_says_by_whom,
    line_of_a_limit_names_holders_and_those_who_wait,
    locks_in_use_are_listed_and_free_ones_are_not,
    orders_name_who_stands_on_them_the_smallest_version_first,
    overview_counts_runs_that_have_not_ended_by_what_they_do,
    overview_counts_ends_of_the_last_day_and_names_failures,
    overview_counts_attempts_by_the_minute,
    overview_counts_what_an_old_run_did_of_late,
    overview_names_who_has_waited_longest,
    overview_finds_who_waits_behind_many_that_do_not,
    what_cannot_be_read_hides_nobody_else_in_line,
    overview_says_where_it_looked_no_further,
}

const MINUTE: Duration = Duration::from_secs(60);

fn named(document: &str, name: &str) -> String {
    document.replace("name: flow", &format!("name: {name}"))
}

async fn listed(node: &Node, filter: RunFilter) -> Vec<RunId> {
    let filter = RunFilter { limit: 10, ..filter };
    node.store.runs(filter).await.expect("runs").into_iter().map(|run| run.run).collect()
}

/// One that succeeded, one that failed, one that goes on.
async fn three(node: &Node) -> [RunId; 3] {
    let good = node.submit(&flat(1, 1)).await;
    node.work(good, |_| succeeded()).await;
    let bad = node.submit(&flat(1, 1)).await;
    node.work(bad, |_| failed(1)).await;
    [good, bad, node.submit(&flat(1, 1)).await]
}

async fn runs_are_filtered_by_several_states(place: Place) {
    let node = place.node("one").await;
    let [good, bad, open] = three(&node).await;
    let of = |statuses: &[RunStatus]| RunFilter { statuses: statuses.to_vec(), ..RunFilter::default() };
    assert_eq!(listed(&node, of(&[])).await, [open, bad, good]);
    assert_eq!(listed(&node, of(&[RunStatus::Failed])).await, [bad]);
    assert_eq!(listed(&node, of(&[RunStatus::Succeeded, RunStatus::Running])).await, [open, good]);
    assert_eq!(listed(&node, of(&[RunStatus::Canceled])).await, []);
}

async fn runs_are_filtered_by_when_they_were_submitted(place: Place) {
    let node = place.node("one").await;
    let first = node.submit(&flat(1, 1)).await;
    place.advance(MINUTE);
    let second = node.submit(&flat(1, 1)).await;
    let at = async |run: RunId| node.state(run).await.submitted_at;
    let (one, two) = (at(first).await, at(second).await);
    let of = |since, until| RunFilter { since, until, ..RunFilter::default() };
    assert_eq!(listed(&node, of(Some(one), None)).await, [second, first], "that moment is in it");
    assert_eq!(listed(&node, of(Some(Millis(one.0 + 1)), None)).await, [second]);
    assert_eq!(listed(&node, of(None, Some(two))).await, [first], "that moment is not");
    assert_eq!(listed(&node, of(Some(two), Some(two))).await, []);
}

async fn runs_are_found_by_how_their_id_or_workflow_begins(place: Place) {
    let node = place.node("one").await;
    let flow = node.submit(&flat(1, 1)).await;
    let other = node.submit(&named(&flat(1, 1), "50%_off")).await;
    let of = |begins: &str| RunFilter { begins: Some(begins.to_owned()), ..RunFilter::default() };
    assert_eq!(listed(&node, of("fl")).await, [flow]);
    assert_eq!(listed(&node, of("50%_")).await, [other], "nothing of it is a pattern");
    assert_eq!(listed(&node, of("%")).await, []);
    assert_eq!(listed(&node, of("low")).await, [], "the beginning alone");
    assert_eq!(listed(&node, of(&flow.to_string().to_uppercase())).await, [flow]);
    assert_eq!(listed(&node, of(&other.tail()[..6])).await, [other]);
}

async fn runs_are_looked_at_so_many_at_a_time(place: Place) {
    let node = place.node("one").await;
    let [good, bad, open] = three(&node).await;
    let other = node.submit(&named(&flat(1, 1), "other")).await;
    let behind = async |of: Option<&str>, before, count| {
        let found = node.store.run_behind(of.map(str::to_owned), before, count).await.expect("a run");
        found.map(|(run, _)| run)
    };
    assert_eq!(behind(None, None, 1).await, Some(other));
    assert_eq!(behind(None, None, 4).await, Some(good));
    assert_eq!(behind(None, None, 5).await, None, "there are fewer");
    assert_eq!(behind(None, Some(open), 2).await, Some(good));
    assert_eq!(behind(Some("flow"), None, 2).await, Some(bad), "those of others are not counted");
    assert_eq!(behind(Some("flow"), Some(bad), 2).await, None);
    let (_, at) = node.store.run_behind(None, None, 4).await.expect("a run").expect("there are four");
    assert_eq!(at, node.state(good).await.submitted_at);
    let down_to = |run, workflow: Option<&str>| RunFilter {
        down_to: Some(run),
        workflow: workflow.map(str::to_owned),
        ..RunFilter::default()
    };
    assert_eq!(listed(&node, down_to(bad, None)).await, [other, open, bad], "that one is in it");
    assert_eq!(listed(&node, down_to(open, Some("flow"))).await, [open]);
    let between = RunFilter { before: Some(other), ..down_to(open, None) };
    assert_eq!(listed(&node, between).await, [open]);
}

async fn behind_a_run_that_is_gone_there_is_nothing(place: Place) {
    let node = place.node("one").await;
    three(&node).await;
    let gone = RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("an id");
    for workflow in [None, Some("flow".to_owned())] {
        let of = RunFilter { workflow: workflow.clone(), ..RunFilter::default() };
        assert_eq!(listed(&node, RunFilter { before: Some(gone), ..of.clone() }).await, []);
        assert_eq!(listed(&node, RunFilter { down_to: Some(gone), ..of }).await, []);
        assert_eq!(node.store.run_behind(workflow, Some(gone), 1).await.expect("an answer"), None);
    }
}

/// Bounds that are no part of the search are looked at run by run, through the whole store.
async fn page_of_runs_reads_nothing_beyond_its_bounds(place: Place) {
    let node = place.node("one").await;
    if let Some(beneath) = server::beneath(node.store.dir()).await {
        // With a table that is almost empty nothing but a rule keeps the planner from reading it
        // whole.
        let rules = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan";
        beneath.batch_execute(rules).await.expect("rules");
        let (page, behind) = ("text[], text, bigint, text, bigint, bigint, text, text", "text, bigint");
        for (name, types, sql, bounds) in [
            ("runs", page, statements::postgres::statement!("runs"), 2),
            ("runs_named", page, statements::postgres::statement!("runs_named"), 2),
            ("run_behind", behind, statements::postgres::statement!("run_behind"), 1),
            ("run_behind_of", "text, bigint, text", statements::postgres::statement!("run_behind_of"), 1),
        ] {
            let prepared = format!("PREPARE {name}_plan ({types}) AS {sql}");
            beneath.batch_execute(&prepared).await.expect("a statement");
            let nulls = vec!["NULL"; types.split(',').count()].join(", ");
            let rows = beneath.query(&format!("EXPLAIN EXECUTE {name}_plan ({nulls})"), &[]).await;
            let plan: Vec<String> = rows.expect("a plan").iter().map(|row| row.get(0)).collect();
            let is_bound = |line: &String| {
                line.contains("Index Cond:")
                    && line.matches("no < CASE").count() + line.matches("no >= CASE").count() == bounds
            };
            assert!(plan.iter().any(is_bound), "{name}: {plan:#?}");
        }
        return;
    }
    let connection = rusqlite::Connection::open(place.path()).expect("the store's file");
    for (sql, search) in [
        (statements::sqlite::statement!("runs"), "PRIMARY KEY (rowid>? AND rowid<?)"),
        (statements::sqlite::statement!("runs_named"), "runs_by_workflow (workflow=? AND no>? AND no<?)"),
        (statements::sqlite::statement!("run_behind"), "PRIMARY KEY (rowid<?)"),
        (statements::sqlite::statement!("run_behind_of"), "runs_by_workflow (workflow=? AND no<?)"),
    ] {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a statement");
        let mut rows = statement.raw_query();
        let mut plan = Vec::new();
        while let Some(row) = rows.next().expect("a row") {
            plan.push(row.get::<_, String>(3).expect("text"));
        }
        assert!(plan.iter().any(|step| step.contains(search)), "{search}: {plan:#?}");
    }
}

async fn a_workflow_that_is_paused_says_by_whom(place: Place) {
    let node = place.node("one").await;
    node.submit(&flat(1, 1)).await;
    assert_eq!(node.store.paused("flow").await.expect("a pause"), None);
    node.store.pause(Pausable::Workflow("flow".to_owned()), "ada").await.expect("it can be paused");
    let (by, _) = node.store.paused("flow").await.expect("a pause").expect("it is paused");
    assert_eq!(by, "ada");
    assert_eq!(node.store.paused("other").await.expect("a pause"), None);
    node.store.resume(Pausable::Workflow("flow".to_owned()), "bob").await.expect("it can go on");
    assert_eq!(node.store.paused("flow").await.expect("a pause"), None);
}

async fn orders_name_who_stands_on_them_the_smallest_version_first(place: Place) {
    let node = place.node("one").await;
    let run = node
        .submit(&flow(
            "",
            &[
                ("ten", "order: {key: db/a, version: '10'}"),
                ("two", "order: {key: db/a, version: 'v2'}"),
                ("other", "order: {key: db/b, version: '1'}"),
                ("free", "lock: db/c"),
            ],
        ))
        .await;
    let lines = node.store.order_lines(9, 9).await.expect("lines");
    let told: Vec<String> = lines
        .iter()
        .map(|line| {
            let one = |one: &Standing| format!("{}:{}", one.version, one.task.step);
            let tasks: Vec<String> = line.line.iter().map(one).collect();
            format!("{} {} {}", line.key, line.standing, tasks.join(" "))
        })
        .collect();
    assert_eq!(told, ["db/a 2 2:two 10:ten", "db/b 1 1:other"]);
    assert_eq!(lines[0].line[1].task.since, Some(START), "it waits for its turn since then");
    let few = node.store.order_lines(1, 1).await.expect("lines");
    assert_eq!((few.len(), few[0].line.len(), few[0].standing), (1, 1, 2));
    node.cancel(run).await;
    assert_eq!(node.store.order_lines(9, 9).await.expect("lines"), []);
}

async fn outcomes_of_workflows_are_their_newest_runs(place: Place) {
    let node = place.node("one").await;
    let [good, bad, open] = three(&node).await;
    let other = node.submit(&named(&flat(1, 1), "other")).await;
    let names = ["other", "nobody", "flow"].map(str::to_owned).to_vec();
    let all = node.store.outcomes(names.clone(), 9).await.expect("outcomes");
    let runs: Vec<RunId> = all.iter().map(|outcome| outcome.run).collect();
    assert_eq!(runs, [other, open, bad, good]);
    assert_eq!((all[2].workflow.as_str(), all[2].status), ("flow", Some(RunStatus::Failed)));
    assert!(all[2].started_at.is_some() && all[2].finished_at.is_some() && all[1].finished_at.is_none());
    let few = node.store.outcomes(names, 2).await.expect("outcomes");
    assert_eq!(few.iter().map(|outcome| outcome.run).collect::<Vec<_>>(), [other, open, bad]);
}

async fn line_of_a_limit_names_holders_and_those_who_wait(place: Place) {
    let node = place.node("one").await;
    let document = flow(
        "limits: {warehouse: 1}",
        &[("a", "limits: [warehouse]"), ("b", "limits: [warehouse], priority: 3")],
    );
    let one = node.submit(&document).await;
    place.advance(MINUTE);
    let two = node.submit(&document).await;
    let limit = || Shared::Limit("warehouse".to_owned());
    let claimed = node.take(one, 1).await.remove(0);
    let line = node.store.line(limit(), 9).await.expect("a line");
    assert_eq!((line.held, line.waiting), (1, 3));
    assert_eq!((line.holders[0].run, line.holders[0].since), (one, None), "it has yet to start");
    node.start(&claimed).await;
    let line = node.store.line(limit(), 9).await.expect("a line");
    let holder = &line.holders[0];
    assert_eq!(
        (holder.workflow.as_str(), holder.step.as_str(), holder.status),
        ("flow", claimed.step.as_str(), TaskStatus::Running)
    );
    assert!(holder.since.is_some() && holder.node.as_deref() == Some("one"));
    // The more urgent one of the second run came later than the other of the first, and goes before
    // it.
    let waits: Vec<(RunId, &str)> = line.queue.iter().map(|task| (task.run, task.step.as_str())).collect();
    assert_eq!(waits.len(), 3);
    assert_eq!(waits[2], (two, "a"));
    let urgent = line.queue.iter().find(|task| task.run == two && task.step == "b").expect("it waits");
    assert_eq!(urgent.since, Some(Millis(START.0 + 60_000)), "since when, whatever its priority");
    let cut = node.store.line(limit(), 1).await.expect("a line");
    assert_eq!((cut.queue.len(), cut.waiting), (1, 3));
    let none = node.store.line(Shared::Lock("warehouse".to_owned()), 9).await.expect("a line");
    assert_eq!((none.held, none.waiting), (0, 0), "a lock of that name is another thing");
}

async fn locks_in_use_are_listed_and_free_ones_are_not(place: Place) {
    let node = place.node("one").await;
    let run = node
        .submit(&flow(
            "limits: {l: 1}",
            &[("a", "lock: db/b"), ("b", "lock: db/a"), ("c", "lock: db/b"), ("d", "limits: [l]")],
        ))
        .await;
    assert_eq!(node.store.locks(9).await.expect("locks"), ["db/a", "db/b"]);
    assert_eq!(node.store.locks(1).await.expect("locks"), ["db/a"]);
    let line = node.store.line(Shared::Lock("db/b".to_owned()), 9).await.expect("a line");
    assert_eq!((line.holders[0].step.as_str(), line.queue[0].step.as_str()), ("a", "c"));
    node.cancel(run).await;
    assert_eq!(node.store.locks(9).await.expect("locks"), [""; 0]);
}

async fn overview_counts_runs_that_have_not_ended_by_what_they_do(place: Place) {
    let node = place.node("one").await;
    let unfinished = || async { node.store.overview().await.expect("an overview").unfinished };
    assert_eq!(unfinished().await, Unfinished::default());
    three(&node).await;
    let alone = "max_runs: {limit: 1, strategy: queue}";
    let first = node.submit(&named(&flow(alone, &[("a", "")]), "alone")).await;
    node.submit(&named(&flow(alone, &[("a", "")]), "alone")).await;
    assert_eq!(unfinished().await, Unfinished { running: 2, queued: 1, paused: 0, is_partial: false });
    node.store.pause(Pausable::Run(first), "ada").await.expect("a pause");
    assert_eq!(unfinished().await, Unfinished { running: 1, queued: 1, paused: 1, is_partial: false });
    node.store.resume(Pausable::Run(first), "ada").await.expect("an end of it");
    assert_eq!(unfinished().await, Unfinished { running: 2, queued: 1, paused: 0, is_partial: false });
}

async fn overview_counts_ends_of_the_last_day_and_names_failures(place: Place) {
    let node = place.node("one").await;
    let [_, old, open] = three(&node).await;
    node.cancel(open).await;
    let seen = node.store.overview().await.expect("an overview");
    assert_eq!(seen.observed_at, node.state(open).await.finished_at.expect("it has ended"));
    assert_eq!((seen.ended.succeeded, seen.ended.failed, seen.ended.canceled), (1, 1, 1));
    assert!(!seen.ended.is_partial);
    assert_eq!(seen.failing.iter().map(|run| run.run).collect::<Vec<_>>(), [old]);
    assert_eq!(seen.failing[0].counts, [(TaskStatus::Failed, 1)]);
    place.advance(Duration::from_secs(24 * 60 * 60 + 1));
    let [_, new, _] = three(&node).await;
    let seen = node.store.overview().await.expect("an overview");
    assert_eq!((seen.ended.succeeded, seen.ended.failed, seen.ended.canceled), (1, 1, 0));
    assert_eq!(seen.failing.iter().map(|run| run.run).collect::<Vec<_>>(), [new]);
}

async fn overview_counts_attempts_by_the_minute(place: Place) {
    let node = place.node("one").await;
    let old = node.submit(&flat(3, 3)).await;
    node.work(old, |_| succeeded()).await;
    place.advance(61 * MINUTE);
    let retried = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 1s}"), ("b", "")])).await;
    let held = node.begin(retried, "a").await;
    node.fail(&held).await;
    place.advance(2 * MINUTE);
    node.promote().await;
    node.work(retried, |_| succeeded()).await;
    let attempts = node.store.overview().await.expect("an overview").attempts;
    assert!(!attempts.is_partial);
    assert_eq!(attempts.minutes.len(), 60);
    let told: Vec<(u64, u64, u64)> =
        attempts.minutes.iter().map(|minute| (minute.started, minute.succeeded, minute.failed)).collect();
    assert_eq!(told[57..], [(1, 0, 1), (0, 0, 0), (2, 2, 0)]);
    assert!(told[..57].iter().all(|minute| *minute == (0, 0, 0)), "an hour ago is not in it: {told:?}");
    let last = attempts.minutes[59];
    assert_eq!((last.p50_ms, last.p95_ms), (Some(7), Some(7)), "as their holders measured it");
    assert_eq!(attempts.minutes[58].p50_ms, None);
}

async fn overview_counts_what_an_old_run_did_of_late(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", ""), ("c", "")])).await;
    let held = [node.begin(run, "a").await, node.begin(run, "b").await];
    place.advance(61 * MINUTE);
    node.fail(&held[0]).await;
    place.advance(MINUTE);
    node.fail(&held[1]).await;
    let attempts = node.store.overview().await.expect("an overview").attempts;
    let told: Vec<(u64, u64, u64)> =
        attempts.minutes.iter().map(|minute| (minute.started, minute.succeeded, minute.failed)).collect();
    assert_eq!(told[58..], [(0, 0, 1), (0, 0, 1)]);
    assert!(told[..58].iter().all(|minute| *minute == (0, 0, 0)), "not what it did before: {told:?}");
    assert!(!attempts.is_partial);
}

async fn overview_names_who_has_waited_longest(place: Place) {
    let node = place.node("one").await;
    let wait = "  ok: {wait: {signal: approved}}\n  later: {needs: [ok], run: \"true\"}\n";
    let parked = node.submit(&format!("name: approval\nsteps:\n{wait}")).await;
    place.advance(MINUTE);
    let one = node.submit(&flow("", &[("a", "lock: db, priority: 5")])).await;
    node.begin(one, "a").await;
    place.advance(MINUTE);
    let two = node.submit(&flow("", &[("a", "lock: db, priority: 5")])).await;
    let seen = node.store.overview().await.expect("an overview").waiting;
    let told: Vec<(RunId, &str, &str, TaskStatus)> =
        seen.iter().map(|task| (task.run, task.workflow.as_str(), task.step.as_str(), task.status)).collect();
    assert_eq!(
        told,
        [(parked, "approval", "ok", TaskStatus::Parked), (two, "flow", "a", TaskStatus::Pending)]
    );
    assert_eq!(seen[0].wait.as_deref(), Some("the signal approved"));
    assert_eq!(seen[0].since, START);
    assert_eq!((seen[1].key.as_deref(), seen[1].since), (Some("lock:db"), Millis(START.0 + 120_000)));
}

async fn overview_finds_who_waits_behind_many_that_do_not(place: Place) {
    let node = place.node("one").await;
    let small = node.submit(&flow("", &[("a", "")])).await;
    let seen = node.store.overview().await.expect("an overview");
    assert!(!seen.is_waiting_partial && seen.waiting.len() == 1);
    node.cancel(small).await;
    // The first hundred of its tasks wait for the first step alone.
    let mut steps = String::from("  first: {run: \"true\"}\n");
    (0..120).for_each(|number| steps += &format!("  s{number:03}: {{needs: [first], run: \"true\"}}\n"));
    steps += "  zz: {wait: {signal: approved}}\n";
    let large = node.submit(&format!("name: large\nsteps:\n{steps}")).await;
    node.begin(large, "first").await;
    let seen = node.store.overview().await.expect("an overview");
    let told: Vec<&str> = seen.waiting.iter().map(|task| task.step.as_str()).collect();
    assert_eq!(told, ["zz"]);
    assert!(seen.is_waiting_partial, "not all of its tasks were looked at");
}

/// Beneath the verbs.
async fn change(node: &Node, sql: &str) {
    if let Some(beneath) = server::beneath(node.store.dir()).await {
        return beneath.batch_execute(sql).await.expect("a change");
    }
    let connection = rusqlite::Connection::open(node.store.dir().join("laneway.db")).expect("the database");
    // Every row is changed as if it were whole.
    connection.pragma_update(None, "foreign_keys", false).expect("a rule");
    connection.execute_batch(sql).expect("a change");
}

async fn what_cannot_be_read_hides_nobody_else_in_line(place: Place) {
    let node = place.node("one").await;
    let step = [("a", "lock: db")];
    let held = node.submit(&named(&flow("", &step), "good")).await;
    let bad = node.submit(&named(&flow("", &step), "bad")).await;
    let last = node.submit(&named(&flow("", &step), "good")).await;
    let damage = "UPDATE workflows SET document = replace(document, 'steps', '][') WHERE name = 'bad'";
    change(&node, damage).await;
    // Another one, which has no plans in memory.
    let other = place.node("other").await;
    let line = other.store.line(Shared::Lock("db".to_owned()), 9).await.expect("a line");
    assert_eq!((line.holders[0].run, line.holders[0].step.as_str()), (held, "a"));
    let queue: Vec<(RunId, &str, &str)> =
        line.queue.iter().map(|task| (task.run, task.workflow.as_str(), task.step.as_str())).collect();
    assert_eq!(queue, [(bad, "bad", ""), (last, "good", "a")]);
    let seen = other.store.overview().await.expect("an overview").waiting;
    let told: Vec<(RunId, &str)> = seen.iter().map(|task| (task.run, task.step.as_str())).collect();
    assert_eq!(told, [(held, "a"), (bad, ""), (last, "a")]);
}

async fn overview_says_where_it_looked_no_further(place: Place) {
    let node = place.node("one").await;
    let busy = node.submit(&flat(1, 1)).await;
    let seen = node.store.overview().await.expect("an overview");
    assert!(!seen.unfinished.is_partial && !seen.ended.is_partial && !seen.attempts.is_partial);
    let numbers = |upto: u32| {
        format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {upto})")
    };
    let events = format!(
        "INSERT INTO events (run_no, seq, at, name, version, body)
         {} SELECT no, 1000 + i, {}, 'task_started', 1, '{{}}' FROM n, runs WHERE id = '{busy}'",
        numbers(40_000),
        START.0
    );
    change(&node, &events).await;
    let seen = node.store.overview().await.expect("an overview");
    assert!(seen.attempts.is_partial && !seen.ended.is_partial, "more events than are read");
    assert_eq!(seen.attempts.minutes[59].started, 40_000);
    let runs = format!(
        "INSERT INTO runs (no, id, tail, workflow, version, dir, params, max_parallel, status, placement, submitted_by,
                           submitted_from, submitted_at, last_event, unsettled, is_visible)
         {} SELECT 1000 + i, 'x' || i, 'x' || i, workflow, version, dir, params, max_parallel, status, 'spread', submitted_by,
                   submitted_from, submitted_at, 0, 1, is_visible FROM n, runs WHERE id = '{busy}'",
        numbers(10_000)
    );
    change(&node, &runs).await;
    let seen = node.store.overview().await.expect("an overview");
    assert_eq!((seen.unfinished.running, seen.unfinished.is_partial), (10_001, true));
    assert!(seen.ended.is_partial && seen.attempts.is_partial && seen.is_waiting_partial);
}
