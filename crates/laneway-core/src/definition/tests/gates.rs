//! Locks, orders, limits, `max_runs`, labels, priority and placement.

use super::{read, refused, source};
use crate::definition::{Demands, Order, Placement, compile};
use crate::expression::Template;
use crate::limit::Limit;
use crate::max_runs::{MaxRuns, Strategy};

const GATED: &str = r#"
params: {db: {type: string, required: true}, version: {type: string, required: true}, after: {type: string}}
max_runs: {limit: 2, strategy: replace}
placement: pinned
limits: {warehouse: 3, api: 100/1m}
steps:
  migrate:
    run: make
    lock: db/${{ params.db }}
    order: {key: db/orders, version: "2.${{ params.version }}"}
    limits: [warehouse, other]
    not_before: ${{ params.after }}
    runs_on: {zone: eu, cores: 8, gpu: true, kubernetes.io/arch: arm64}
    prefers: {disk: ssd}
    priority: -5
  plain: {run: make, order: {key: db/orders, version: 1.2.3}}
"#;

#[test]
fn what_holds_a_step_back_is_read() {
    let workflow = read(&source(GATED)).map_err(|refusal| refusal.render(false)).expect("valid");
    let limit = std::num::NonZeroU32::new(2).expect("above 0");
    assert_eq!(workflow.max_runs, Some(MaxRuns { limit, strategy: Strategy::Replace }));
    assert_eq!(workflow.placement, Placement::Pinned);
    let limit = |text| Limit::parse(text).expect("a limit");
    assert_eq!(workflow.limits, [("warehouse".to_owned(), limit("3")), ("api".to_owned(), limit("100/1m"))]);
    let template = |text| Template::parse(text).expect("a template");
    let labels = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(
        *workflow.steps[0].demands(),
        Demands {
            lock: Some(template("db/${{ params.db }}")),
            order: Some(Order { key: template("db/orders"), version: template("2.${{ params.version }}") }),
            limits: vec!["warehouse".into(), "other".into()],
            not_before: Some(template("${{ params.after }}")),
            runs_on: labels(&[
                ("zone", "eu"),
                ("cores", "8"),
                ("gpu", "true"),
                ("kubernetes.io/arch", "arm64")
            ]),
            prefers: labels(&[("disk", "ssd")]),
            priority: -5,
        }
    );
    compile(&source(GATED)).map_err(|refusal| refusal.render(false)).expect("valid as a whole");
}

#[test]
fn a_number_of_runs_alone_means_that_the_others_wait() {
    let workflow = read(&source("{max_runs: 1, steps: {a: {run: make}}}")).expect("valid");
    assert_eq!(workflow.max_runs.map(|max| (max.limit.get(), max.strategy)), Some((1, Strategy::Queue)));
    assert_eq!(*workflow.steps[0].demands(), Demands::default());
    assert_eq!(workflow.placement, Placement::Spread);
}

