//! Documents made to hurt: each gets a clear error, within a second and without much memory.

use std::time::{Duration, Instant};

use laneway_core::definition::{Source, compile};

const PATIENCE: Duration = Duration::from_secs(1);

fn refused(text: impl Into<String>) -> String {
    refused_within(PATIENCE, text)
}

/// Documents that are large in every respect are refused within a second by an optimised program;
/// tests are built with little optimisation, and run side by side.
fn refused_in_bulk(text: impl Into<String>) -> String {
    let factor = if cfg!(debug_assertions) { 20 } else { 1 };
    refused_within(PATIENCE * factor, text)
}

fn refused_within(patience: Duration, text: impl Into<String>) -> String {
    let source = Source { file: "hostile.yaml".into(), default_name: "hostile".into(), text: text.into() };
    let started = Instant::now();
    let rendered = compile(&source).expect_err("it must be refused").render(false);
    let took = started.elapsed();
    assert!(took < patience, "took {took:?}: {rendered}");
    assert!(rendered.len() < 100_000, "{} bytes of errors", rendered.len());
    assert!(
        !rendered.chars().any(|c| c.is_control() && c != '\n'),
        "control characters reach the terminal: {rendered:?}"
    );
    rendered
}

#[track_caller]
fn says(rendered: &str, words: &str) {
    assert!(rendered.contains(words), "{words:?} is missing in:\n{rendered}");
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("x-0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..30 {
        let before = format!("*a{}", level - 1);
        text.push_str(&format!("x-{level}: &a{level} [{}]\n", vec![before; 10].join(", ")));
    }
    text.push_str("steps: {a: {run: make, args: *a29}}\n");
    says(&refused(text), "more than 2000000 values, with its aliases written out");
}

#[test]
fn an_alias_bomb_of_mappings_is_refused() {
    let mut text = String::from("x-0: &a0 {a: b}\n");
    for level in 1..64 {
        let before = level - 1;
        text.push_str(&format!("x-{level}: &a{level} {{a: *a{before}, b: *a{before}}}\n"));
    }
    text.push_str("params: {p: {type: object, default: *a63}}\nsteps: {a: {run: make}}\n");
    says(&refused(text), "more than 2000000 values, with its aliases written out");
}

#[test]
fn ten_thousand_nested_levels_are_refused_in_every_style() {
    let deep = "nested deeper than 64 levels";
    says(&refused(format!("steps: {}", "[".repeat(10_000))), deep);
    says(&refused(format!("steps: {}", "{a: ".repeat(10_000))), deep);
    says(&refused(format!("steps: {}1{}", "[".repeat(10_000), "]".repeat(10_000))), deep);
    says(&refused(format!("steps:\n {}1", "- ".repeat(10_000))), deep);
    says(&refused(format!("{{\"steps\": {}", "{\"a\":".repeat(10_000))), deep);
    // Each level of a block costs its indentation: thirty megabytes are 7,700 levels.
    let block: String = (0..7_700).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    says(&refused(block), deep);
    says(&refused("? ".repeat(10_000)), deep);
}

#[test]
fn a_hundred_mebibytes_are_refused_unread() {
    says(&refused("a".repeat(100 << 20)), "the document has 104857600 bytes, 33554432 are allowed");
    let bytes = vec![b'#'; 100 << 20];
    let refusal = Source::from_bytes("big.yaml", "big", bytes).expect_err("too large");
    says(&refusal.render(false), "33554432 are allowed");
}

#[test]
fn nul_and_control_characters_are_refused() {
    says(&refused("steps:\n  a: {run: \"x\0y\"}\n"), "a NUL character cannot stand in a document");
    says(&refused("steps:\n  a: {run: \"x\u{1b}[31m\"}\n"), "the control character U+001B");
    says(&refused("# \u{202e}hidden\nsteps: {}\n"), "the invisible character U+202E");
    says(&refused("steps: {a: {run: make, env: {A: \"x\\0y\"}}}\n"), "`A` contains a NUL character");
}

