//! Names and parameters.

use super::refused;

#[test]
fn a_parameter_must_be_typed_and_its_default_must_fit() {
    let text = r#"
params:
  a: {default: 2}
  b: {type: int}
  c: {type: integer, default: "2"}
  d: {type: string, default: 2}
  e: {type: string, enum: [x, y], default: z}
  f: {type: string, required: true, default: x}
  g: {type: number, enum: [1, two]}
  h: {type: list, default: {}}
  i: string
  j: {type: string, enum: []}
  k: {type: string, default: null}
steps: {a: {run: make}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: parameter `a` has no `type`
     --> flow.yaml:2:3
      |
    2 |   a: {default: 2}
      |   ^
      |
      = help: say which: string, integer, number, boolean, list, object

    error: `type` must be one of string, integer, number, boolean, list, object, not the string `int`
     --> flow.yaml:3:13
      |
    3 |   b: {type: int}
      |             ^^^
      |
      = help: did you mean `integer`?

    error: `default` must be an integer, not the string `2`
     --> flow.yaml:4:31
      |
    4 |   c: {type: integer, default: "2"}
      |                               ^^^

    error: `default` must be a string, not the number 2
     --> flow.yaml:5:30
      |
    5 |   d: {type: string, default: 2}
      |                              ^
      |
      = help: put it in quotes: "2"

    error: the default "z" is not one of the `enum`
     --> flow.yaml:6:44
      |
    6 |   e: {type: string, enum: [x, y], default: z}
      |                                            ^
      |
      = help: use one of "x", "y"

    error: a required parameter cannot have a default
     --> flow.yaml:7:37
      |
    7 |   f: {type: string, required: true, default: x}
      |                                     ^^^^^^^
      |
      = help: remove `required: true`, or the default

    error: `enum` must be a number, not the string `two`
     --> flow.yaml:8:31
      |
    8 |   g: {type: number, enum: [1, two]}
      |                               ^^^

    error: `default` must be a list, not an empty mapping
     --> flow.yaml:9:28
      |
    9 |   h: {type: list, default: {}}
      |                            ^^

    error: `i` must be a mapping such as {type: string, required: true}, not the string `string`
      --> flow.yaml:10:6
       |
    10 |   i: string
       |      ^^^^^^

    error: `enum` must be a list of at least one value, not an empty list
      --> flow.yaml:11:27
       |
    11 |   j: {type: string, enum: []}
       |                           ^^

    error: `default` must be a string, not empty
      --> flow.yaml:12:30
       |
    12 |   k: {type: string, default: null}
       |                              ^^^^
       |
       = help: leave it out: what is not given is null
    "#);
}

#[test]
fn a_name_is_plain_ascii_and_says_which_character_is_not() {
    let text = r#"
params: {1st: {type: string}}
steps:
  my step: {run: make}
  pаy: {run: make}
  "a\u200Bb": {run: make}
  café: {run: make, needs: my step}
  ok: {run: make, needs: [café, my step]}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `1st` cannot be the name of a parameter: it starts with `1`
     --> flow.yaml:1:10
      |
    1 | params: {1st: {type: string}}
      |          ^^^
      |
      = help: use letters, digits, `_` and `-`, starting with a letter or `_`

    error: `my step` cannot be the name of a step: it contains a space
     --> flow.yaml:3:3
      |
    3 |   my step: {run: make}
      |   ^^^^^^^
      |
      = help: use letters, digits, `_` and `-`, starting with a letter or `_`

    error: `pаy` cannot be the name of a step: `а` (U+0430) only looks like `a`
     --> flow.yaml:4:3
      |
    4 |   pаy: {run: make}
      |   ^^^
      |
      = help: use letters, digits, `_` and `-`, starting with a letter or `_`

    error: `a\u{200b}b` cannot be the name of a step: it contains the invisible character U+200B
     --> flow.yaml:5:3
      |
    5 |   "a\u200Bb": {run: make}
      |   ^^^^^^^^^^
      |
      = help: use letters, digits, `_` and `-`, starting with a letter or `_`

    error: `café` cannot be the name of a step: it contains `é` (U+00E9)
     --> flow.yaml:6:3
      |
    6 |   café: {run: make, needs: my step}
      |   ^^^^
      |
      = help: use letters, digits, `_` and `-`, starting with a letter or `_`
    "#);
}
