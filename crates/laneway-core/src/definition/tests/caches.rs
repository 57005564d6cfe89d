//! The key `cache`, and the steps for which it is refused.

use std::time::Duration;

use super::{read, refused, source};
use crate::cache::Cache;

fn caches(text: &str) -> Vec<Option<Cache>> {
    let workflow = read(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    workflow.steps.iter().map(|step| step.cache().cloned()).collect()
}

#[test]
fn a_step_says_what_its_result_depends_on_and_for_how_long_it_is_good() {
    let text = r#"
params: {tag: {type: string, default: a}}
steps:
  plain: {run: make, cache: true}
  never: {run: make, cache: false, on_lost: fail}
  whole: {run: make, cache: {key: "${{ params.tag }}", ttl: 1h30m, files: [src/**, Makefile]}}
  called: {function: f, cache: {key: 2}}
"#;
    let found = caches(text);
    let whole = found[2].as_ref().expect("a cache");
    assert_eq!(found[0], Some(Cache::default()));
    assert_eq!(found[1], None);
    assert_eq!(whole.key.as_ref().map(|key| key.source()).as_deref(), Some("${{ params.tag }}"));
    assert_eq!(whole.ttl, Some(Duration::from_secs(5_400)));
    assert_eq!(whole.files.iter().map(|file| file.as_str()).collect::<Vec<_>>(), ["src/**", "Makefile"]);
    assert!(found[3].as_ref().is_some_and(|cache| cache.key.is_some()));
}

#[test]
fn a_step_whose_result_is_more_than_what_would_be_recorded_is_refused() {
    let text = r#"
steps:
  mail: {queue: mail, cache: true}
  once: {run: ./charge.sh, on_lost: fail, cache: {ttl: 1h}}
  called: {function: f, cache: {files: [src/**]}}
  rest: {wait: {for: 5m}, cache: true}
  apart: {run: make, cache: true}
groups: {g: {steps: [apart], isolate: true}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r"
    error: step `mail` cannot be cached: a remote worker does it, and nobody here knows what its result depends on
     --> flow.yaml:2:23
      |
    2 |   mail: {queue: mail, cache: true}
      |                       ^^^^^
      |
      = help: let the worker remember what it has done

    error: step `once` cannot be cached: `on_lost: fail` says that it has an effect, which a recorded result does not have
     --> flow.yaml:3:43
      |
    3 |   once: {run: ./charge.sh, on_lost: fail, cache: {ttl: 1h}}
      |                                           ^^^^^
      |
      = help: leave one of the two out

    error: step `called` cannot be cached: it calls a function, which has no directory
     --> flow.yaml:4:25
      |
    4 |   called: {function: f, cache: {files: [src/**]}}
      |                         ^^^^^
      |
      = help: leave `files` out; `key` may say more

    error: `cache` does not belong to this step
     --> flow.yaml:5:27
      |
    5 |   rest: {wait: {for: 5m}, cache: true}
      |                           ^^^^^
      |
      = help: a wait runs nothing; put it on the step behind it

    error: step `apart` cannot be cached: its group merges the files that it changes, and these are not recorded
     --> flow.yaml:6:22
      |
    6 |   apart: {run: make, cache: true}
      |                      ^^^^^
      |
      = help: take it out of the group, or `isolate` off it
    ");
}

#[test]
fn what_is_no_cache_says_what_one_is() {
    let text = r#"
steps:
  span: {run: make, cache: 24h}
  zero: {run: make, cache: {ttl: 0s}}
  typo: {run: make, cache: {tll: 5m}}
  out: {run: make, cache: {files: [../src]}}
  secret: {run: make, cache: {key: "${{ secrets.token }}"}}
secrets: {token: {env: TOKEN}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `cache` must be true, or a mapping such as {key: "${{ params.tag }}", ttl: 24h, files: [src/**]}, not the string `24h`
     --> flow.yaml:2:28
      |
    2 |   span: {run: make, cache: 24h}
      |                            ^^^

    error: `ttl` must be a duration above zero, such as 24h, not the string `0s`
     --> flow.yaml:3:34
      |
    3 |   zero: {run: make, cache: {ttl: 0s}}
      |                                  ^^
      |
      = help: leave `ttl` out for a result that stays good, or `cache` for a step that always runs

    error: `cache` has no key `tll`
     --> flow.yaml:4:29
      |
    4 |   typo: {run: make, cache: {tll: 5m}}
      |                             ^^^
      |
      = help: did you mean `ttl`?

    error: `../src` is no path of a file
     --> flow.yaml:5:36
      |
    5 |   out: {run: make, cache: {files: [../src]}}
      |                                    ^^^^^^
      |
      = help: it leads out of the step's directory

    error: `secrets` can only be read in `env`
     --> flow.yaml:6:41
      |
    6 |   secret: {run: make, cache: {key: "${{ secrets.token }}"}}
      |                                         ^^^^^^^^^^^^^
      |
      = help: pass it through `env: {X: "${{ secrets.NAME }}"}` and use "$X"
    "#);
}
