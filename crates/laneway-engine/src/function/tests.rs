//! One call at a time, without a store: how it can end, and that nothing of it goes on afterwards.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::process::StopSignal;

#[derive(Deserialize)]
struct Input {
    count: u32,
}

fn functions() -> Functions {
    Functions::new()
        .add("double", |call: Call<Input>| async move {
            let said = json!({ "count": call.input.count * 2, "step": call.step, "attempt": call.attempt });
            Ok::<_, Infallible>(said)
        })
        .add("nothing", |_: Call<Value>| async { Ok::<_, Infallible>(()) })
        .add("list", |_: Call<Value>| async { Ok::<_, Infallible>(vec![1]) })
        .add("large", |_: Call<Value>| async { Ok::<_, Infallible>(json!({ "x": "x".repeat(300_000) })) })
        .add("fails", |_: Call<Value>| async { Err::<(), _>("the moon is full") })
        .add("panics", |_: Call<Value>| async {
            if true {
                panic!("no moon");
            }
            Ok::<_, Infallible>(())
        })
}

async fn call(functions: &Functions, name: &str, input: Value, timeout: Option<Duration>) -> Ending {
    let Value::Object(input) = input else { panic!("an input is an object") };
    let run = RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").expect("an id");
    let job = Job {
        name: name.into(),
        input,
        run,
        step: "s".into(),
        attempt: 2,
        fence: None,
        effects: Effects::default(),
        timeout,
    };
    execute(functions, job, &StopSignal::new()).await
}

#[tokio::test]
async fn typed_input_goes_in_and_an_object_comes_out() {
    let ending = call(&functions(), "double", json!({ "count": 21 }), None).await;
    let Ending::Returned(output) = ending else { panic!("{ending:?}") };
    assert_eq!(Value::Object(output), json!({ "count": 42, "step": "s", "attempt": 2 }));
}

#[tokio::test]
async fn every_other_way_to_end_says_what_is_wrong() {
    let functions = functions();
    let end = async |name: &str, input: Value| call(&functions, name, input, None).await;
    assert_eq!(end("nothing", json!({})).await, Ending::Returned(Map::new()));
    assert_eq!(end("fails", json!({})).await, Ending::Failed("the moon is full".into()));
    assert_eq!(end("panics", json!({})).await, Ending::Failed("the function panicked: no moon".into()));
    let wrong = end("double", json!({ "count": "many" })).await;
    let Ending::Failed(why) = wrong else { panic!("{wrong:?}") };
    assert!(why.starts_with("its input does not fit: invalid type: string \"many\""), "{why}");
    let list = end("list", json!({})).await;
    assert_eq!(list, Ending::BadOutput("its output is a list; return an object, or nothing".into()));
    let large = end("large", json!({})).await;
    assert!(matches!(&large, Ending::BadOutput(why) if why.contains("262144 are kept at most")), "{large:?}");
    let unknown = end("triple", json!({})).await;
    let Ending::Unknown(why) = unknown else { panic!("{unknown:?}") };
    assert_eq!(
        why,
        "this program has no function `triple`; it has: double, fails, large, list, nothing, panics"
    );
}

/// Says when it is dropped.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn endless(gone: &Arc<AtomicBool>) -> Functions {
    let gone = Arc::clone(gone);
    Functions::new().add("endless", move |_: Call<Value>| {
        let guard = Gone(Arc::clone(&gone));
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok::<_, Infallible>(())
        }
    })
}

#[tokio::test]
async fn function_that_times_out_is_dropped_where_it_waits() {
    let gone = Arc::new(AtomicBool::new(false));
    let functions = endless(&gone);
    let ending = call(&functions, "endless", json!({}), Some(Duration::from_millis(5))).await;
    assert_eq!(ending, Ending::TimedOut);
    tokio::task::yield_now().await;
    assert!(gone.load(Ordering::SeqCst));
}

#[tokio::test]
async fn function_that_is_stopped_is_dropped_where_it_waits() {
    let gone = Arc::new(AtomicBool::new(false));
    let functions = endless(&gone);
    let stop = StopSignal::new();
    let run = RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").expect("an id");
    let job = Job {
        name: "endless".into(),
        input: Map::new(),
        run,
        step: "s".into(),
        attempt: 1,
        fence: None,
        effects: Effects::default(),
        timeout: None,
    };
    let stopper = async {
        // Long enough to be waiting in it.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        stop.stop();
    };
    let (ending, ()) = tokio::join!(execute(&functions, job, &stop), stopper);
    assert_eq!(ending, Ending::Stopped);
    tokio::task::yield_now().await;
    assert!(gone.load(Ordering::SeqCst));
}
