//! What expressions give, and what they refuse.

use serde_json::json;

use super::*;

fn scope() -> Scope {
    match json!({
        "params": {"depth": 2, "name": "Ada", "flags": ["a", "b"], "nothing": null, "big": true},
        "steps": {"fetch": {"status": "succeeded", "output": {"files": ["x", "y"], "count": 2}},
                  "my-step": {"status": "failed", "output": {}}},
        "run": {"id": "r1", "workflow": "nightly"},
    }) {
        Value::Object(scope) => scope,
        _ => unreachable!("an object literal"),
    }
}

fn value(source: &str) -> Result<Value, String> {
    Expression::parse(source)
        .and_then(|expression| expression.evaluate(&scope()))
        .map_err(|error| error.message)
}

fn error(source: &str) -> String {
    value(source).expect_err("an error is expected")
}

fn rendered(text: &str) -> Result<String, String> {
    Template::parse(text).and_then(|template| template.render(&scope())).map_err(|error| error.message)
}

#[test]
fn expressions_give_json_values() {
    assert_eq!(value("params.depth + 1"), Ok(json!(3)));
    assert_eq!(value("params.name | lower"), Ok(json!("ada")));
    assert_eq!(value("steps.fetch.output.files | join(', ')"), Ok(json!("x, y")));
    assert_eq!(value("steps['my-step'].status == \"failed\""), Ok(json!(true)));
    assert_eq!(value("steps.fetch.output.files[1]"), Ok(json!("y")));
    assert_eq!(value("steps.fetch.output.files.0"), Ok(json!("x")));
    assert_eq!(value("{'a': [1, 2.5, none]}"), Ok(json!({"a": [1, 2.5, null]})));
    assert_eq!(value("params.depth if params.big else 0"), Ok(json!(2)));
    assert_eq!(value("steps.fetch.output | tojson"), Ok(json!("{\"files\":[\"x\",\"y\"],\"count\":2}")));
    assert_eq!(value("params | length"), Ok(json!(5)));
    assert_eq!(value("'x,y' | split(',')"), Ok(json!(["x", "y"])));
    assert_eq!(value("'depth' in params and not ('gone' in params)"), Ok(json!(true)));
}

#[test]
fn what_is_not_set_is_an_error_that_names_the_path() {
    for source in [
        "params.gone",
        "params.gone == 1",
        "params.gone.deeper",
        "not params.gone",
        "[params.gone]",
        "params.gone | upper",
    ] {
        assert_eq!(error(source), "`params.gone` is not set", "{source}");
    }
    let told =
        "`steps.fetch.output.cuont` is not set: step `fetch` put out `files`, `count`; did you mean `count`?";
    assert_eq!(error("steps.fetch.output.cuont > 1"), told);
    assert_eq!(
        error("steps[\"my-step\"].output.total"),
        "`steps.my-step.output.total` is not set: step `my-step` put out nothing; its script can write `total=…` to the file \"$LANEWAY_OUTPUT\""
    );
    assert_eq!(value("params.gone is defined"), Ok(json!(false)));
    assert_eq!(value("params.gone | default('x')"), Ok(json!("x")));
    assert_eq!(value("params.gone is defined and params.gone > 1"), Ok(json!(false)));
    assert_eq!(value("params.depth == 3 and params.gone == 1"), Ok(json!(false)));
}

#[test]
fn a_template_puts_values_into_its_text() {
    assert_eq!(rendered("plain $HOME {{ x }}"), Ok("plain $HOME {{ x }}".into()));
    assert_eq!(rendered("a ${{ params.depth }}-${{params.name}}!"), Ok("a 2-Ada!".into()));
    assert_eq!(rendered("${{ params.big }}"), Ok("true".into()));
    assert_eq!(rendered("${{ params.flags }}"), Ok("[\"a\",\"b\"]".into()));
    assert_eq!(rendered("${{ '}}' }}${{ {'a': {'b': 1}} }}"), Ok("}}{\"a\":{\"b\":1}}".into()));
    assert_eq!(
        rendered("${{ params.nothing }}"),
        Err("`params.nothing` is null; give it a value with `| default(\"…\", true)`".into())
    );
    assert_eq!(rendered("${{ params.nothing | default('x', true) }}"), Ok("x".into()));
    assert_eq!(rendered("${{ params.gone }}"), Err("`params.gone` is not set".into()));
    assert_eq!(rendered("x ${{ params.depth"), Err("`${{` is never closed; write `${{ … }}`".into()));
    assert_eq!(rendered("${{ '\\u0000' }}"), Err("the value contains a NUL character".into()));
}

#[test]
fn errors_of_a_template_point_into_its_text() {
    let error = Template::parse("ab ${{  params.x | uper }}").expect_err("no such filter");
    assert_eq!(error.to_string(), "there is no filter `uper`; did you mean `upper`?");
    assert_eq!(error.at, Some(19..23));
}

