//! Keys and their parts: what makes another key, and in which words a miss is told.

use super::*;

fn parts(of: &[(Part, &str)]) -> Parts {
    let mut parts = Parts::default();
    of.iter().for_each(|(part, content)| parts.add(part.clone(), content.as_bytes()));
    parts
}

fn env(name: &str) -> Part {
    Part::Env(name.to_owned())
}

fn file(path: &str) -> Part {
    Part::File(path.to_owned())
}

fn recorded(run: u8, at: i64, of: &[(Part, &str)]) -> Recorded {
    let run = RunId::parse(&format!("0199f2a0-0000-7000-8000-{run:02x}2b3c4d5e6f")).expect("an id");
    Recorded { run, at: Millis(at), parts: parts(of) }
}

#[test]
fn each_part_and_each_name_makes_another_key() {
    let base = [(Part::Command, "make"), (env("A"), "1"), (file("src/a"), "x")];
    let key = |of: &[(Part, &str)]| parts(of).key("flow", "build");
    let others: [&[(Part, &str)]; 6] = [
        &[(Part::Command, "make all"), (env("A"), "1"), (file("src/a"), "x")],
        &[(Part::Command, "make"), (env("A"), "2"), (file("src/a"), "x")],
        &[(Part::Command, "make"), (env("B"), "1"), (file("src/a"), "x")],
        &[(Part::Command, "make"), (env("A"), "1"), (file("src/a"), "y")],
        &[(Part::Command, "make"), (env("A"), "1"), (file("src/b"), "x")],
        &[(Part::Command, "make"), (env("A"), "1"), (file("src/a"), "x"), (Part::Key, "")],
    ];
    let mut keys: Vec<ContentHash> = others.iter().map(|of| key(of)).collect();
    keys.push(parts(&base).key("flow", "other"));
    keys.push(parts(&base).key("other", "build"));
    // What is between two names must not move from one to the other.
    keys.push(parts(&base).key("flowb", "uild"));
    keys.push(key(&base));
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count);
    assert_eq!(key(&base), key(&[base[2].clone(), base[0].clone(), base[1].clone()]), "order says nothing");
}

#[test]
fn nothing_of_what_goes_into_a_key_can_be_read_in_what_is_kept() {
    let kept = parts(&[(env("TOKEN"), "hunter2"), (Part::Command, "curl")]);
    let text = kept.to_text();
    assert!(!text.contains("hunter2") && text.contains("env:TOKEN"), "{text}");
    assert_eq!(Parts::parse(&text), Some(kept));
    for wrong in ["", "[]", r#"{"command":"x"}"#, r#"{"mood":"00"}"#] {
        assert_eq!(Parts::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn a_miss_is_compared_with_what_is_most_like_it() {
    let now = parts(&[(Part::Command, "make"), (env("A"), "1"), (file("src/a"), "new")]);
    assert_eq!(miss(&now, &[]), Miss::NeverSeen);
    let far = recorded(0xfa, 9, &[(Part::Command, "cmake"), (env("A"), "2"), (file("src/b"), "x")]);
    let near = [(Part::Command, "make"), (env("A"), "1"), (file("src/a"), "old")];
    let kept = [far, recorded(0x01, 5, &near), recorded(0x02, 7, &near), recorded(0x03, 6, &near)];
    let found = miss(&now, &kept);
    assert_eq!(found.to_string(), "since run 022b3c4d the file src/a has changed");
    let found = miss(&now, &kept[..1]);
    assert_eq!(
        found.to_string(),
        "since run fa2b3c4d the command has changed, the variable A has changed, the file src/a is new, \
         the file src/b is gone"
    );
    let text = serde_json::to_string(&found).expect("JSON");
    assert_eq!(serde_json::from_str::<Miss>(&text).expect("a miss"), found);
}

#[test]
fn a_long_list_of_changes_is_counted() {
    let many: Vec<(Part, &str)> = (0..9).map(|n| (file(&format!("f{n}")), "x")).collect();
    let told = miss(&parts(&many), &[recorded(1, 1, &[])]).to_string();
    assert!(told.ends_with("the file f4 is new, and 4 more"), "{told}");
}
