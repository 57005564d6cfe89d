//! The key `shell`.

use super::{read, refused, source};
use crate::definition::{Action, Step};
use crate::shell::{MAX_INLINE_BYTES, Shell};

fn shell(step: &Step) -> &Shell {
    match &step.action {
        Action::Run { shell, .. } => shell,
        other => unreachable!("a script, not {other:?}"),
    }
}

#[test]
fn script_takes_the_shell_of_its_workflow_unless_it_names_one() {
    let text = "
shell: bash
hooks: {failed: [{run: make}, {run: make, shell: sh}]}
steps:
  a: {run: make}
  b: {run: make, shell: sh}
  c: {run: print(1), shell: [python3, -c]}
  d: {run: \"#!/usr/bin/env python3\\nprint(1)\"}
";
    let workflow = read(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    let shells: Vec<&Shell> = workflow.steps.iter().map(shell).collect();
    let python = Shell::Argv(vec!["python3".to_owned(), "-c".to_owned()]);
    assert_eq!(shells, [&Shell::Bash, &Shell::Sh, &python, &Shell::Bash]);
    let hooks: Vec<&Shell> = workflow.hooks.iter().map(|hook| shell(&hook.step)).collect();
    assert_eq!(hooks, [&Shell::Bash, &Shell::Sh]);
    let plain = read(&source("steps: {a: {run: make}}")).expect("valid");
    assert_eq!(shell(&plain.steps[0]), &Shell::Sh);
}

#[test]
fn shell_that_means_nothing_is_refused_at_its_place() {
    let text = r##"
shell: zsh
steps:
  a: {run: make, shell: python3 -u}
  b: {command: [make], shell: bash}
  c: {run: "#!/bin/sh\nmake", shell: bash}
  d: {run: make, shell: []}
  e: {wait: {for: 5m}, shell: bash}
"##;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r##"
    error: `shell` must be sh, bash, or a list that begins with a program, such as [python3], not the string `zsh`
     --> flow.yaml:1:8
      |
    1 | shell: zsh
      |        ^^^
      |
      = help: for another program write its words as a list: [zsh]

    error: `shell` must be sh, bash, or a list that begins with a program, such as [python3], not the string `python3 -u`
     --> flow.yaml:3:25
      |
    3 |   a: {run: make, shell: python3 -u}
      |                         ^^^^^^^^^^
      |
      = help: for another program write its words as a list: [python3, -u]

    error: `shell` does not belong to this step
     --> flow.yaml:4:24
      |
    4 |   b: {command: [make], shell: bash}
      |                        ^^^^^
      |
      = help: it says what interprets the script of `run`, and there is none

    error: the script names its interpreter with `#!`, and the step another with `shell`
     --> flow.yaml:5:31
      |
    5 |   c: {run: "#!/bin/sh\nmake", shell: bash}
      |                               ^^^^^
      |
      = help: remove `shell`, or the first line of the script

    error: `shell` must be a list such as [./build.sh, --fast], not an empty list
     --> flow.yaml:6:25
      |
    6 |   d: {run: make, shell: []}
      |                         ^^
      |
      = help: name the program first

    error: `shell` does not belong to this step
     --> flow.yaml:7:24
      |
    7 |   e: {wait: {for: 5m}, shell: bash}
      |                        ^^^^^
      |
      = help: a wait runs nothing; put it on the step behind it
    "##);
}

#[test]
fn script_that_is_too_long_for_an_argument_is_refused() {
    let text = format!("steps: {{a: {{shell: [python3, -c], run: '{}'}}}}", "#".repeat(MAX_INLINE_BYTES + 1));
    let refusal = read(&source(&text)).expect_err("too long");
    assert_eq!(refusal.all[0].message, "a script of 102401 bytes is too long for an argument");
    let file = text.replace(", -c", "");
    assert!(read(&source(&file)).is_ok());
}
