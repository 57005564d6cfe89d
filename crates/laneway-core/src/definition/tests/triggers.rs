//! T1, T3: what is said about `schedule` and `after`.

use super::{refused, source};
use crate::definition::{Action, compile};
use crate::expression::Template;
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

#[test]
fn webhooks_say_where_they_listen_and_who_may_send() {
    let plan = compile(&source(
        r#"
secrets: {signing: {store: signing}}
webhook: {path: deploy, secret: signing, params: {ref: "${{ payload.ref }}", all: "${{ payload }}"}}
params: {ref: {type: string}, all: {type: object}}
steps: {a: {run: make}}
"#,
    ));
    let workflow = plan.expect("a workflow").workflow;
    let trigger = &workflow.triggers[0];
    assert_eq!(trigger.key(), "webhook deploy");
    let given = trigger.params_of(serde_json::json!({"ref": "main", "size": 3})).expect("parameters");
    assert_eq!(
        serde_json::Value::Object(given),
        serde_json::json!({"ref": "main", "all": {"ref": "main", "size": 3}})
    );
}

#[test]
fn bad_webhooks_are_refused_with_the_reason() {
    let text = r#"
secrets: {signing: {store: signing}}
webhook:
  - {path: a/b, secret: signing}
  - {path: deploy, secret: sining}
  - {secret: signing}
  - {path: push}
  - {path: tick, secret: signing, params: {day: "${{ tick.date }}"}}
params: {day: {type: string, default: x}}
steps: {a: {run: make}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `path` must be a word of letters, digits, `-`, `_` and `.`, such as deploy, not the string `a/b`
     --> flow.yaml:3:12
      |
    3 |   - {path: a/b, secret: signing}
      |            ^^^
      |
      = help: it is the end of an address: /v1/hooks/PATH

    error: there is no secret `sining`
     --> flow.yaml:4:28
      |
    4 |   - {path: deploy, secret: sining}
      |                            ^^^^^^
      |
      = help: did you mean `signing`?

    error: `webhook` has no `path`
     --> flow.yaml:5:5
      |
    5 |   - {secret: signing}
      |     ^^^^^^^^^^^^^^^^^
      |
      = help: say where it listens: `webhook: {path: deploy, …}` is `POST /v1/hooks/deploy`

    error: `webhook` has no `secret`
     --> flow.yaml:6:5
      |
    6 |   - {path: push}
      |     ^^^^^^^^^^^^
      |
      = help: name what senders sign with: `secret: NAME`, and `secrets: {NAME: {store: NAME}}`

    error: what a trigger gives cannot read `tick`
     --> flow.yaml:7:54
      |
    7 |   - {path: tick, secret: signing, params: {day: "${{ tick.date }}"}}
      |                                                      ^^^^^^^^^
      |
      = help: it can read `payload`
    "#);
}

#[test]
fn bad_hooks_are_refused_with_the_reason() {
    let text = r#"
secrets: {signing: {store: signing}}
hooks:
  failed:
    - {run: page, needs: [a]}
    - {run: page, secret: signing}
    - {post: "ftp://x", secret: sining}
    - {post: "https://x", env: {A: b}}
    - {run: page, env: {A: "${{ steps.a.output.x }}", B: "${{ ended.step }}"}}
    - {}
  succeeded: {run: page}
  ended: []
steps: {a: {run: make, env: {A: "${{ ended.status }}"}}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: step `failed` has no `run` or `command`
     --> flow.yaml:3:3
      |
    3 |   failed:
      |   ^^^^^^
      |
      = help: give it a script, `run: ./build.sh`, or `command: [./build.sh, --fast]`

    error: a hook has no key `needs`
     --> flow.yaml:4:19
      |
    4 |     - {run: page, needs: [a]}
      |                   ^^^^^
      |
      = help: the keys are: run, command, args, shell, post, secret, headers, content_type, body, if, env, workdir, timeout, retry, runs_on, description

    error: `secret` does not belong to this hook
     --> flow.yaml:5:19
      |
    5 |     - {run: page, secret: signing}
      |                   ^^^^^^
      |
      = help: it signs what is sent; a script reads one through its `env`

    error: `post` must be an address such as https://example.org/told, not the string `ftp://x`
     --> flow.yaml:6:14
      |
    6 |     - {post: "ftp://x", secret: sining}
      |              ^^^^^^^^^
      |
      = help: it begins with https:// or http://

    error: there is no secret `sining`
     --> flow.yaml:6:33
      |
    6 |     - {post: "ftp://x", secret: sining}
      |                                 ^^^^^^
      |
      = help: did you mean `signing`?

    error: `env` does not belong to this hook
     --> flow.yaml:7:27
      |
    7 |     - {post: "https://x", env: {A: b}}
      |                           ^^^
      |
      = help: a callback is only sent; what is to be executed is a hook of its own

    error: a hook cannot read `steps`: they belong to the run that has ended
     --> flow.yaml:8:33
      |
    8 |     - {run: page, env: {A: "${{ steps.a.output.x }}", B: "${{ ended.step }}"}}
      |                                 ^^^^^^^^^^^^^^^^
      |
      = help: it can read `ended.run`, `ended.workflow`, `ended.status`, `ended.reason`, `ended.failed`

    error: `ended` has no `step`
     --> flow.yaml:8:63
      |
    8 |     - {run: page, env: {A: "${{ steps.a.output.x }}", B: "${{ ended.step }}"}}
      |                                                               ^^^^^^^^^^
      |
      = help: there are `ended.run`, `ended.workflow`, `ended.status`, `ended.reason`, `ended.failed`

    error: `succeeded` must be a list of steps such as [{run: ./page.sh}], not a mapping
      --> flow.yaml:10:14
       |
    10 |   succeeded: {run: page}
       |              ^^^^^^^^^^^

    error: `hooks` has no key `ended`
      --> flow.yaml:11:3
       |
    11 |   ended: []
       |   ^^^^^
       |
       = help: the keys are: succeeded, failed, finished

    error: there is no `ended`
      --> flow.yaml:12:38
       |
    12 | steps: {a: {run: make, env: {A: "${{ ended.status }}"}}}
       |                                      ^^^^^^^^^^^^
       |
       = help: an expression can read `params`, `steps` and `run`; a string needs quotes: "ended"
    "#);
}

#[test]
fn workflow_that_comes_after_itself_is_refused() {
    let text = r#"
after: [{workflow: other}, {workflow: again, when: failed}]
name: again
steps: {a: {run: make}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `again` comes after itself
     --> flow.yaml:1:39
      |
    1 | after: [{workflow: other}, {workflow: again, when: failed}]
      |                                       ^^^^^
      |
      = help: each run would start the next one, for ever; `schedule` starts it again and again
    "#);
}

#[test]
fn what_a_callback_cannot_send_is_told_at_its_place() {
    let text = r#"
secrets: {key: {env: KEY}}
hooks:
  finished:
    - post: "https://a.example/${{ secrets.kee }}"
      if: secrets.key == "x"
      content_type: json
      headers: {Content-Type: x, Laneway-Delivery: x, "a b": x, X-A: "1", x-a: "2", X-B: "${{ secrets.key | upper }}"}
      body: 7
    - {run: page, headers: {X: y}}
    - {run: page, args: ["${{ secrets.key }}"]}
    - {post: "https://a.example", body: {text: "${{ steps.a.output.x }}"}}
steps: {a: {run: make}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: there is no secret `kee`
     --> flow.yaml:4:36
      |
    4 |     - post: "https://a.example/${{ secrets.kee }}"
      |                                    ^^^^^^^^^^^
      |
      = help: did you mean `key`?

    error: `secrets` can only be read in `env`, and in the `post`, `headers` and `body` of a callback
     --> flow.yaml:5:11
      |
    5 |       if: secrets.key == "x"
      |           ^^^^^^^^^^^
      |
      = help: pass it through `env: {X: "${{ secrets.NAME }}"}` and use "$X"

    error: `content_type` must be a media type such as application/json, not the string `json`
     --> flow.yaml:6:21
      |
    6 |       content_type: json
      |                     ^^^^

    error: `Content-Type` has a key of its own
     --> flow.yaml:7:17
      |
    7 |       headers: {Content-Type: x, Laneway-Delivery: x, "a b": x, X-A: "1", x-a: "2", X-B: "${{ secrets.key | upper }}"}
      |                 ^^^^^^^^^^^^
      |
      = help: write `content_type` beside `post`

    error: `Laneway-Delivery` is written by Laneway itself
     --> flow.yaml:7:34
      |
    7 |       headers: {Content-Type: x, Laneway-Delivery: x, "a b": x, X-A: "1", x-a: "2", X-B: "${{ secrets.key | upper }}"}
      |                                  ^^^^^^^^^^^^^^^^
      |
      = help: leave it out

    error: `a b` cannot be the name of a header
     --> flow.yaml:7:55
      |
    7 |       headers: {Content-Type: x, Laneway-Delivery: x, "a b": x, X-A: "1", x-a: "2", X-B: "${{ secrets.key | upper }}"}
      |                                                       ^^^^^
      |
      = help: use letters, digits and `-`, as in Authorization

    error: the header `x-a` is given twice
     --> flow.yaml:7:75
      |
    7 |       headers: {Content-Type: x, Laneway-Delivery: x, "a b": x, X-A: "1", x-a: "2", X-B: "${{ secrets.key | upper }}"}
      |                                                                           ^^^
      |
      = help: the case of its letters makes no difference

    error: a secret is taken as it is: nothing can be done to it in an expression
     --> flow.yaml:7:95
      |
    7 |       headers: {Content-Type: x, Laneway-Delivery: x, "a b": x, X-A: "1", x-a: "2", X-B: "${{ secrets.key | upper }}"}
      |                                                                                               ^^^^^^^^^^^
      |
      = help: write `${{ secrets.key }}`, with other text around it if need be

    error: `body` must be a text, or a mapping that is sent as JSON, not the number 7
     --> flow.yaml:8:13
      |
    8 |       body: 7
      |             ^
      |
      = help: put it in quotes: "7"

    error: `headers` does not belong to this hook
     --> flow.yaml:9:19
      |
    9 |     - {run: page, headers: {X: y}}
      |                   ^^^^^^^
      |
      = help: it is what a callback sends: add `post: https://…`

    error: `secrets` can only be read in `env`, and in the `post`, `headers` and `body` of a callback
      --> flow.yaml:10:31
       |
    10 |     - {run: page, args: ["${{ secrets.key }}"]}
       |                               ^^^^^^^^^^^
       |
       = help: pass it through `env: {X: "${{ secrets.NAME }}"}` and use "$X"

    error: a hook cannot read `steps`: they belong to the run that has ended
      --> flow.yaml:11:53
       |
    11 |     - {post: "https://a.example", body: {text: "${{ steps.a.output.x }}"}}
       |                                                     ^^^^^^^^^^^^^^^^
       |
       = help: it can read `ended.run`, `ended.workflow`, `ended.status`, `ended.reason`, `ended.failed`
    "#);
}

#[test]
fn callback_sends_secrets_in_its_address_its_headers_and_its_body() {
    let text = "secrets: {key: {env: KEY}}\nparams: {day: {type: string}}\nhooks: {failed: [{post: 'https://a.example/${{ secrets.key }}', \
                headers: {X: '${{ secrets.key }}'}, body: {t: ['${{ ended.status }} ${{ params.day }} ${{ secrets.key }}']}}]}\n\
                steps: {a: {run: make}}\n";
    let workflow = compile(&source(text)).expect("a workflow").workflow;
    let Action::Post(post) = &workflow.hooks[0].step.action else { panic!("a callback") };
    let secrets: Vec<&str> = post.templates().flat_map(Template::secrets_read).collect();
    assert_eq!(secrets, ["key", "key", "key"]);
}
