use serde_json::{Map, json};

use super::*;
use crate::definition::{Source, compile};

fn plan(text: &str) -> Plan {
    let source = Source { file: "f.yaml".into(), default_name: "f".into(), text: text.into() };
    compile(&source).map_err(|refusal| refusal.render(false)).expect("it is valid")
}

const TWO: &str = r#"
steps:
  a: {run: ls}
  b: {run: ls, for_each: [1, 2]}
  c: {run: ls, needs: b}
  d: {run: ls, needs: b, for_each: "${{ steps.b.output }}"}
"#;

#[test]
fn items_stand_behind_all_steps_and_are_found_by_name_and_position() {
    let plan = plan(TWO);
    assert_eq!((plan.position("b"), plan.position("d")), (Some(1), Some(3)));
    let (first, last) =
        (plan.position("b[0]").expect("an item"), plan.position("b[1048575]").expect("the last"));
    assert_eq!((first, last), (4, 4 + MAX_ITEMS - 1));
    assert_eq!(plan.position("d[0]"), Some(4 + MAX_ITEMS));
    assert_eq!((plan.item(first), plan.item(last)), (Some((1, 0)), Some((1, MAX_ITEMS - 1))));
    assert_eq!((plan.base(4 + MAX_ITEMS + 7), plan.item(4 + MAX_ITEMS + 7)), (Some(3), Some((3, 7))));
    assert_eq!((plan.base(2), plan.item(2), plan.base(4 + 2 * MAX_ITEMS)), (Some(2), None, None));
    assert_eq!(plan.task_name(4 + MAX_ITEMS + 7), "d[7]");
    assert_eq!(plan.task_name(u32::MAX), format!("position {}", u32::MAX), "it is not there");
    assert_eq!(plan.step(last).name, "b");
    assert_eq!((plan.items_set(1), plan.items_set(3), plan.items_set(2)), (Some(1), Some(2), None));
    assert_eq!((plan.step_of_set(2), plan.step_of_set(0)), (Some(3), None));
    for wrong in ["a[0]", "b[01]", "b[1048576]", "b[-1]", "b[+1]", "b[", "b[x]", "x[0]"] {
        assert_eq!(plan.position(wrong), None, "{wrong}");
    }
}

#[test]
fn whatever_is_no_list_is_told_in_words() {
    let plan = plan("params: {l: {type: object}}\nsteps: {a: {run: ls, for_each: '${{ params.l.x }}'}}");
    let for_each = plan.workflow.steps[0].for_each.as_ref().expect("a list");
    let found = |value: Value| {
        let scope: Map<String, Value> =
            [("params".to_owned(), json!({"l": {"x": value}}))].into_iter().collect();
        for_each.evaluate(&scope).map(|items| items.len())
    };
    assert_eq!(found(json!([])), Ok(0));
    assert_eq!(found(json!([[1], null, "x"])), Ok(3));
    assert_eq!(found(json!("a,b")), Err("`for_each` must be a list, and it is a string".into()));
    assert_eq!(found(json!({"a": 1})), Err("`for_each` must be a list, and it is an object".into()));
    let many = vec![json!(0); MAX_ITEMS as usize + 1];
    assert_eq!(found(many.into()), Err("`for_each` has 1048577 items, and 1048576 are allowed".into()));
    assert_eq!(
        for_each.evaluate(&Map::from_iter([("params".to_owned(), json!({"l": {}}))])),
        Err("`for_each`: `params.l.x` is not set".into())
    );
}

#[test]
fn numbers_make_a_list_of_any_length_up_to_a_hundred_thousand() {
    let plan =
        plan("params: {n: {type: integer}}\nsteps: {a: {run: ls, for_each: '${{ params.n | range }}'}}");
    let for_each = plan.workflow.steps[0].for_each.as_ref().expect("a list");
    let found = |n: i64| for_each.evaluate(&Map::from_iter([("params".to_owned(), json!({"n": n}))]));
    assert_eq!(found(3), Ok(vec![json!(0), json!(1), json!(2)]));
    assert_eq!(found(100_000).map(|items| items.len()), Ok(100_000));
    assert!(found(100_001).expect_err("too many").contains("`range` makes 0 to 100000 numbers, not 100001"));
    assert!(found(-1).is_err());
}