#[test]
fn bytes_that_are_no_utf8_are_refused() {
    let says_of = |bytes: &[u8], words: &str| {
        let refusal = Source::from_bytes("x.yaml", "x", bytes.to_vec()).expect_err("no UTF-8");
        says(&refusal.render(false), words);
    };
    says_of(b"steps:\n  a: {run: \"\xe9\"}\n", "line 2 is not UTF-8: it contains the byte 0xE9");
    says_of(b"\xff\xfes\0t\0e\0p\0s\0", "it looks like UTF-16; save it as UTF-8");
}

#[test]
fn confusable_and_invisible_names_are_refused() {
    let of = |name: &str| refused(format!("steps:\n  {name}: {{run: make}}\n"));
    says(&of("p\u{430}y"), "(U+0430) only looks like `a`");
    says(&of("\u{ff41}"), "(U+FF41) only looks like `a`");
    says(&of("a\u{200b}b"), "invisible character U+200B");
    says(&of("a\u{3164}"), "invisible character U+3164");
    says(&of("a\u{e0061}"), "invisible character U+E0061");
    says(&of("\u{1d41a}"), "U+1D41A");
}

#[test]
fn a_document_of_too_many_values_is_refused() {
    says(&refused_in_bulk("- a\n".repeat(8_000_000)), "more than 2000000 values");
    says(&refused_in_bulk(format!("steps: [{}]", "a,".repeat(15_000_000))), "more than 2000000 values");
}

#[test]
fn a_document_wrong_everywhere_shows_some_and_counts_the_rest() {
    let steps: String = (0..100_000).map(|step| format!("  s{step}: {{rum: x}}\n")).collect();
    says(&refused_in_bulk(format!("steps:\n{steps}")), "and 99950 more");
    let needs: String =
        (0..50_000).map(|step| format!("  s{step}: {{run: x, needs: [t{step}]}}\n")).collect();
    says(&refused_in_bulk(format!("steps:\n{needs}")), "and 49950 more");
}

#[test]
fn long_lines_are_cut() {
    let long = "x".repeat(30 << 20);
    let rendered = refused_in_bulk(format!("steps: {{a: {{run: \"{long}\", b: 1, c: 2}}}}"));
    says(&rendered, "a step has no key `b`");
    says(&rendered, "hostile.yaml:1:31457302");
    assert!(rendered.len() < 2_000, "{rendered}");
    says(&refused_in_bulk(format!("? {long}\n: 1\n")), "a workflow has no key `xxx");
}

#[test]
fn patterns_that_slow_parsers_down_are_refused_in_time() {
    let many = 1 << 20;
    for text in [
        "\"".repeat(many),
        "&a ".repeat(many),
        "*a ".repeat(many),
        "!a ".repeat(many),
        "? ".repeat(many),
        ": ".repeat(many),
        "- ".repeat(many),
        "-\n".repeat(many),
        "%TAG ! x\n".repeat(many / 8),
        "#\n".repeat(many),
        "\n".repeat(many),
        "a: |\n".to_owned() + &" \n".repeat(many),
        "a: \"".to_owned() + &"\\\n".repeat(many),
        "a: '".to_owned() + &"''".repeat(many),
        "a b ".repeat(many),
        "a\n".repeat(many),
        "[a, b]: ".repeat(many / 4),
        "{".to_owned() + &"a: b, ".repeat(many / 2),
        "[".to_owned() + &"?a, ".repeat(many / 2),
        " ".repeat(many) + "a",
        "\t".repeat(many),
        "---\n".repeat(many),
        "é".repeat(many),
        "é: é\n".repeat(many / 4),
    ] {
        refused_in_bulk(text);
    }
}

#[test]
fn a_step_with_half_a_million_limits_is_refused() {
    let names: Vec<String> = (0..500_000).map(|number| format!("l{number}")).collect();
    let text = format!("steps: {{a: {{run: make, limits: [{}, l0]}}}}\n", names.join(","));
    says(&refused_in_bulk(text), "the limit `l0` is named twice");
}
