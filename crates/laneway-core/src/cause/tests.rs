//! What people are told, sentence by sentence.

use std::num::NonZeroU32;
use std::time::Duration;

use super::*;
use crate::class::{Class, Lack};
use crate::event::PauseScope;
use crate::limit::Rate;
use crate::version::OrderVersion;

const AT: Millis = Millis(1_700_000_000_000);

fn run(number: u32) -> RunId {
    RunId::parse(&format!("0199f2a0-0000-7000-8000-{number:08x}0000")).expect("a well-formed id")
}

fn holder(number: u32, step: &str) -> Holder {
    Holder {
        run: run(number),
        step: step.to_owned(),
        status: TaskStatus::Running,
        node: Some("host:1".to_owned()),
        since: Some(AT),
    }
}

fn waiting(number: u32, step: &str) -> Holder {
    Holder { status: TaskStatus::Pending, node: None, since: None, ..holder(number, step) }
}

fn place(at: u32, of: u32) -> Place {
    Place { at, of }
}

/// Its words, as `explain` prints them.
fn told(cause: &Cause) -> String {
    format!("{}\nopens {}", cause.text, cause.opens)
}

#[test]
fn a_lock_names_its_holder_and_the_place_in_line() {
    let wait = LockWait { key: "db/orders".into(), holders: vec![holder(1, "migrate")], place: place(1, 1) };
    insta::assert_snapshot!(told(&wait.cause()), @r#"
    waits for the lock `db/orders`, held by migrate of run 00000001 (running on host:1 since 2023-11-14T22:13:20.000Z); it is the only one in line
    opens when its holder ends
    "#);
    let third = LockWait { place: place(3, 4), ..wait };
    insta::assert_snapshot!(told(&third.cause()), @r#"
    waits for the lock `db/orders`, held by migrate of run 00000001 (running on host:1 since 2023-11-14T22:13:20.000Z); it is number 3 of 4 in line
    opens when its holder ends and the 2 before it in line are through
    "#);
}

#[test]
fn an_order_names_the_smaller_versions() {
    let version = |text| OrderVersion::parse(text).expect("a version");
    let smaller = vec![(version("2.8"), holder(1, "migrate")), (version("2.9"), waiting(2, "migrate"))];
    let wait = OrderWait { key: "db/orders".into(), version: version("2.10"), smaller };
    insta::assert_snapshot!(told(&wait.cause()), @r#"
    is version 2.10 on the key `db/orders`, and waits for version 2.8 (migrate of run 00000001, running on host:1 since 2023-11-14T22:13:20.000Z), version 2.9 (migrate of run 00000002, waiting itself)
    opens when every smaller version on `db/orders` has ended
    "#);
}

#[test]
fn a_limit_counts_its_holders_and_says_how_to_raise_it() {
    let holders = (1..=7).map(|number| holder(number, "load")).collect();
    let wait = LimitWait { name: "warehouse".into(), limit: 7, holders, place: place(2, 9) };
    insta::assert_snapshot!(told(&wait.cause()), @r#"
    waits for a place in the limit `warehouse`: 7 of 7 are taken, by load of run 00000001 (running on host:1 since 2023-11-14T22:13:20.000Z), load of run 00000002 (running on host:1 since 2023-11-14T22:13:20.000Z), load of run 00000003 (running on host:1 since 2023-11-14T22:13:20.000Z), load of run 00000004 (running on host:1 since 2023-11-14T22:13:20.000Z), load of run 00000005 (running on host:1 since 2023-11-14T22:13:20.000Z) and 2 more; it is number 2 of 9 in line
    opens when one of its holders ends and the one before it in line is through, or with a higher limit (`laneway limit set warehouse 9`)
    "#);
}

#[test]
fn a_rate_says_when_its_turn_comes() {
    let rate = Rate { count: NonZeroU32::new(100).expect("above 0"), window: Duration::from_secs(60) };
    let wait = RateWait { name: "api".into(), rate, until: AT, place: place(1, 3) };
    insta::assert_snapshot!(told(&wait.cause()), @r#"
    waits for the rate `api`, which lets 100/1m through, until 2023-11-14T22:13:20.000Z; it is next of 3 in line
    opens at 2023-11-14T22:13:20.000Z
    "#);
    let third = RateWait { place: place(3, 3), ..wait };
    insta::assert_snapshot!(told(&third.cause()), @r#"
    waits for the rate `api`, which lets 100/1m through, until about 2023-11-14T22:13:21.200Z; it is number 3 of 3 in line
    opens at about 2023-11-14T22:13:21.200Z
    "#);
}

#[test]
fn a_task_that_nobody_can_run_names_what_each_node_lacks() {
    let class = Class::parse("process;gpu=a100;zone=eu").expect("a class");
    let nodes = vec![
        ("host:1".to_owned(), vec![Lack::Label { name: "gpu".into(), wanted: "a100".into(), has: None }]),
        ("host:2".to_owned(), Vec::new()),
    ];
    insta::assert_snapshot!(told(&NodeWait { class, nodes }.cause()), @r#"
    no live node can run it: it needs one that runs programs and has gpu=a100 and has zone=eu; host:1 has no label gpu=a100, host:2 takes no new work
    opens when a node joins that runs programs and has gpu=a100 and has zone=eu
    "#);
    let class = Class::parse("function:resize").expect("a class");
    insta::assert_snapshot!(told(&NodeWait { class, nodes: Vec::new() }.cause()), @r#"
    no live node can run it: it needs one that has the function `resize`; no node is alive
    opens when a node joins that has the function `resize`
    "#);
    let class = Class::parse("process;@n7").expect("a class");
    insta::assert_snapshot!(told(&NodeWait { class, nodes: Vec::new() }.cause()), @r#"
    no live node can run it: it needs node n7, to which its run is bound; no node is alive
    opens when node n7 takes work again
    "#);
}

#[test]
fn a_wait_for_a_port_names_the_range_and_the_containers_that_hold_it() {
    use crate::pool::{ContainerState, PortHolder, PortUse};
    let holder = |port, state, task: Option<&str>| PortHolder {
        port,
        pool: "api".into(),
        container: format!("laneway-1-warm-{port}"),
        state,
        task: task.map(|step| (run(1), step.to_owned())),
    };
    let holders =
        vec![holder(49200, ContainerState::Running, Some("load")), holder(49201, ContainerState::Idle, None)];
    let ports = PortUse { first: 49200, last: 49202, held: 2, holders };
    let wait = PortWait { pool: "web".into(), node: "host:1".into(), ports, place: Some(place(1, 2)) };
    insta::assert_snapshot!(told(&wait.cause()), @r#"
    waits for a host port for the pool `web` on host:1: no port of 49200-49202 is free: 49200 by laneway-1-warm-49200 of pool `api` (runs load of run 00000001), 49201 by laneway-1-warm-49201 of pool `api` (idle), and 1 by another program; it is number 1 of 2 in line
    opens when a container with a port is dormant or removed, or with `laneway pool drain api`
    "#);
    let untaken = PortWait { place: None, ..wait };
    insta::assert_snapshot!(told(&untaken.cause()), @r#"
    ready, waits for a free slot and for room in the pool `web`, whose containers need host ports; on host:1 no port of 49200-49202 is free: 49200 by laneway-1-warm-49200 of pool `api` (runs load of run 00000001), 49201 by laneway-1-warm-49201 of pool `api` (idle), and 1 by another program
    opens when a container with a port is dormant or removed, or with `laneway pool drain api`
    "#);
}

#[test]
fn a_wait_for_a_container_of_a_pool_names_its_containers_and_the_pull_of_its_image() {
    use crate::pool::ContainerState as S;
    let holder = |number: u32, state, task: Option<&str>| PoolHolder {
        container: format!("laneway-1-web-{number}"),
        node: "host:1".into(),
        state,
        task: task.map(|step| (run(1), step.to_owned())),
    };
    let pull = ImagePull { node: "host:2".into(), image: "web:7".into(), bytes: 10 << 20, of: 24 << 20 };
    let holders = vec![holder(1, S::Running, Some("load")), holder(2, S::Idle, None)];
    let wait = PoolWait { pool: "web".into(), is_taken: false, holders, pull: Some(pull.clone()) };
    insta::assert_snapshot!(told(&wait.cause()), @r#"
    ready, waits for a free slot and for room in the pool `web`: laneway-1-web-1 on host:1 (runs load of run 00000001), laneway-1-web-2 on host:1 (idle), host:2 pulls web:7, 41 % of 24 MiB
    opens when a node has a slot free, and room in its pool `web`
    "#);
    let many = PoolWait {
        holders: (1..=7).map(|number| holder(number, S::Dormant, None)).collect(),
        ..wait.clone()
    };
    assert!(told(&many.cause()).contains("laneway-1-web-5 on host:1 (dormant), 2 more, host:2 pulls"));
    let unknown = Some(ImagePull { bytes: 0, of: 0, ..pull });
    let taken = PoolWait { is_taken: true, pull: unknown, ..wait.clone() };
    insta::assert_snapshot!(told(&taken.cause()), @r#"
    waits for a container of the pool `web`: host:2 pulls web:7
    opens when the image is there
    "#);
    let bare = PoolWait { holders: Vec::new(), pull: None, ..wait };
    insta::assert_snapshot!(told(&bare.cause()), @r#"
    ready, waits for a free slot and for room in the pool `web`
    opens when a node has a slot free, and room in its pool `web`
    "#);
}

#[test]
fn a_pause_names_who_and_since_when() {
    let wait = PausedWait { scope: PauseScope::Workflow, by: "ada".into(), since: AT };
    insta::assert_snapshot!(told(&wait.cause()), @r#"
    its workflow is paused, by ada since 2023-11-14T22:13:20.000Z
    opens when somebody resumes the workflow
    "#);
}

#[test]
fn a_queued_run_names_the_runs_before_it() {
    let running = vec![(run(1), Some(AT)), (run(2), None)];
    let wait = MaxRunsWait { workflow: "nightly".into(), limit: 2, running, place: place(2, 3) };
    insta::assert_snapshot!(told(&wait.cause()), @r#"
    its run is queued: `max_runs` of nightly is 2, and run 00000001 (running since 2023-11-14T22:13:20.000Z), run 00000002 have not ended; it is number 2 of 3 in line
    opens when one of these runs ends and the one before it in line is through
    "#);
}

#[test]
fn a_cause_is_data_too() {
    let holders = vec![holder(1, "migrate"), waiting(2, "migrate")];
    let cause = LockWait { key: "db".into(), holders, place: place(1, 2) }.cause();
    insta::assert_snapshot!(serde_json::to_string_pretty(&cause).expect("plain data"), @r#"
    {
      "gate": "lock",
      "key": "db",
      "holders": [
        "migrate of run 00000001",
        "migrate of run 00000002"
      ],
      "held_by": [
        {
          "run": "0199f2a0-0000-7000-8000-000000010000",
          "step": "migrate",
          "status": "running",
          "node": "host:1",
          "since": "2023-11-14T22:13:20.000Z"
        },
        {
          "run": "0199f2a0-0000-7000-8000-000000020000",
          "step": "migrate",
          "status": "pending"
        }
      ],
      "place": {
        "at": 1,
        "of": 2
      },
      "since": "2023-11-14T22:13:20.000Z",
      "opens": "when its holder ends",
      "text": "waits for the lock `db`, held by migrate of run 00000001 (running on host:1 since 2023-11-14T22:13:20.000Z), migrate of run 00000002 (waiting itself); it is next of 2 in line"
    }
    "#);
}

#[test]
fn gates_of_the_run_alone_need_no_more_facts_and_all_others_do() {
    for gate in Gate::ALL {
        let is_known = matches!(gate, Gate::Needs | Gate::Group | Gate::Level | Gate::MaxParallel);
        assert_eq!(Waits::of_run(*gate).is_some(), is_known, "{gate}");
    }
}

/// A lock held by nobody's fault but the next one's.
fn locked_by(holder: Holder) -> Cause {
    LockWait { key: "k".into(), holders: vec![holder], place: place(1, 1) }.cause()
}

#[test]
fn a_chain_follows_holders_that_wait_themselves() {
    let needs = Cause { holders: vec!["done".into(), "fetch".into()], ..Cause::at(Gate::Needs) };
    let links = chain(run(1), "load", |of, step| match (of, step) {
        (of, "load") if of == run(1) => Some(locked_by(waiting(2, "migrate"))),
        (of, "migrate") if of == run(2) => Some(needs.clone()),
        (of, "fetch") if of == run(2) => Some(locked_by(holder(3, "busy"))),
        _ => None,
    });
    let steps: Vec<(RunId, &str)> = links.iter().map(|link| (link.run, link.step.as_str())).collect();
    assert_eq!(steps, [(run(1), "load"), (run(2), "migrate"), (run(2), "fetch")]);
}

#[test]
fn a_chain_ends_though_its_causes_never_do() {
    let circle =
        chain(run(1), "a", |_, step| Some(locked_by(waiting(1, if step == "a" { "b" } else { "a" }))));
    assert_eq!(circle.len(), 2);
    let endless = chain(run(1), "s", |_, step| Some(locked_by(waiting(1, &format!("{step}s")))));
    assert_eq!(endless.len(), 20);
}

#[test]
fn a_parked_task_says_since_when_until_when_and_how_it_is_signaled() {
    let source = crate::definition::Source {
        file: "flow.yaml".into(),
        default_name: "flow".into(),
        text: "steps: {ask: {wait: {signal: go, timeout: 1m}}, open: {wait: {signal: go}}, nap: {wait: {for: 5m}}, late: {wait: {until: \"${{ '2999-01-01T00:00:00Z' }}\", timeout: 1m}}}".into(),
    };
    let plan = crate::definition::compile(&source).expect("a plan");
    let told = |step: &str| {
        let wait = plan.step(plan.position(step).expect("a step")).wait().expect("a wait");
        let waiting = wait.begin(&crate::expression::Scope::new(), AT).expect("moments");
        let task = TaskState {
            started_at: Some(AT),
            wait: Some(Box::new(waiting)),
            status: TaskStatus::Parked,
            ..TaskState::new(step.to_owned())
        };
        told(&parked::cause(wait, run(7), &task).expect("a cause"))
    };
    insta::assert_snapshot!(["ask", "open", "nap", "late"].map(told).join("\n"), @r#"
    waits for the signal `go` since 2023-11-14T22:13:20.000Z, and fails without it at 2023-11-14T22:14:20.000Z; `laneway signal 00000007 ask go` sends it
    opens when somebody sends it: `laneway signal 00000007 ask go`, until 2023-11-14T22:14:20.000Z
    waits for the signal `go` since 2023-11-14T22:13:20.000Z; `laneway signal 00000007 open go` sends it
    opens when somebody sends it: `laneway signal 00000007 open go`
    waits until 2023-11-14T22:18:20.000Z, since 2023-11-14T22:13:20.000Z
    opens at 2023-11-14T22:18:20.000Z
    waits until 2999-01-01T00:00:00.000Z, since 2023-11-14T22:13:20.000Z, and fails before that at 2023-11-14T22:14:20.000Z
    opens at 2999-01-01T00:00:00.000Z
    "#);
}
