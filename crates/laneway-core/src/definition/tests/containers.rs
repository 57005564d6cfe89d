//! Containers and pools in documents: what they become, and what is refused.

use super::*;

#[test]
fn a_step_in_a_container_keeps_its_settings() {
    let text = r#"
secrets: {db: {env: DB}}
pools:
  warm: {image: "agent:2", mode: single, dormancy: 2m, endpoint: {port: 8080}, cpus: 1.5, health: {command: [ready]}}
steps:
  a:
    image: busybox:1
    run: ./x.sh
    container: {mounts: ["./d:/d:ro"], user: 1000:1000, memory: 64m, cpus: 0.25, pids: 9, secrets: [db], read_only: true}
  b: {pool: warm, command: [x]}
  c: {pool: warm, call: {path: /x, body: {n: "${{ params.n }}"}}}
  d: {run: here}
params: {n: {type: integer, default: 1}}
"#;
    let plan = compile(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    let [a, b, c, d] = plan.workflow.steps.as_slice() else { panic!("four steps") };
    let Some(Housing::Own(own)) = a.housing() else { panic!("a container of its own") };
    let expected = Container {
        image: "busybox:1".into(),
        mounts: vec![Mount { source: "./d".into(), target: "/d".into(), is_read_only: true }],
        user: Some("1000:1000".into()),
        cpus_milli: std::num::NonZeroU32::new(250),
        memory: Some(64 << 20),
        pids: std::num::NonZeroU32::new(9),
        is_read_only: true,
        secrets: vec!["db".into()],
        ..Container::default()
    };
    assert_eq!(own, &expected);
    assert_eq!(b.housing(), Some(&Housing::Pool("warm".into())));
    let Action::Call { method: Method::Post, body: Input::Map(body), .. } = &c.action else {
        panic!("a call")
    };
    assert_eq!(body[0].0, "n");
    assert_eq!(d.housing(), None);
    let pool = &plan.workflow.pools[0];
    assert_eq!((pool.max, pool.mode), (Pool::MAX, PoolMode::Single));
    assert_eq!(
        (pool.dormancy, pool.acquire_timeout),
        (Duration::from_secs(120), Some(Pool::ACQUIRE_TIMEOUT))
    );
    assert_eq!(pool.endpoint, Some(Endpoint { port: 8080, health: "/health".into() }));
    assert_eq!(
        (pool.container.cpus_milli, &pool.health),
        (std::num::NonZeroU32::new(1500), &Some(vec!["ready".into()]))
    );
    let classes: Vec<String> =
        plan.workflow.steps.iter().map(|step| crate::class::Class::of(step).to_string()).collect();
    assert_eq!(classes, ["container", "container", "container", "process"]);
}

#[test]
fn all_that_is_wrong_with_containers_is_told_at_once() {
    let text = r#"
pools:
  warm: {image: "busybox:1", memry: 5m}
steps:
  a: {pool: wram, run: x}
  b: {pool: warm, call: {path: /x}}
  c: {image: x, run: y, container: {mounts: ["/var/run/docker.sock:/s", "../x:/x"], memory: 512, secrets: [db]}}
  d: {image: x, pool: warm, run: y}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: a pool has no key `memry`
     --> flow.yaml:2:30
      |
    2 |   warm: {image: "busybox:1", memry: 5m}
      |                              ^^^^^
      |
      = help: did you mean `memory`?

    error: there is no pool `wram`
     --> flow.yaml:4:13
      |
    4 |   a: {pool: wram, run: x}
      |             ^^^^
      |
      = help: did you mean `warm`?

    error: the pool `warm` serves nothing that could be called
     --> flow.yaml:5:13
      |
    5 |   b: {pool: warm, call: {path: /x}}
      |             ^^^^
      |
      = help: say where it listens: `pools: {warm: {endpoint: {port: 8080}}}`

    error: `mounts` must be a mount such as ./data:/data or ./data:/data:ro, not the string `/var/run/docker.sock:/s`
     --> flow.yaml:6:46
      |
    6 |   c: {image: x, run: y, container: {mounts: ["/var/run/docker.sock:/s", "../x:/x"], memory: 512, secrets: [db]}}
      |                                              ^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: the socket of the container engine is never mounted: who has it has the host

    error: `mounts` must be a mount such as ./data:/data or ./data:/data:ro, not the string `../x:/x`
     --> flow.yaml:6:73
      |
    6 |   c: {image: x, run: y, container: {mounts: ["/var/run/docker.sock:/s", "../x:/x"], memory: 512, secrets: [db]}}
      |                                                                         ^^^^^^^^^
      |
      = help: `..` leads out of the run's directory: give an absolute path

    error: `memory` must be an amount of memory such as 512m or 2g, not the number 512
     --> flow.yaml:6:93
      |
    6 |   c: {image: x, run: y, container: {mounts: ["/var/run/docker.sock:/s", "../x:/x"], memory: 512, secrets: [db]}}
      |                                                                                             ^^^
      |
      = help: add a unit: `512m` is 512 MiB, `512g` GiB

    error: there is no secret `db`
     --> flow.yaml:6:108
      |
    6 |   c: {image: x, run: y, container: {mounts: ["/var/run/docker.sock:/s", "../x:/x"], memory: 512, secrets: [db]}}
      |                                                                                                            ^^
      |
      = help: say where it comes from: `secrets: {db: {env: VARIABLE}}`

    error: a step has either an `image` or a `pool`
     --> flow.yaml:7:17
      |
    7 |   d: {image: x, pool: warm, run: y}
      |                 ^^^^
      |
     ::: flow.yaml:7:7
      |
    7 |   d: {image: x, pool: warm, run: y}
      |       ----- the other one
      |
      = help: keep `image` for a container of its own, or `pool` for a warm one
    "#);
}

#[test]
fn what_a_warm_container_cannot_have_is_refused_and_not_ignored() {
    let text = r#"
secrets: {db: {env: DB}}
pools: {warm: {image: "busybox:1", read_only: false, secrets: [db]}}
steps: {a: {pool: warm, run: x}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: the root of a warm container is always read-only
     --> flow.yaml:2:36
      |
    2 | pools: {warm: {image: "busybox:1", read_only: false, secrets: [db]}}
      |                                    ^^^^^^^^^
      |
      = help: leave it out: a task writes to the run's directory and to /tmp

    error: a warm container has no `secrets`: tasks of others use it too
     --> flow.yaml:2:54
      |
    2 | pools: {warm: {image: "busybox:1", read_only: false, secrets: [db]}}
      |                                                      ^^^^^^^
      |
      = help: give them to its steps: `env: {X: "${{ secrets.NAME }}"}`
    "#);
}
