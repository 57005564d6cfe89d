//! Tables of plans and refusals, and random graphs against a naive reference.

use proptest::prelude::*;

use crate::plan::sample::{acyclic, build, grouped, numbered, workflow};
use crate::plan::{Lane, Place, Plan, Position, Prewarm};

fn names(plan: &Plan, positions: &[Position]) -> Vec<String> {
    let name = |position: &Position| plan.step(*position).name.clone();
    positions.iter().map(name).collect()
}

fn lanes(plan: &Plan) -> String {
    let lane = |lane: &Lane| match lane {
        Lane::Step(position) => plan.step(*position).name.clone(),
        Lane::Group { name, steps } => format!("{name}[{}]", names(plan, steps).join(" ")),
    };
    plan.lanes.iter().map(lane).collect::<Vec<_>>().join(" ")
}

fn refusals(steps: &[(&str, &[&str])], groups: &[(&str, &[&str])]) -> Vec<String> {
    let faults = build(grouped(steps, groups)).expect_err("the workflow is wrong");
    faults.into_iter().map(|fault| fault.message).collect()
}

#[test]
fn ties_go_to_the_step_that_is_defined_first() {
    let plan = build(workflow(&[
        ("zebra", &[]),
        ("late", &["mid"]),
        ("ant", &[]),
        ("mid", &["zebra", "ant"]),
        ("alone", &[]),
    ]))
    .expect("a plan");
    assert_eq!(names(&plan, &plan.order), ["zebra", "ant", "mid", "late", "alone"]);
    assert_eq!(plan.levels, [vec![0, 2, 4], vec![3], vec![1]]);
    assert_eq!(plan.level_of, [0, 2, 0, 1, 0]);
    assert_eq!(plan.critical_path, [0, 3, 1]);
    assert_eq!(plan.needs[3], [0, 2]);
    assert_eq!(plan.width(), 3);
    assert_eq!(plan.position("mid"), Some(3));
    assert_eq!(plan.position("nobody"), None);
    assert_eq!(plan.dependents_of([2, 4]), [1, 3]);
}

#[test]
fn steps_with_equal_needs_share_one_set() {
    let plan =
        build(workflow(&[("a", &[]), ("b", &[]), ("x", &["a", "b"]), ("y", &["b", "a"]), ("z", &["a"])]))
            .expect("a plan");
    assert_eq!(plan.needs_sets.len(), 2);
    assert_eq!(plan.needs_sets[0].needs, [0, 1]);
    assert_eq!(plan.needs_sets[0].waiters, [2, 3]);
    assert_eq!(plan.needs_set_of, [None, None, Some(0), Some(0), Some(1)]);
    assert_eq!(plan.counted_in[0], [0, 1]);
    assert_eq!(plan.counted_in[1], [0]);
}

#[test]
fn a_group_is_one_lane_and_pre_warming_starts_before_it() {
    let plan = build(grouped(
        &[
            ("fetch", &[]),
            ("lint", &["fetch"]),
            ("other", &["fetch"]),
            ("test", &["fetch"]),
            ("ship", &["lint", "test"]),
        ],
        &[("quality", &["test", "lint"])],
    ))
    .expect("a plan");
    assert_eq!(lanes(&plan), "fetch quality[test lint] other ship quality/merge");
    let prewarm = Prewarm { lane: Some(0), width: 2 };
    assert_eq!(plan.prewarm, prewarm);
}

#[test]
fn a_group_waits_for_all_that_its_members_need() {
    let plan =
        build(grouped(&[("a", &[]), ("b", &["late"]), ("other", &[]), ("late", &[])], &[("g", &["a", "b"])]))
            .expect("a plan");
    assert_eq!(lanes(&plan), "other late g[a b] g/merge");
}

#[test]
fn a_first_lane_that_is_parallel_is_pre_warmed_at_once() {
    let plan =
        build(grouped(&[("a", &[]), ("b", &[]), ("c", &["a"])], &[("g", &["a", "b"])])).expect("a plan");
    let at_once = Prewarm { lane: None, width: 2 };
    assert_eq!(plan.prewarm, at_once);
}

#[test]
fn without_a_parallel_lane_nothing_is_pre_warmed() {
    let plan = build(grouped(&[("a", &[]), ("b", &["a"])], &[("g", &["b"])])).expect("a plan");
    let nothing = Prewarm { lane: None, width: 0 };
    assert_eq!(plan.prewarm, nothing);
}

#[test]
fn an_empty_workflow_is_refused() {
    assert_eq!(refusals(&[], &[]), ["the workflow has no steps"]);
}

