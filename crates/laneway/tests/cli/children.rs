//! Workflows that run workflows, as a person meets them: from a file beside, by a name on a server, canceled, failed and gone on with.

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, until};
use crate::serve::Served;

const PARENT: &str = r#"
name: release
steps:
  build: {run: 'echo "{\"tag\": \"v7\"}" > "$LANEWAY_OUTPUT"'}
  deploy: {needs: [build], workflow: jobs/deploy.yaml, with: {tag: "${{ steps.build.output.tag }}"}}
  tell: {needs: [deploy], run: 'echo "at $URL"', env: {URL: "${{ steps.deploy.output.push.url }}"}}
"#;

const DEPLOY: &str = r#"
name: deploy
params: {tag: {type: string, required: true}}
steps:
  push: {run: 'pwd; echo "url=https://x/$TAG" > "$LANEWAY_OUTPUT"', env: {TAG: "${{ params.tag }}"}}
"#;

fn place(deploy: &str) -> Place {
    let place = Place::with("release.yaml", PARENT);
    std::fs::create_dir(place.path("jobs")).expect("a directory");
    place.write("jobs/deploy.yaml", deploy);
    place
}

#[test]
fn a_file_beside_it_runs_as_a_run_of_its_own_and_its_output_comes_back() {
    let place = place(DEPLOY);
    let outcome = place.laneway("run release.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.contains("deploy runs jobs/deploy.yaml"), "{outcome}");
    assert!(outcome.stdout.contains("deploy waits for run "), "{outcome}");
    let runs = place.json("runs --json");
    let names: Vec<&str> =
        runs.as_array().expect("runs").iter().filter_map(|run| run["workflow"].as_str()).collect();
    assert_eq!(names, ["deploy", "release"], "{runs}");
    let parent = runs[1]["run"].as_str().expect("an id").to_owned();
    assert_eq!(place.laneway(&format!("logs {parent} tell")).stdout, "at https://x/v7\n");
    assert_eq!(place.json("show last --json")["run"], json!(parent), "nobody typed the child");
    let last = runs[0]["run"].as_str().expect("an id").to_owned();
    let child = place.json(&format!("show {last} --json"));
    assert_eq!((&child["parent"]["run"], &child["parent"]["step"]), (&json!(parent), &json!("deploy")));
    let shown = place.json(&format!("show {parent} --json"));
    assert_eq!(shown["tasks"][1]["wait"]["child"], child["run"]);
    assert!(
        place.laneway(&format!("logs {last} push")).stdout.trim_end().ends_with("/jobs"),
        "it runs where its file is"
    );
    for run in [&parent, &last] {
        assert_eq!(place.laneway(&format!("replay {run}")).code, Some(0));
    }
    assert!(place.laneway(&format!("show {last}")).stdout.contains("child of  deploy of run "));
}

#[test]
fn what_is_wrong_with_the_file_is_told_before_anything_runs() {
    let place = place("steps: {push: {rnu: x}}\n");
    for command in ["run release.yaml", "validate release.yaml"] {
        let outcome = place.laneway(command);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains("step `deploy` runs `jobs/deploy.yaml`"), "{outcome}");
        assert!(outcome.stderr.contains("rnu"), "{outcome}");
    }
    place.write("jobs/deploy.yaml", "params: {other: {type: string, default: x}}\nsteps: {push: {run: x}}\n");
    let outcome = place.laneway("run release.yaml");
    assert!(
        outcome
            .stderr
            .contains("step `deploy` gives `tag` to `jobs/deploy.yaml`, which has no such parameter"),
        "{outcome}"
    );
    std::fs::remove_file(place.path("jobs/deploy.yaml")).expect("it was there");
    let outcome = place.laneway("validate release.yaml");
    assert!(outcome.stderr.contains("there is no file"), "{outcome}");
    assert!(!place.path(".laneway").exists(), "nothing ran");
}

