//! Words of other systems, and ours for the same thing: a person who comes from one of them is told what to write.

/// What to write in place of a key that this kind of mapping does not have.
pub(super) fn key(owner: &str, name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('-', "_");
    match owner {
        "a workflow" => of_workflow(&name),
        "a step" | "a hook" => of_step(&name),
        _ => None,
    }
}

fn of_workflow(name: &str) -> Option<&'static str> {
    Some(match name {
        "jobs" | "tasks" | "stages" | "pipeline" | "dag" | "job" | "task" => {
            "the word here is `steps`: `steps: {build: {run: make}, test: {needs: [build], run: make test}}`"
        }
        "on" | "triggers" | "cron" | "schedules" | "true" => {
            "`schedule: {cron: \"0 2 * * *\"}`, `after` or `webhook` start a workflow that was applied"
        }
        "inputs" | "parameters" | "arguments" | "args" => {
            "the word here is `params`: `params: {date: {type: string, required: true}}`"
        }
        "environment" | "variables" | "vars" => "the word here is `env`: `env: {REGION: eu}`",
        "concurrency" | "parallelism" => {
            "`max_parallel` is how many steps run at once, and `max_runs` how many runs of the workflow"
        }
        "defaults" => "a `shell` and `env` of the workflow hold for all of its steps",
        "services" => {
            "`pools` are containers that are kept warm for steps; `image` of a step is one of its own"
        }
        "runs_on" | "needs" | "run" | "command" | "image" | "retry" | "matrix" | "for_each" | "when" => {
            "it is a key of a step: put it below the name of one in `steps`"
        }
        _ => return None,
    })
}

fn of_step(name: &str) -> Option<&'static str> {
    Some(match name {
        "depends_on" | "dependencies" | "requires" | "after" | "upstream" | "stage" => {
            "the word here is `needs`: `needs: [build]` starts the step when `build` has succeeded"
        }
        "uses" | "action" | "plugin" => {
            "nothing is fetched from a marketplace: `run` is a script, `image` its container, `workflow` another workflow"
        }
        "script" | "scripts" | "cmd" | "commands" | "exec" | "sh" | "bash" | "shell_command" => {
            "the word here is `run`: `run: make test`, or `run: |` with a script of several lines below it"
        }
        "environment" | "variables" | "vars" => "the word here is `env`: `env: {REGION: eu}`",
        "working_directory" | "cwd" | "dir" | "directory" | "chdir" => {
            "the word here is `workdir`: `workdir: frontend`"
        }
        "continue_on_error" | "allow_failure" | "ignore_errors" | "on_failure" | "on_error" => {
            "`on_failure: continue` of the workflow lets other steps go on; a step behind this one with `when: one_failed` runs if it fails"
        }
        "on_success" => "a step behind this one runs if it succeeds: `needs: [NAME]` is all it takes",
        "timeout_minutes" | "timeout_seconds" | "max_time" => {
            "the word here is `timeout`, with a unit: `timeout: 10m`"
        }
        "retries" | "max_retries" | "attempts" | "max_attempts" => {
            "the word here is `retry`: `retry: {max: 3, backoff: 5s}`"
        }
        "strategy" | "parallel" | "loop" | "foreach" | "with_items" | "with_param" | "map" => FOR_EACH,
        "docker" | "container_image" | "services" => "the word here is `image`: `image: \"node:22\"`",
        "labels" | "tags" | "agent" | "node" => "the word here is `runs_on`: `runs_on: {zone: eu}`",
        "condition" | "only" | "unless" | "rules" => "the word here is `if`: `if: params.deploy`",
        "name" | "id" => "the name of a step is its key: `steps: {NAME: {run: make}}`",
        "output" | "outputs" => {
            "a script hands values on by itself: `echo \"key=value\" >> \"$LANEWAY_OUTPUT\"`"
        }
        "steps" | "jobs" => {
            "steps do not nest: list all of them below `steps`, with `needs`, or run a `workflow` of its own"
        }
        "params" | "parameters" => {
            "a script takes its values from `env` and `args`; a `workflow` takes them by `with`"
        }
        "concurrency" | "mutex" | "resource_group" => {
            "the word here is `lock`: `lock: db/orders` lets one task at a time have it"
        }
        "produces" | "paths" => "the word here is `artifacts`: `artifacts: [dist/*.tar.gz]`",
        _ => return None,
    })
}

/// Whether a key of a step says what to execute, in another system.
pub(super) fn is_action(name: &str) -> bool {
    matches!(
        name.to_ascii_lowercase().as_str(),
        "uses"
            | "action"
            | "plugin"
            | "script"
            | "scripts"
            | "cmd"
            | "commands"
            | "exec"
            | "sh"
            | "bash"
            | "jobs"
            | "steps"
    )
}

const FOR_EACH: &str =
    "`for_each: [a, b]` makes a task for each item, read as `${{ item }}` in `env`, `args` and paths";

/// What to write in place of a key that is known and not built.
pub(super) fn later(name: &str) -> &'static str {
    match name {
        "matrix" => {
            "write `for_each` with the combinations: `for_each: [{os: linux, py: \"3.12\"}]`, read as `${{ item.os }}`"
        }
        "key" => {
            "`lock` is for steps that exclude each other, and `cache: {key: …}` for what a result depends on"
        }
        _ => "remove it: this version would not act on it",
    }
}

/// Our word for one of another system, among the choices of a key.
pub(super) fn choice(key: &str, word: &str) -> Option<&'static str> {
    let word = word.trim_end_matches("()").to_ascii_lowercase().replace('-', "_");
    let when = match word.as_str() {
        "on_failure" | "failure" | "failed" | "on_error" | "error" | "any_failed" => {
            "write `one_failed`: it starts when a step that it needs has failed"
        }
        "on_success" | "success" | "succeeded" | "all_success" | "none_failed" => {
            "write `all_succeeded`, or leave `when` out: it is the default"
        }
        "always" | "finally" | "completed" | "on_completion" | "all_completed" => {
            "write `always`: it starts when all that it needs has ended, in any way"
        }
        "never" | "manual" | "on_demand" => {
            "`if: false` leaves a step out; `wait: {signal: approved}` waits for a person"
        }
        _ => return None,
    };
    (key == "when").then_some(when)
}