#[test]
fn a_version_is_written_in_quotes_and_made_of_numbers() {
    let text = r#"
steps:
  a: {run: make, order: {key: k, version: 2.10}}
  b: {run: make, order: {key: k, version: 2}}
  c: {run: make, order: {key: k, version: "2.1-rc1"}}
  d: {run: make, order: {key: k, version: ""}}
  e: {run: make, order: {key: 5, vesion: "1"}}
  f: {run: make, order: "2.10"}
  g: {run: make, order: {version: "1."}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `version` must be a version in quotes, such as "2.10", not the number 2.10
     --> flow.yaml:2:43
      |
    2 |   a: {run: make, order: {key: k, version: 2.10}}
      |                                           ^^^^
      |
      = help: put it in quotes: "2.10"; without them YAML reads it as the number 2.1

    error: `version` must be a version in quotes, such as "2.10", not the number 2
     --> flow.yaml:3:43
      |
    3 |   b: {run: make, order: {key: k, version: 2}}
      |                                           ^
      |
      = help: put it in quotes: "2"

    error: `version` must be a version in quotes, such as "2.10", not the string `2.1-rc1`
     --> flow.yaml:4:43
      |
    4 |   c: {run: make, order: {key: k, version: "2.1-rc1"}}
      |                                           ^^^^^^^^^
      |
      = help: its part `1-rc1` is not a number; a version is numbers between dots

    error: `version` must be a version in quotes, such as "2.10", not an empty string
     --> flow.yaml:5:43
      |
    5 |   d: {run: make, order: {key: k, version: ""}}
      |                                           ^^
      |
      = help: it is empty; a version is numbers between dots

    error: `order` has no `version`
     --> flow.yaml:6:18
      |
    6 |   e: {run: make, order: {key: 5, vesion: "1"}}
      |                  ^^^^^
      |
      = help: say when it is its turn: `order: {key: db/orders, version: "2.10"}`

    error: `key` must be a key such as db/orders, not the number 5
     --> flow.yaml:6:31
      |
    6 |   e: {run: make, order: {key: 5, vesion: "1"}}
      |                               ^
      |
      = help: put it in quotes: "5"

    error: `order` has no key `vesion`
     --> flow.yaml:6:34
      |
    6 |   e: {run: make, order: {key: 5, vesion: "1"}}
      |                                  ^^^^^^
      |
      = help: did you mean `version`?

    error: `order` must be a mapping such as {key: db/orders, version: "2.10"}, not the string `2.10`
     --> flow.yaml:7:25
      |
    7 |   f: {run: make, order: "2.10"}
      |                         ^^^^^^

    error: `order` has no `key`
     --> flow.yaml:8:18
      |
    8 |   g: {run: make, order: {version: "1."}}
      |                  ^^^^^
      |
      = help: say what is ordered: `order: {key: db/orders, version: "2.10"}`

    error: `version` must be a version in quotes, such as "2.10", not the string `1.`
     --> flow.yaml:8:35
      |
    8 |   g: {run: make, order: {version: "1."}}
      |                                   ^^^^
      |
      = help: it has an empty part; a version is numbers between dots
    "#);
}

#[test]
fn a_key_is_text_that_can_be_seen() {
    let text = r#"
steps:
  a: {run: make, lock: }
  b: {run: make, lock: " db"}
  c: {run: make, lock: [db]}
  d: {run: make, lock: "a\u200bb"}
  e: {run: make, lock: "${{ params.x"}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `lock` must be a key such as db/orders, not empty
     --> flow.yaml:2:18
      |
    2 |   a: {run: make, lock: }
      |                  ^^^^

    error: `lock` must be a key such as db/orders, not the string ` db`
     --> flow.yaml:3:24
      |
    3 |   b: {run: make, lock: " db"}
      |                        ^^^^^
      |
      = help: it begins or ends with a blank

    error: `lock` must be a key such as db/orders, not a list
     --> flow.yaml:4:24
      |
    4 |   c: {run: make, lock: [db]}
      |                        ^^^^

    error: `lock` must be a key such as db/orders, not the string `a\u{200b}b`
     --> flow.yaml:5:24
      |
    5 |   d: {run: make, lock: "a\u200bb"}
      |                        ^^^^^^^^^^
      |
      = help: it contains a character that cannot be seen

    error: `${{` is never closed; write `${{ … }}`
     --> flow.yaml:6:25
      |
    6 |   e: {run: make, lock: "${{ params.x"}
      |                         ^^^^^^^^^^^^
    "#);
}

#[test]
fn keys_read_parameters_and_nothing_that_comes_later() {
    let text = r#"
params: {db: {type: string, required: true}}
steps:
  a: {run: make}
  b: {run: make, needs: a, lock: "${{ steps.a.output.db }}", order: {key: "${{ run.id }}", version: "${{ steps.a.output.v }}"}}
  c: {run: make, lock: "${{ params.dbb }}", limits: ["${{ params.db }}"], runs_on: {zone: "${{ params.db }}"}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `lock` cannot read `steps`: it is fixed when the run is submitted
     --> flow.yaml:4:39
      |
    4 |   b: {run: make, needs: a, lock: "${{ steps.a.output.db }}", order: {key: "${{ run.id }}", version: "${{ steps.a.output.v }}"}}
      |                                       ^^^^^^^^^^^^^^^^^
      |
      = help: pass it as a parameter: `${{ params.NAME }}`

    error: `order.key` cannot read `run`: it is fixed when the run is submitted
     --> flow.yaml:4:80
      |
    4 |   b: {run: make, needs: a, lock: "${{ steps.a.output.db }}", order: {key: "${{ run.id }}", version: "${{ steps.a.output.v }}"}}
      |                                                                                ^^^^^^
      |
      = help: pass it as a parameter: `${{ params.NAME }}`

    error: `order.version` cannot read `steps`: it is fixed when the run is submitted
     --> flow.yaml:4:106
      |
    4 |   b: {run: make, needs: a, lock: "${{ steps.a.output.db }}", order: {key: "${{ run.id }}", version: "${{ steps.a.output.v }}"}}
      |                                                                                                          ^^^^^^^^^^^^^^^^
      |
      = help: pass it as a parameter: `${{ params.NAME }}`

    error: there is no parameter `dbb`
     --> flow.yaml:5:29
      |
    5 |   c: {run: make, lock: "${{ params.dbb }}", limits: ["${{ params.db }}"], runs_on: {zone: "${{ params.db }}"}}
      |                             ^^^^^^^^^^
      |
      = help: did you mean `db`?

    error: an expression cannot stand in `limits`
     --> flow.yaml:5:55
      |
    5 |   c: {run: make, lock: "${{ params.dbb }}", limits: ["${{ params.db }}"], runs_on: {zone: "${{ params.db }}"}}
      |                                                       ^^^^^^^^^^^^^^^^
      |
      = help: a limit is named, not computed

    error: an expression cannot stand in `zone`
     --> flow.yaml:5:92
      |
    5 |   c: {run: make, lock: "${{ params.dbb }}", limits: ["${{ params.db }}"], runs_on: {zone: "${{ params.db }}"}}
      |                                                                                            ^^^^^^^^^^^^^^^^
      |
      = help: a label is fixed; use `if` to choose between steps
    "#);
}

#[test]
fn a_limit_is_a_number_or_a_rate() {
    let text = r#"
limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
steps:
  a: {run: make, limits: warehouse}
  b: {run: make, limits: [w, w, 5, "a b"]}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `a` must be a number of tasks at once, such as 3, or a rate, such as 100/1m, not the number 0
     --> flow.yaml:1:13
      |
    1 | limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
      |             ^
      |
      = help: a limit of 0 lets nothing run; leave it out to have none, or use `laneway pause`

    error: `b` must be a number of tasks at once, such as 3, or a rate, such as 100/1m, not the string `many`
     --> flow.yaml:1:19
      |
    1 | limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
      |                   ^^^^

    error: `c` must be a number of tasks at once, such as 3, or a rate, such as 100/1m, not the string `5/m`
     --> flow.yaml:1:28
      |
    1 | limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
      |                            ^^^
      |
      = help: after the `/` stands a duration: such as 1s, 1m or 1h

    error: `d` must be a number of tasks at once, such as 3, or a rate, such as 100/1m, not the string `5/60`
     --> flow.yaml:1:36
      |
    1 | limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
      |                                    ^^^^
      |
      = help: after the `/` stands a duration: add a unit: `60s` is 60 seconds, `60m` minutes

    error: `e` must be a number of tasks at once, such as 3, or a rate, such as 100/1m, not the number -1
     --> flow.yaml:1:45
      |
    1 | limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
      |                                             ^^

    error: `f` must be a number of tasks at once, such as 3, or a rate, such as 100/1m, not the number 1.5
     --> flow.yaml:1:52
      |
    1 | limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
      |                                                    ^^^

    error: `g` must be a number of tasks at once, such as 3, or a rate, such as 100/1m, not a list
     --> flow.yaml:1:60
      |
    1 | limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
      |                                                            ^^^

    error: `1h` cannot be the name of a limit: it starts with `1`
     --> flow.yaml:1:65
      |
    1 | limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
      |                                                                 ^^
      |
      = help: use letters, digits, `_` and `-`, starting with a letter or `_`

    error: `h` must be a number of tasks at once, such as 3, or a rate, such as 100/1m, not the number 2000000
     --> flow.yaml:1:75
      |
    1 | limits: {a: 0, b: many, c: 5/m, d: 5/60, e: -1, f: 1.5, g: [1], 1h: 3, h: 2000000}
      |                                                                           ^^^^^^^
      |
      = help: the largest number is 1000000

    error: `limits` must be a list of names of limits, such as [warehouse], not the string `warehouse`
     --> flow.yaml:3:26
      |
    3 |   a: {run: make, limits: warehouse}
      |                          ^^^^^^^^^
      |
      = help: write [warehouse]

    error: the limit `w` is named twice
     --> flow.yaml:4:30
      |
    4 |   b: {run: make, limits: [w, w, 5, "a b"]}
      |                              ^
      |
      = help: a step takes one place of each; remove one

    error: `limits` must be a list of names of limits, such as [warehouse], not the number 5
     --> flow.yaml:4:33
      |
    4 |   b: {run: make, limits: [w, w, 5, "a b"]}
      |                                 ^
      |
      = help: put it in quotes: "5"

    error: `a b` cannot be the name of a limit: it contains a space
     --> flow.yaml:4:36
      |
    4 |   b: {run: make, limits: [w, w, 5, "a b"]}
      |                                    ^^^^^
      |
      = help: use letters, digits, `_` and `-`, starting with a letter or `_`
    "#);
}

#[test]
fn max_runs_is_a_limit_with_a_strategy() {
    let of = |value: &str| refused(&format!("max_runs: {value}\nsteps: {{a: {{run: make}}}}\n"));
    insta::assert_snapshot!(of("0"), @r#"
    error: `max_runs` must be a whole number of at least 1, or a mapping such as {limit: 1, strategy: queue}, not the number 0
     --> flow.yaml:1:11
      |
    1 | max_runs: 0
      |           ^
      |
      = help: leave `max_runs` out to have no limit
    "#);
    insta::assert_snapshot!(of("{limit: 0, strategy: repalce}"), @r#"
    error: `limit` must be a whole number of at least 1, not the number 0
     --> flow.yaml:1:19
      |
    1 | max_runs: {limit: 0, strategy: repalce}
      |                   ^
      |
      = help: leave `max_runs` out to have no limit

    error: `strategy` must be one of queue, skip, replace, fail, not the string `repalce`
     --> flow.yaml:1:32
      |
    1 | max_runs: {limit: 0, strategy: repalce}
      |                                ^^^^^^^
      |
      = help: did you mean `replace`?
    "#);
    insta::assert_snapshot!(of("{strategy: skip, max: 1}"), @r#"
    error: `max_runs` has no `limit`
     --> flow.yaml:1:1
      |
    1 | max_runs: {strategy: skip, max: 1}
      | ^^^^^^^^
      |
      = help: say how many runs there may be at once: `max_runs: {limit: 1}`

    error: `max_runs` has no key `max`
     --> flow.yaml:1:28
      |
    1 | max_runs: {strategy: skip, max: 1}
      |                            ^^^
      |
      = help: the keys are: limit, strategy
    "#);
    insta::assert_snapshot!(of("one"), @r#"
    error: `max_runs` must be a whole number of at least 1, or a mapping such as {limit: 1, strategy: queue}, not the string `one`
     --> flow.yaml:1:11
      |
    1 | max_runs: one
      |           ^^^
    "#);
}

#[test]
fn labels_priority_and_placement_are_checked() {
    let text = r#"
placement: everywhere
steps:
  a: {run: make, priority: 101}
  b: {run: make, priority: high}
  c: {run: make, priority: 1.5, runs_on: [zone]}
  d: {run: make, runs_on: {"a b": x, zone: "e u", disk: , gpu: [1]}, prefers: eu}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `placement` must be one of spread, pinned, local, not the string `everywhere`
     --> flow.yaml:1:12
      |
    1 | placement: everywhere
      |            ^^^^^^^^^^

    error: `priority` must be a whole number from -100 to 100, not the number 101
     --> flow.yaml:3:28
      |
    3 |   a: {run: make, priority: 101}
      |                            ^^^

    error: `priority` must be a whole number from -100 to 100, not the string `high`
     --> flow.yaml:4:28
      |
    4 |   b: {run: make, priority: high}
      |                            ^^^^

    error: `priority` must be a whole number from -100 to 100, not the number 1.5
     --> flow.yaml:5:28
      |
    5 |   c: {run: make, priority: 1.5, runs_on: [zone]}
      |                            ^^^

    error: `runs_on` must be a mapping of labels to values, such as {zone: eu}, not a list
     --> flow.yaml:5:42
      |
    5 |   c: {run: make, priority: 1.5, runs_on: [zone]}
      |                                          ^^^^^^

    error: `a b` cannot be a label
     --> flow.yaml:6:28
      |
    6 |   d: {run: make, runs_on: {"a b": x, zone: "e u", disk: , gpu: [1]}, prefers: eu}
      |                            ^^^^^
      |
      = help: use 1 to 100 letters, digits, `_`, `-`, `.`, `/` and `:`

    error: `zone` must be a label's value, not the string `e u`
     --> flow.yaml:6:44
      |
    6 |   d: {run: make, runs_on: {"a b": x, zone: "e u", disk: , gpu: [1]}, prefers: eu}
      |                                            ^^^^^
      |
      = help: use 1 to 100 letters, digits, `_`, `-`, `.`, `/` and `:`

    error: `disk` must be a label's value, not empty
     --> flow.yaml:6:51
      |
    6 |   d: {run: make, runs_on: {"a b": x, zone: "e u", disk: , gpu: [1]}, prefers: eu}
      |                                                   ^^^^
      |
      = help: for an empty value write ""

    error: `gpu` must be a label's value, not a list
     --> flow.yaml:6:64
      |
    6 |   d: {run: make, runs_on: {"a b": x, zone: "e u", disk: , gpu: [1]}, prefers: eu}
      |                                                                ^^^

    error: `prefers` must be a mapping of labels to values, such as {zone: eu}, not the string `eu`
     --> flow.yaml:6:79
      |
    6 |   d: {run: make, runs_on: {"a b": x, zone: "e u", disk: , gpu: [1]}, prefers: eu}
      |                                                                               ^^
    "#);
}

#[test]
fn an_order_against_needs_is_refused_with_the_whole_cycle() {
    let text = r#"
steps:
  first: {run: make, order: {key: db, version: "10"}}
  between: {run: make, needs: first}
  second: {run: make, needs: between, order: {key: db, version: "9"}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: steps wait for each other in a cycle: first -> between -> second -> first
     --> flow.yaml:2:22
      |
    2 |   first: {run: make, order: {key: db, version: "10"}}
      |                      ^^^^^
      |
      = help: each step waits for the one before the arrow; `first` waits for `second` by `order`: on the key `db` version 9 goes before 10
    "#);
}

#[test]
fn an_order_over_two_keys_and_several_versions_is_refused_too() {
    let text = r#"
params: {db: {type: string, required: true}}
steps:
  a: {run: make, order: {key: "x/${{ params.db }}", version: "3"}}
  b: {run: make, order: {key: "x/${{params.db}}", version: "2"}}
  c: {run: make, order: {key: "x/${{ params.db }}", version: "1"}, needs: d}
  d: {run: make, order: {key: y, version: "2"}}
  e: {run: make, order: {key: y, version: "1"}, needs: a}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: steps wait for each other in a cycle: a -> e -> d -> c -> b -> a
     --> flow.yaml:6:18
      |
    6 |   d: {run: make, order: {key: y, version: "2"}}
      |                  ^^^^^
      |
      = help: each step waits for the one before the arrow; `d` waits for `e` by `order`: on the key `y` version 1 goes before 2
    "#);
}

#[test]
fn orders_that_agree_with_needs_or_cannot_be_known_are_allowed() {
    for text in [
        // Equal versions do not order each other.
        r#"steps: {a: {run: make, order: {key: k, version: "1"}}, b: {run: make, needs: a, order: {key: k, version: "1.0"}}}"#,
        r#"steps: {a: {run: make, order: {key: k, version: "2"}}, b: {run: make, needs: a, order: {key: k, version: "10"}}}"#,
        // Different keys have nothing to do with each other.
        r#"steps: {a: {run: make, order: {key: k, version: "2"}}, b: {run: make, needs: a, order: {key: l, version: "1"}}}"#,
        // What a parameter says is known when a run is submitted.
        r#"{params: {v: {type: string, default: "1"}}, steps: {a: {run: make, order: {key: k, version: "2"}},
            b: {run: make, needs: a, order: {key: k, version: "${{ params.v }}"}}}}"#,
        // Not one before the other by needs.
        r#"steps: {a: {run: make, order: {key: k, version: "2"}}, b: {run: make, order: {key: k, version: "1"}}}"#,
    ] {
        compile(&source(text)).map_err(|refusal| refusal.render(false)).expect("no cycle");
    }
}