#[test]
fn every_wrong_need_is_named_at_its_place_with_the_nearest_step() {
    let faults = build(grouped(
        &[("compile", &["compile"]), ("test", &["compil", "g"]), ("last", &["nothing_like_it"])],
        &[("g", &["compile"])],
    ))
    .expect_err("the workflow is wrong");
    insta::assert_snapshot!(
        faults
            .iter()
            .map(|fault| format!("{:?} {} | {}", fault.at, fault.message, fault.hint.as_deref().unwrap_or("no hint")))
            .collect::<Vec<_>>()
            .join("\n"),
        @"
    Need { step: 0, index: 0 } step `compile` needs itself | remove `compile` from its own `needs`
    Need { step: 1, index: 0 } step `test` needs `compil`, which is not a step | did you mean `compile`?
    Need { step: 2, index: 0 } step `last` needs `nothing_like_it`, which is not a step | no hint
    "
    );
}

#[test]
fn a_cycle_is_named_as_a_whole_from_its_first_step_on() {
    let faults = build(workflow(&[
        ("root", &[]),
        ("b", &["root", "a"]),
        ("after", &["c"]),
        ("c", &["b"]),
        ("a", &["c"]),
    ]))
    .expect_err("there is a cycle");
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].message, "steps wait for each other in a cycle: b -> c -> a -> b");
    assert_eq!(faults[0].at, Place::Need { step: 1, index: 1 });
    assert_eq!(
        faults[0].hint.as_deref(),
        Some("each step waits for the one before the arrow; `b` needs `a` closes the cycle")
    );
}

#[test]
fn independent_cycles_are_reported_once_each_and_only_a_few() {
    let pairs: Vec<Vec<usize>> = (0..14).map(|number| vec![number ^ 1]).collect();
    let faults = build(numbered(&pairs)).expect_err("there are cycles");
    assert_eq!(faults.len(), 5);
    assert!(faults[0].message.ends_with(": s0 -> s1 -> s0"));
    assert!(faults[1].message.ends_with(": s2 -> s3 -> s2"));
    let hint = faults[4].hint.as_deref().expect("a hint");
    assert!(hint.ends_with("2 more cycles follow"), "{hint}");
}

#[test]
fn a_cycle_of_thousands_is_shown_without_its_middle() {
    let ring: Vec<Vec<usize>> = (0..5_000).map(|n| vec![(n + 4_999) % 5_000]).collect();
    let faults = build(numbered(&ring)).expect_err("there is a cycle");
    let message = &faults[0].message;
    assert!(message.contains(": s0 -> s1 -> "), "{message}");
    assert!(message.contains("s499 -> … 4001 more … -> s4501"), "{message}");
    assert!(message.ends_with("s4999 -> s0"), "{message}");
}

#[test]
fn names_and_cycles_are_reported_together() {
    assert_eq!(
        refusals(&[("a", &["b", "ghost"]), ("b", &["a"])], &[("g", &[])]),
        [
            "step `a` needs `ghost`, which is not a step",
            "group `g` has no steps",
            "steps wait for each other in a cycle: a -> b -> a"
        ]
    );
}

#[test]
fn groups_with_wrong_names_are_refused() {
    let steps: &[(&str, &[&str])] = &[("alpha", &[]), ("beta", &[])];
    for (groups, expected) in [
        (
            &[("g", &["alhpa"] as &[&str])] as &[(&str, &[&str])],
            "group `g` lists `alhpa`, which is not a step",
        ),
        (&[("g", &["alpha"]), ("h", &["alpha"])], "step `alpha` is in two groups, `g` and `h`"),
        (&[("g", &["alpha", "alpha"])], "step `alpha` stands twice in group `g`"),
        (&[("g", &[])], "group `g` has no steps"),
        (&[("alpha", &["beta"])], "group `alpha` has the name of a step"),
        (&[("g", &["alpha"]), ("h", &["g"])], "group `h` lists the group `g`"),
        (&[("g", &["alpha"]), ("g", &["beta"])], "group `g` is defined twice"),
    ] {
        assert_eq!(refusals(steps, groups), [expected]);
    }
}

#[test]
fn groups_that_cannot_be_one_lane_are_refused_with_the_path() {
    let chain: &[(&str, &[&str])] = &[("a", &[]), ("x", &["a"]), ("b", &["x"])];
    assert_eq!(
        refusals(chain, &[("g", &["x", "b"])]),
        ["the steps of group `g` depend on one another: x -> b"]
    );
    assert_eq!(
        refusals(chain, &[("g", &["b", "a"])]),
        ["the steps of group `g` depend on one another: a -> x -> b"]
    );
    assert_eq!(
        refusals(
            &[("a", &[]), ("b", &["d"]), ("c", &["a"]), ("d", &[])],
            &[("g", &["a", "b"]), ("h", &["c", "d"])]
        ),
        ["group `g` cannot be one lane, because a step would come before what it needs: a -> h(c, d) -> b"]
    );
}

#[test]
fn a_group_in_the_middle_of_a_path_of_steps_is_no_excuse() {
    assert_eq!(
        refusals(
            &[("a", &[]), ("c", &["a"]), ("d", &[]), ("b", &["c"])],
            &[("g", &["a", "b"]), ("h", &["c", "d"])]
        ),
        ["the steps of group `g` depend on one another: a -> c -> b"]
    );
}

#[test]
fn a_step_that_is_defined_twice_is_refused() {
    assert_eq!(refusals(&[("a", &[]), ("a", &[])], &[]), ["step `a` is defined twice"]);
}

