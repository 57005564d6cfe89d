//! Tables of changes, and random ones in shuffled orders.

use proptest::prelude::*;

use super::*;

fn file(content: &str) -> Option<Entry> {
    Some(Entry::File { hash: content.to_owned(), mode: 0o644 })
}

fn directory() -> Option<Entry> {
    Some(Entry::Directory { mode: 0o755 })
}

fn member(index: usize, changes: &[(&str, Option<Entry>)]) -> Member {
    let changes = changes.iter().map(|(path, entry)| (PathBuf::from(path), entry.clone())).collect();
    Member { index, step: ["a", "b", "c"][index].to_owned(), changes }
}

/// `path=who…` for what is applied, `path!who…` for conflicts, with `>kept`.
fn told(combined: &Combined) -> String {
    let applies = combined.applies.iter().map(|apply| {
        let sign = if apply.entry.is_some() { "=" } else { "-" };
        format!("{}{sign}{}", apply.path.display(), apply.steps.join(""))
    });
    let conflicts = combined.conflicts.iter().map(|conflict| {
        let kept = conflict.kept.as_ref().map_or(String::new(), |kept| format!(">{kept}"));
        format!("{}!{}{kept}", conflict.path.display(), conflict.steps.join(""))
    });
    applies.chain(conflicts).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_one_changed_or_all_changed_alike_is_applied_and_the_rest_is_a_conflict() {
    let cases = [
        (vec![vec![("x", file("1"))], vec![("y", file("2"))]], "x=a y=b"),
        (vec![vec![("x", file("1"))], vec![("x", file("1"))]], "x=ab"),
        (vec![vec![("x", file("1"))], vec![("x", file("2"))]], "x!ab"),
        (vec![vec![("x", None)], vec![("x", None)]], "x-ab"),
        (vec![vec![("x", None)], vec![("x", file("2"))]], "x!ab"),
        (vec![vec![("x", file("1"))], vec![("y", file("1"))], vec![("x", file("3"))]], "y=b x!ac"),
        // A directory is there for what it holds.
        (vec![vec![("d", None), ("d/f", None)], vec![("d/new", file("1"))]], "d-a d/f-a d/new=b"),
        (vec![vec![("d", directory())], vec![("d", directory()), ("d/f", file("1"))]], "d=ab d/f=b"),
        // A file where another one has put something below.
        (vec![vec![("d", file("1"))], vec![("d/f", file("2"))]], "d!ab d/f!ab"),
        (vec![vec![("d", file("1"))], vec![("d/f", None)]], "d=a d/f-b"),
    ];
    for (changes, expected) in cases {
        let members: Vec<Member> =
            changes.iter().enumerate().map(|(index, changes)| member(index, changes)).collect();
        assert_eq!(told(&combine(&members, &OnConflict::Fail)), expected);
    }
}

#[test]
fn permissions_are_part_of_a_file() {
    let run = Some(Entry::File { hash: "1".into(), mode: 0o755 });
    let members = [member(0, &[("x", file("1"))]), member(1, &[("x", run)])];
    assert_eq!(told(&combine(&members, &OnConflict::Fail)), "x!ab");
}

#[test]
fn the_member_that_is_kept_decides_its_own_conflicts_and_no_others() {
    let members = [
        member(0, &[("x", file("1")), ("y", file("1"))]),
        member(1, &[("x", file("2"))]),
        member(2, &[("y", file("3")), ("z", file("3"))]),
    ];
    let combined = combine(&members, &OnConflict::Keep("b".into()));
    assert_eq!(told(&combined), "x=b z=c x!ab>b y!ac");
    assert_eq!(
        combined.undecided().as_deref(),
        Some(
            "members changed the same files in different ways, so nothing was applied: y (a, c); \
             let one of them win with `on_conflict: {keep: STEP}`"
        )
    );
    let tree = [member(0, &[("d", file("1"))]), member(1, &[("d", directory()), ("d/f", file("2"))])];
    assert_eq!(told(&combine(&tree, &OnConflict::Keep("a".into()))), "d=a d!ab>a d/f!ab>a");
    assert_eq!(told(&combine(&tree, &OnConflict::Keep("b".into()))), "d=b d/f=b d!ab>b d/f!ab>b");
}

#[test]
fn outputs_are_listed_as_the_group_lists_its_members() {
    let ended = |step: &str, status| Ended {
        step: step.to_owned(),
        status,
        output: Map::from_iter([("n".to_owned(), step.into())]),
    };
    let result = concatenate(&[ended("b", TaskStatus::Succeeded), ended("a", TaskStatus::Failed)]);
    assert_eq!(
        serde_json::to_string(&result).expect("plain data"),
        r#"{"success":false,"members":[{"step":"b","status":"succeeded","success":true,"output":{"n":"b"}},{"step":"a","status":"failed","success":false,"output":{"n":"a"}}]}"#
    );
}

#[test]
fn what_a_member_says_of_its_files_is_held_against_what_it_changed() {
    let changed: BTreeSet<PathBuf> = ["a/b", "c"].map(PathBuf::from).into();
    let said = |value: Value| {
        let output = Map::from_iter([("files_changed".to_owned(), value)]);
        against_said("lint", &output, &changed).unwrap_or_default()
    };
    assert_eq!(against_said("lint", &Map::new(), &changed), None);
    assert_eq!(said(json!(["./a/b", "c"])), "");
    assert_eq!(
        said(json!(["a/b", "d"])),
        "`files_changed` of `lint` names d, which it did not change and does not name c, which it changed"
    );
    assert_eq!(said(json!("c")), "`files_changed` of `lint` must be a list of paths, not \"c\"");
}

fn changes() -> impl Strategy<Value = Changes> {
    let path = prop::sample::select(vec!["x", "y", "d", "d/f", "d/g", "d/e/h"]).prop_map(PathBuf::from);
    let entry = prop_oneof![
        Just(None),
        (0..3_u8).prop_map(|content| file(&content.to_string())),
        Just(directory()),
        Just(Some(Entry::Symlink { target: "x".into() })),
    ];
    prop::collection::btree_map(path, entry, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    /// P4.
    #[test]
    fn the_result_does_not_depend_on_who_ended_first(
        changes in prop::collection::vec(changes(), 3),
        order in Just(vec![0_usize, 1, 2]).prop_shuffle(),
        keep in prop::option::of(0..3_usize),
    ) {
        let members: Vec<Member> = changes.into_iter().enumerate()
            .map(|(index, changes)| Member { index, step: ["a", "b", "c"][index].to_owned(), changes })
            .collect();
        let on_conflict = keep.map_or(OnConflict::Fail, |index| OnConflict::Keep(members[index].step.clone()));
        let shuffled: Vec<Member> = order.iter().map(|index| members[*index].clone()).collect();
        let combined = combine(&members, &on_conflict);
        prop_assert_eq!(&combined, &combine(&shuffled, &on_conflict));
        // Every path that somebody changed is applied, or told as a conflict.
        for path in members.iter().flat_map(|member| member.changes.keys()) {
            let is_applied = combined.applies.iter().any(|apply| apply.path == *path);
            let is_told = combined.conflicts.iter().any(|conflict| conflict.path == *path);
            prop_assert!(is_applied || is_told);
        }
    }

    #[test]
    fn what_is_applied_never_stands_in_its_own_way(changes in prop::collection::vec(changes(), 2)) {
        let members: Vec<Member> = changes.into_iter().enumerate()
            .map(|(index, mut changes)| {
                // As a copy can be: nothing lies below a file.
                let files: Vec<PathBuf> = changes.iter()
                    .filter(|(_, entry)| entry.as_ref().is_some_and(|entry| !entry.is_directory()))
                    .map(|(path, _)| path.clone()).collect();
                changes.retain(|path, entry| {
                    entry.is_none() || !files.iter().any(|file| path != file && path.starts_with(file))
                });
                Member { index, step: ["a", "b"][index].to_owned(), changes }
            })
            .collect();
        let combined = combine(&members, &OnConflict::Fail);
        for above in combined.files().filter(|apply| apply.entry.is_some()) {
            for below in combined.applies.iter().filter(|apply| apply.entry.is_some()) {
                prop_assert!(below.path == above.path || !below.path.starts_with(&above.path));
            }
        }
    }
}