#[test]
fn a_condition_must_be_a_boolean() {
    let holds = |source: &str| {
        Expression::parse(source)
            .and_then(|expression| expression.holds(&scope()))
            .map_err(|error| error.message)
    };
    assert_eq!(holds("params.depth > 1"), Ok(true));
    assert_eq!(holds("params.depth > 2"), Ok(false));
    assert_eq!(
        holds("params.depth"),
        Err("`params.depth` must be true or false, but it is an integer; compare it, as in `… == \"value\"`"
            .into())
    );
}

#[test]
fn only_pure_and_bounded_filters_exist() {
    assert_eq!(error("range(10)"), "there is no function `range`; use a filter, as in `value | upper`");
    assert_eq!(error("params.name.upper()"), "a value cannot be called; use a filter, as in `value | upper`");
    assert!(error("params.name | format").starts_with("there is no filter `format`"));
    assert!(error("params.name is prime").starts_with("there is no test `prime`"));
    assert!(error("('x' * 1000000000)").contains("too large"));
    let grow = " | replace('a', 'aaaaaaaaaaaaaaaa')".repeat(20);
    assert!(error(&format!("'a'{grow}")).contains("grows beyond"));
    assert!(error(&format!("'\"'{}", " | tojson".repeat(60))).contains("grows beyond"));
    assert_eq!(error("1 / 0"), "`1 / 0` fails: unable to calculate 1 / 0");
    assert_eq!(error("1e308 * 10"), "`1e308 * 10` is not a finite number");
    assert!(error("2 ** 100").contains("not a JSON value"), "{}", error("2 ** 100"));
}

#[test]
fn no_expression_can_exhaust_the_stack() {
    let sources = [
        "(".repeat(10_000),
        "(".repeat(4_000),
        "[".repeat(33),
        format!("{}1", "- ".repeat(2_000)),
        format!("{}1", "-".repeat(398)),
        format!("{}true", "not ".repeat(398)),
        format!("1{}", "+1".repeat(199)),
        format!("params{}", ".a".repeat(199)),
        format!("params{}", "[0]".repeat(130)),
        format!("1{}", " if 1 else 1".repeat(99)),
        format!("'a'{}", "|upper".repeat(199)),
        format!("2{}", "**2".repeat(199)),
        format!("1{}", " ~ 1".repeat(199)),
        format!("{}1{}", "[".repeat(32), "]".repeat(32)),
    ];
    // Half of what a thread gets by default, so that there is room to spare in a worker.
    let run = move || {
        for source in sources {
            if let Ok(expression) = Expression::parse(&source) {
                drop(expression.evaluate(&scope()));
            }
        }
    };
    std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(run)
        .expect("a thread starts")
        .join()
        .expect("no expression panics");
    assert!(Expression::parse(&"(".repeat(4_000)).is_err());
    assert_eq!(
        Expression::parse(&"(".repeat(10_000)).expect_err("too long").message,
        "the expression has 10000 bytes, 4096 are allowed; let a step compute it"
    );
}

#[test]
fn reads_are_listed_once_and_steps_by_name() {
    let expression = Expression::parse(
        "steps.a.output.x ~ steps['my-b'].status ~ params.x ~ steps.a.output.y ~ params.x ~ 'steps.no'",
    )
    .expect("it is well formed");
    assert_eq!(expression.reads, ["steps.a.output.x", "steps.my-b.status", "params.x", "steps.a.output.y"]);
    assert_eq!(expression.steps_read().collect::<Vec<_>>(), ["a", "my-b"]);
    let group = Expression::parse("groups.quality.result.success").expect("it is well formed");
    assert_eq!(group.steps_read().collect::<Vec<_>>(), ["quality/merge"]);
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn every_root_that_minijinja_sees_is_listed(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "params.a", "steps.b", "run", "item", "1", "'s'", "+", "and", "not", "(", ")", "[", "]",
            ".", "|upper", "is defined", "in", "if", "else", "==", "~", "{", "}", ":", ",", "x", "y.z",
            "=", "-", "true", "is", "|",
        ]), 0..14)
    ) {
        let source = parts.join(" ");
        let environment = minijinja::Environment::new();
        if let (Ok(ours), Ok(theirs)) =
            (Expression::parse(&source), environment.compile_expression(&source))
        {
            for root in theirs.undeclared_variables(false) {
                proptest::prop_assert!(
                    ours.reads.iter().any(|path| path.split('.').next() == Some(&root)),
                    "{root} of {source} is not in {:?}", ours.reads
                );
            }
        }
    }
}

#[test]
fn place_of_an_item_is_its_index_unless_the_item_has_one_itself() {
    let of = |item: Value, source: &str| {
        let Value::Object(scope) = json!({"item": item, "index": 3}) else { unreachable!("an object") };
        Expression::parse(source).expect("valid").evaluate(&scope).map_err(|error| error.message)
    };
    assert_eq!(of(json!("a"), "item.index"), Ok(json!(3)));
    assert_eq!(of(json!({"name": "a"}), "item.name ~ item[\"index\"]"), Ok(json!("a3")));
    assert_eq!(of(json!({"index": "own"}), "item.index"), Ok(json!("own")));
    assert_eq!(of(json!([1]), "item.index + index"), Ok(json!(6)));
}
