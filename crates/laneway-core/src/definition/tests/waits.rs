//! The key `wait`, and what else a step that waits may say.

use std::time::Duration;

use super::{read, refused, source};
use crate::expression::Template;
use crate::wait::{Awaited, Wait};

fn waits(text: &str) -> Vec<Wait> {
    let workflow = read(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    workflow.steps.iter().filter_map(|step| step.wait().cloned()).collect()
}

#[test]
fn a_step_waits_for_a_signal_a_moment_or_a_while() {
    let text = r#"
params: {at: {type: string, required: true}}
steps:
  find: {run: make}
  approve: {needs: [find], wait: {signal: release/approved, timeout: 24h}, when: all_done, if: "true"}
  open: {wait: {until: 2026-12-24T18:00:00+01:00}}
  given: {wait: {until: "${{ params.at }}", timeout: 0s}}
  rest: {needs: find, wait: {for: "${{ steps.find.output.rest }}"}, order: {key: k, version: "1"}}
  nap: {wait: {for: 1h30m}}
groups: {g: {steps: [open, nap]}}
"#;
    let template = |text| Template::parse(text).expect("a template");
    let wait = |on, timeout: Option<u64>| Wait { on, timeout: timeout.map(Duration::from_secs) };
    assert_eq!(
        waits(text),
        [
            wait(Awaited::Signal("release/approved".to_owned()), Some(86_400)),
            wait(Awaited::Until(template("2026-12-24T18:00:00+01:00")), None),
            wait(Awaited::Until(template("${{ params.at }}")), None),
            wait(Awaited::For(template("${{ steps.find.output.rest }}")), None),
            wait(Awaited::For(template("1h30m")), None),
        ]
    );
}

#[test]
fn a_wait_says_one_thing_and_says_it_well() {
    let text = r#"
steps:
  none: {wait: {}}
  word: {wait: approved}
  span: {wait: 5m}
  list: {wait: [approved]}
  both: {wait: {signal: go, for: 5m}}
  typo: {wait: {singal: go}}
  name: {wait: {signal: "two words"}}
  made: {wait: {signal: "${{ run.id }}"}}
  soon: {wait: {until: tomorrow}}
  zone: {wait: {until: "2026-12-24T18:00:00"}}
  unix: {wait: {until: 1700000000}}
  bare: {wait: {for: 5}}
  late: {wait: {for: 1h, timeout: 5m}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @"");
}

#[test]
fn what_means_nothing_to_a_wait_does_not_belong_to_it() {
    let text = r#"
secrets: {s: {env: S}}
steps:
  a: {wait: {signal: go}, timeout: 5m, retry: {max: 1}, lock: k, env: {A: b}, runs_on: {zone: eu}, image: busybox}
  b: {wait: {signal: go}, run: make}
  c: {wait: {until: "${{ steps.a.output.at }}"}}
  d: {needs: [a], wait: {until: "${{ secrets.s }}"}}
  e: {wait: {for: 1s}}
groups: {g: {steps: [e], isolate: true}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @"");
}