/// The definition of a level, word for word.
fn level(needs: &[Vec<usize>], step: usize) -> u32 {
    let before = needs[step].iter().map(|need| level(needs, *need) + 1);
    before.max().unwrap_or(0)
}

/// Scans from the top for the first step that is ready, until none is left.
fn scanned_order(needs: &[Vec<usize>]) -> Vec<u32> {
    let mut done = vec![false; needs.len()];
    let mut order = Vec::new();
    while let Some(next) =
        (0..needs.len()).find(|step| !done[*step] && needs[*step].iter().all(|need| done[*need]))
    {
        done[next] = true;
        order.push(u32::try_from(next).expect("small"));
    }
    order
}

proptest! {
    #[test]
    fn order_levels_and_critical_path_match_the_naive_reference(needs in acyclic(14)) {
        let plan = build(numbered(&needs)).expect("no cycle");
        prop_assert_eq!(&plan.order, &scanned_order(&needs));
        for step in 0..needs.len() {
            prop_assert_eq!(plan.level_of[step], level(&needs, step));
            prop_assert!(plan.levels[plan.level_of[step] as usize].contains(&(step as u32)));
            let set = plan.needs_set_of[step].map(|set| &plan.needs_sets[set as usize]);
            prop_assert_eq!(set.map_or(&[] as &[u32], |set| &set.needs), &plan.needs[step][..]);
        }
        prop_assert_eq!(plan.levels.iter().map(Vec::len).sum::<usize>(), needs.len());
        prop_assert_eq!(plan.critical_path.len(), plan.levels.len());
        for pair in plan.critical_path.windows(2) {
            prop_assert!(needs[pair[1] as usize].contains(&(pair[0] as usize)));
        }
    }

    #[test]
    fn a_cycle_is_always_found_and_truly_one(
        needs in acyclic(14),
        closing in prop::collection::vec((0..14_usize, 0..14_usize), 1..3),
    ) {
        let mut needs = needs;
        for (from, to) in closing {
            let (from, to) = (from % needs.len(), to % needs.len());
            if from != to && !needs[from].contains(&to) {
                needs[from].push(to);
            }
        }
        let is_cyclic = scanned_order(&needs).len() < needs.len();
        let built = build(numbered(&needs));
        prop_assert_eq!(built.is_err(), is_cyclic);
        for fault in built.err().unwrap_or_default() {
            let path = fault.message.split(": ").last().expect("a path");
            let path: Vec<usize> = path
                .split(" -> ")
                .map(|name| name[1..].parse().expect("a number"))
                .collect();
            prop_assert!(path.len() > 2);
            prop_assert_eq!(path.first(), path.last());
            prop_assert_eq!(path.iter().min(), path.first());
            for pair in path.windows(2) {
                prop_assert!(needs[pair[1]].contains(&pair[0]), "{:?}", path);
            }
        }
    }

    #[test]
    fn lanes_hold_every_step_once_and_respect_what_steps_need(
        needs in acyclic(14),
        group_of in prop::collection::vec(0..6_usize, 14),
    ) {
        let mut workflow = numbered(&needs);
        for group in 0..3 {
            let members = (0..needs.len()).filter(|step| group_of[*step] == group);
            let steps: Vec<String> = members.map(|step| format!("s{step}")).collect();
            if !steps.is_empty() {
                let name = format!("g{group}");
                workflow.groups.push(crate::definition::Group { name, steps, ..Default::default() });
            }
        }
        match build(workflow) {
            Ok(plan) => {
                let mut lane_of = vec![usize::MAX; plan.workflow.steps.len()];
                for (number, lane) in plan.lanes.iter().enumerate() {
                    let steps = match lane {
                        Lane::Step(position) => std::slice::from_ref(position),
                        Lane::Group { steps, .. } => steps,
                    };
                    for step in steps {
                        prop_assert_eq!(lane_of[*step as usize], usize::MAX);
                        lane_of[*step as usize] = number;
                    }
                }
                for (step, needs) in needs.iter().enumerate() {
                    for need in needs {
                        prop_assert!(lane_of[*need] < lane_of[step]);
                    }
                }
            }
            Err(faults) => {
                // A refusal must be right: collapsing by hand leaves a loop of lanes.
                prop_assert!(!faults.is_empty());
                let lane = |step: usize| if group_of[step] < 3 { group_of[step] } else { 3 + step };
                let mut reach = vec![vec![false; 3 + needs.len()]; 3 + needs.len()];
                for (step, needs) in needs.iter().enumerate() {
                    for need in needs {
                        reach[lane(*need)][lane(step)] = true;
                    }
                }
                for via in 0..reach.len() {
                    for from in 0..reach.len() {
                        for to in 0..reach.len() {
                            reach[from][to] |= reach[from][via] && reach[via][to];
                        }
                    }
                }
                prop_assert!((0..reach.len()).any(|lane| reach[lane][lane]));
            }
        }
    }
}