#[test]
fn a_child_that_fails_fails_the_run_and_a_retry_goes_on_with_it() {
    let deploy = r#"
name: deploy
params: {tag: {type: string, required: true}}
steps:
  first: {run: 'echo once >> count'}
  push: {needs: [first], run: 'test -e ready; echo "url=u" > "$LANEWAY_OUTPUT"'}
"#;
    let place = place(deploy);
    let outcome = place.laneway("run release.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stdout.contains("of `jobs/deploy.yaml` failed: push failed: exit code 1"), "{outcome}");
    place.write("jobs/ready", "");
    let runs = place.json("runs --json");
    let parent = runs[1]["run"].as_str().expect("an id").to_owned();
    let again = place.laneway(&format!("retry {parent}"));
    assert_eq!(again.code, Some(0), "{again}");
    assert_eq!(place.json("runs --json").as_array().map(Vec::len), Some(2), "it is the same child");
    assert_eq!(place.read("jobs/count"), "once\n", "what had succeeded of it did not run again");
}

#[test]
fn ctrl_c_ends_the_child_too() {
    let deploy =
        "name: deploy\nparams: {tag: {type: string}}\nsteps: {push: {run: 'echo begun; sleep 600'}}\n";
    let place = place(deploy);
    let mut running = place.spawn("run release.yaml");
    running.wait_for("deploy waits for run ");
    until("the child to run", || place.json("runs --json")[0]["tasks"]["running"] == 1);
    running.signal(Signal::INT);
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(130), "{outcome}");
    let runs = place.json("runs --json");
    let statuses: Vec<&str> =
        runs.as_array().expect("runs").iter().filter_map(|run| run["status"].as_str()).collect();
    assert_eq!(statuses, ["canceled", "canceled"], "{runs}");
}

#[test]
fn a_killed_run_is_resumed_with_its_child() {
    let deploy = "name: deploy\nparams: {tag: {type: string}}\nsteps: {push: {run: 'test -e ready || sleep 600; echo url=u > \"$LANEWAY_OUTPUT\"'}}\n";
    let place = place(deploy);
    let mut running = place.spawn("run release.yaml");
    running.wait_for("deploy waits for run ");
    until("the child to run", || place.json("runs --json")[0]["tasks"]["running"] == 1);
    running.signal(Signal::KILL);
    running.wait();
    place.write("jobs/ready", "");
    let parent = place.json("runs --json")[1]["run"].as_str().expect("an id").to_owned();
    let outcome = place.laneway(&format!("run --resume {parent}"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(place.json("runs --json").as_array().map(Vec::len), Some(2));
}

#[test]
fn a_server_runs_what_was_applied_by_its_name_and_refuses_to_go_too_deep() {
    let place = Place::with("deploy.yaml", DEPLOY);
    let served = Served::start(&place, &[]);
    assert_eq!(served.ask("apply deploy.yaml").code, Some(0));
    place.write("release.yaml", &PARENT.replace("jobs/deploy.yaml", "deploy"));
    assert_eq!(served.ask("submit release.yaml").code, Some(0));
    let is_over = |name: &str| {
        let runs = served.json("runs --json");
        let of_name = runs.as_array().expect("runs").iter().find(|run| run["workflow"] == name).cloned();
        of_name.filter(|run| run["finished_at"].is_string())
    };
    until("the end of the run", || is_over("release").is_some());
    assert_eq!(is_over("release").expect("it is over")["status"], "succeeded");

    place.write("loop.yaml", "name: loop\nsteps: {again: {workflow: loop}}\n");
    assert_eq!(served.ask("apply loop.yaml").code, Some(0));
    let started = served.json("start loop --json");
    let run = started["run"].as_str().expect("an id").to_owned();
    until("the end of the loop", || served.json(&format!("show {run} --json"))["status"] == "failed");
    let loops = served.json("runs --workflow loop --limit 50 --json").as_array().map(Vec::len);
    assert_eq!(loops, Some(9), "the one that was started, and eight below it");

    place.write("none.yaml", "name: none\nsteps: {call: {workflow: nobody}}\n");
    let submitted = served.json("submit none.yaml --json");
    let run = submitted["run"].as_str().expect("an id").to_owned();
    until("the end of it", || served.json(&format!("show {run} --json"))["status"] == "failed");
    let why = served.json(&format!("show {run} --json"))["tasks"][0]["detail"].clone();
    assert!(why.as_str().is_some_and(|why| why.contains("there is no workflow `nobody`") && why.contains("laneway apply")), "{why}");
}

#[test]
fn a_server_finds_a_file_among_those_that_go_with_the_run() {
    let place = Place::with("deploy.yaml", DEPLOY);
    place.write("release.yaml", &PARENT.replace("jobs/deploy.yaml", "./deploy.yaml"));
    let served = Served::start(&place, &[]);
    let run = served.json("submit release.yaml --json")["run"].as_str().expect("an id").to_owned();
    until("the end of the run", || served.json(&format!("show {run} --json"))["finished_at"].is_string());
    let shown = served.json(&format!("show {run} --json"));
    assert_eq!(shown["status"], "succeeded", "{shown}");
    assert_eq!(shown["tasks"][1]["output"]["push"]["url"], "https://x/v7");
}
