//! T1, T3: what is said about `schedule` and `after`.

use super::{refused, source};
use crate::definition::compile;
use crate::schedule::CatchUp;
use crate::state::RunStatus;
use crate::trigger::Start;

#[test]
fn schedules_and_ends_of_others_start_a_workflow() {
    let plan = compile(&source(
        r#"
schedule:
  - {cron: "0 2 * * *", timezone: Europe/Berlin, catch_up: latest}
  - {cron: "*/30 * * * * *"}
after: {workflow: nightly, when: finished}
steps: {a: {run: make}}
"#,
    ));
    let workflow = plan.expect("a workflow").workflow;
    let keys: Vec<String> = workflow.triggers.iter().map(|trigger| trigger.key()).collect();
    assert_eq!(keys, ["schedule 0 2 * * * Europe/Berlin", "schedule */30 * * * * * UTC", "after nightly"]);
    let Start::Schedule(schedule) = &workflow.triggers[0].start else { panic!("no schedule") };
    assert_eq!(schedule.catch_up, CatchUp::Latest);
    let Start::After(after) = &workflow.triggers[2].start else { panic!("not the end of another") };
    assert_eq!(after.ends, [RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled]);
}

#[test]
fn bad_schedules_are_refused_with_the_reason() {
    let text = r#"
schedule:
  - {cron: "0 2 * *"}
  - {cron: "0 0 30 2 *"}
  - {cron: "0 2 * * *", timezone: Europe/Berln}
  - {timezone: UTC}
  - {cron: "5 5 * * *"}
  - {cron: "5  5 * * *", timezone: UTC}
steps: {a: {run: make}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `cron` must be a pattern such as "0 2 * * *", not the string `0 2 * *`
     --> flow.yaml:2:12
      |
    2 |   - {cron: "0 2 * *"}
      |            ^^^^^^^^^
      |
      = help: it has 4 fields; there are five (minute, hour, day, month, weekday), or six with seconds in front

    error: `cron` must be a pattern such as "0 2 * * *", not the string `0 0 30 2 *`
     --> flow.yaml:3:12
      |
    3 |   - {cron: "0 0 30 2 *"}
      |            ^^^^^^^^^^^^
      |
      = help: no day is like that, so it would never start anything

    error: `timezone` must be a time zone such as Europe/Berlin, not the string `Europe/Berln`
     --> flow.yaml:4:35
      |
    4 |   - {cron: "0 2 * * *", timezone: Europe/Berln}
      |                                   ^^^^^^^^^^^^
      |
      = help: did you mean `Europe/Berlin`?

    error: `schedule` has no `cron`
     --> flow.yaml:5:5
      |
    5 |   - {timezone: UTC}
      |     ^^^^^^^^^^^^^^^
      |
      = help: say when: `schedule: {cron: "0 2 * * *"}` is every night at two

    error: `schedule 5 5 * * * UTC` is there twice
     --> flow.yaml:7:5
      |
    7 |   - {cron: "5  5 * * *", timezone: UTC}
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: keep one of them; a run starts once
    "#);
}

#[test]
fn parameters_that_a_trigger_gives_are_checked_before_it_fires() {
    let text = r#"
params: {date: {type: string, required: true}, depth: {type: integer, default: 2}}
schedule:
  - {cron: "0 2 * * *", params: {depth: two}}
  - {cron: "0 3 * * *", params: {dat: x, date: "${{ tick.day }}"}}
  - {cron: "0 4 * * *", params: {date: "${{ params.depth }}"}}
after: {workflow: other, params: {date: "${{ tick.date }}"}}
steps: {a: {run: make}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `schedule` does not give the parameter `date`, which is required
     --> flow.yaml:3:5
      |
    3 |   - {cron: "0 2 * * *", params: {depth: two}}
      |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add `params: {date: …}` to it, or give the parameter a default

    error: `depth` must be an integer, not the string `two`
     --> flow.yaml:3:41
      |
    3 |   - {cron: "0 2 * * *", params: {depth: two}}
      |                                         ^^^

    error: the workflow has no parameter `dat`
     --> flow.yaml:4:34
      |
    4 |   - {cron: "0 3 * * *", params: {dat: x, date: "${{ tick.day }}"}}
      |                                  ^^^
      |
      = help: did you mean `date`?

    error: `tick` has no `day`
     --> flow.yaml:4:53
      |
    4 |   - {cron: "0 3 * * *", params: {dat: x, date: "${{ tick.day }}"}}
      |                                                     ^^^^^^^^
      |
      = help: there are `tick.at`, `tick.date`

    error: what a trigger gives cannot read `params`
     --> flow.yaml:5:45
      |
    5 |   - {cron: "0 4 * * *", params: {date: "${{ params.depth }}"}}
      |                                             ^^^^^^^^^^^^
      |
      = help: it can read `tick.at`, `tick.date`

    error: what a trigger gives cannot read `tick`
     --> flow.yaml:6:46
      |
    6 | after: {workflow: other, params: {date: "${{ tick.date }}"}}
      |                                              ^^^^^^^^^
      |
      = help: it can read `ended.run`, `ended.workflow`, `ended.status`
    "#);
}
