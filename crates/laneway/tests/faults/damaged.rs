//! A store whose file was damaged: every command says so in words and ends; the doctor says what to do.

use std::fs;

use crate::place::{Dice, Place, text};

const STEPS: usize = 30;

fn finished() -> Place {
    let place = Place::new();
    place.write_workflow(STEPS, ":");
    assert_eq!(place.laneway(&["run", "work.yaml"]).status.code(), Some(0), "{}", place.said());
    place
}

#[test]
fn a_damaged_file_is_told_as_such_and_names_the_doctor() {
    let place = finished();
    let mut bytes = fs::read(&place.store).expect("the file");
    // All but the first page, which says what the file is.
    bytes[4096..].fill(0xA5);
    fs::write(&place.store, &bytes).expect("the file");
    for args in [&["run", "work.yaml"][..], &["runs"], &["show", "last"]] {
        let output = place.laneway(args);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {}", place.said());
    }
    let said = place.said();
    assert_eq!(said.matches("is damaged: ").count(), 3, "{said}");
    assert_eq!(said.matches("`laneway doctor`").count(), 3, "{said}");
    let doctor = place.laneway(&["doctor"]);
    assert_ne!(doctor.status.code(), Some(0), "{}", text(&doctor));
    assert!((text(&doctor) + &place.said()).contains("laneway backup"), "{}", text(&doctor));
    assert_eq!(fs::read(&place.store).expect("the file"), bytes, "it was left as it is");
}

#[test]
fn damage_anywhere_never_crashes_a_command() {
    let place = finished();
    let sound = fs::read(&place.store).expect("the file");
    let mut dice = Dice::new();
    for round in 0..25 {
        let mut bytes = sound.clone();
        for _ in 0..1 + dice.below(40) {
            let at = usize::try_from(dice.below(bytes.len() as u64)).expect("small");
            bytes[at] = u8::try_from(dice.below(256)).expect("a byte");
        }
        let dir = tempfile::tempdir().expect("a directory");
        let damaged = Place::with_store(dir.path().join("laneway.db"));
        damaged.write_workflow(2, ":");
        fs::write(&damaged.store, &bytes).expect("the file");
        for args in
            [&["doctor"][..], &["runs"], &["show", "last"], &["events", "last"], &["run", "work.yaml"]]
        {
            let output = damaged.laneway(args);
            assert!(
                output.status.code().is_some_and(|code| code <= 3),
                "{round} {args:?}: {:?} {}",
                output.status,
                damaged.said()
            );
        }
        assert!(!damaged.said().contains("panicked"), "{round}: {}", damaged.said());
    }
}
