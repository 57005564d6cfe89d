//! What is run, with which environment, and how it is told that it cannot be.

use std::os::unix::fs::PermissionsExt as _;

use laneway_engine::process::{InheritEnv, Job, Outcome, Program};

use crate::support::{Bench, run};

async fn refusal(job: Job) -> String {
    let laneway_engine::log::Target::File(log) = job.log.clone() else { panic!("logs of these are files") };
    match run(job).await.outcome {
        Outcome::StartFailed(why) => {
            assert!(!log.exists());
            why
        }
        other => panic!("it should not start: {other:?}"),
    }
}

fn write(path: &std::path::Path, text: &str, mode: u32) {
    std::fs::write(path, text).expect("write");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
}

#[tokio::test]
async fn a_program_that_is_not_in_path_says_where_it_was_looked_for() {
    let bench = Bench::new();
    let mut job = bench.command(&["no-such-program"]);
    job.env = vec![("PATH".to_owned(), "/bin:/opt/none".to_owned())];
    assert_eq!(
        refusal(job.clone()).await,
        "`no-such-program` was not found in PATH (/bin:/opt/none); install it, or write the path of the program"
    );
    write(&bench.path("work/no-such-program"), "", 0o755);
    let why = refusal(job).await;
    assert!(why.ends_with("lies in the working directory: write ./no-such-program"), "{why}");
}

#[tokio::test]
async fn a_program_that_cannot_be_started_says_why() {
    let bench = Bench::new();
    let work = bench.path("work");
    write(&work.join("plain"), "#!/bin/sh\n", 0o644);
    write(&work.join("crlf"), "#!/bin/sh\r\n", 0o755);
    write(&work.join("lost"), "#! /no/such/interpreter -x\n", 0o755);
    write(&work.join("text"), "just text", 0o755);
    for (program, expected) in [
        ("./missing", "there is no program"),
        ("plain/below", "there is no program"),
        ("./plain", "is not executable; chmod +x it"),
        ("./crlf", "save the file with Unix line ends"),
        ("./lost", "the interpreter `/no/such/interpreter` in the first line"),
        ("./text", "is not a program this system can run"),
        ("/", "is a directory"),
        ("", "`command` is empty"),
    ] {
        let why = refusal(bench.command(&[program])).await;
        assert!(why.contains(expected), "{program}: {why}");
    }
    let mut job = bench.command(&["plain"]);
    job.env = vec![("PATH".to_owned(), work.to_string_lossy().into_owned())];
    assert!(refusal(job).await.contains("is not executable"));
    assert!(refusal(bench.command(&[])).await.contains("`command` is empty"));
}

#[tokio::test]
async fn a_working_directory_that_cannot_be_used_is_named() {
    let bench = Bench::new();
    std::fs::write(bench.path("file"), "").expect("write");
    for (name, expected) in
        [("none", "none does not exist; create it, or change `workdir`"), ("file", "file is not a directory")]
    {
        for mut job in [bench.script(":"), bench.command(&["true"])] {
            job.workdir = bench.path(name);
            let why = refusal(job).await;
            assert!(why.starts_with("the working directory") && why.contains(expected), "{why}");
        }
    }
}

#[tokio::test]
async fn what_no_program_can_be_given_is_refused() {
    let bench = Bench::new();
    assert!(refusal(bench.script("echo \0")).await.contains("NUL"));
    assert!(refusal(bench.command(&["true", "a\0b"])).await.contains("NUL"));
    for (name, value, expected) in [
        ("", "x", "cannot be the name"),
        ("A=B", "x", "`A=B` cannot be the name"),
        ("A", "x\0", "the variable A holds a NUL"),
    ] {
        let mut job = bench.script(":");
        job.env = vec![(name.to_owned(), value.to_owned())];
        let why = refusal(job).await;
        assert!(why.contains(expected), "{why}");
    }
    let mut job = bench.script(":");
    job.env = vec![("BIG".to_owned(), "x".repeat(200 * 1024))];
    assert!(refusal(job).await.contains("pass large data in a file"));
}

#[tokio::test]
async fn a_relative_program_is_taken_from_the_working_directory() {
    let bench = Bench::new();
    write(&bench.path("work/tool"), "#!/bin/sh\necho \"tool $* in $(pwd)\"\n", 0o755);
    let work = std::fs::canonicalize(bench.path("work")).expect("exists");
    let ending = run(bench.command(&["./tool", "a b", "$HOME"])).await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    assert_eq!(bench.stdout(), format!("tool a b $HOME in {}\n", work.display()));

    std::fs::create_dir(bench.path("work/bin")).expect("mkdir");
    std::fs::rename(bench.path("work/tool"), bench.path("work/bin/tool")).expect("rename");
    let mut job = bench.command(&["tool"]);
    job.env = vec![("PATH".to_owned(), "bin:/usr/bin:/bin".to_owned())];
    assert_eq!(run(job).await.outcome, Outcome::Exited(0));
}

#[tokio::test]
async fn a_script_gets_its_name_and_arguments_as_they_are() {
    let bench = Bench::new();
    let args = vec!["a b".to_owned(), "$(echo no)".to_owned(), "'".to_owned(), String::new()];
    let script = |text: &str| {
        bench.job(Program::Script {
            text: text.to_owned(),
            name: "fetch".to_owned(),
            args: args.clone(),
            shell: laneway_core::shell::Shell::Sh,
        })
    };
    let text = "printf '<%s>' \"$0\" \"$@\"; echo";
    assert_eq!(run(script(text)).await.outcome, Outcome::Exited(0));
    assert_eq!(bench.stdout(), "<fetch><a b><$(echo no)><'><>\n");

    let shebang = "#!/bin/sh\nprintf '<%s>' \"$@\"; echo";
    assert_eq!(run(script(shebang)).await.outcome, Outcome::Exited(0));
    assert_eq!(bench.stdout(), "<a b><$(echo no)><'><>\n");

    let large =
        format!("{text_only}\n{}", "#".repeat(200 * 1024), text_only = "printf '<%s>' \"$@\"; echo; false");
    assert_eq!(run(script(&large)).await.outcome, Outcome::Exited(1));
    assert_eq!(bench.stdout(), "<a b><$(echo no)><'><>\n");
}

#[tokio::test]
async fn a_script_that_looks_like_an_option_is_a_script() {
    let bench = Bench::new();
    for text in ["-x() { echo ran; }; -x", "+x() { echo ran; }; +x"] {
        // Whether the shell likes such a name is its own affair; it must not read it as an option.
        let ending = run(bench.script(text)).await;
        let told = bench.stdout() + &bench.printed(laneway_engine::log::Stream::Stderr);
        assert!(!told.contains("llegal option") && !told.contains("nvalid option"), "{told}");
        assert!(!told.is_empty(), "{ending:?}");
    }
}

#[tokio::test]
async fn a_shebang_names_the_interpreter_and_fresh_scripts_start_at_once() {
    let bench = Bench::new();
    let ending = run(bench.script("#!/usr/bin/awk -f\nBEGIN { print \"from awk\"; exit 4 }\n")).await;
    assert_eq!(ending.outcome, Outcome::Exited(4));
    assert_eq!(bench.stdout(), "from awk\n");
    assert!(refusal_of_lost_interpreter(&bench).await.contains("`/no/such`"));
}

async fn refusal_of_lost_interpreter(bench: &Bench) -> String {
    let mut job = bench.script("#!/no/such\n");
    job.log = bench.path("other-log").into();
    refusal(job).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn new_script_files_can_be_executed_while_other_threads_spawn() {
    let benches: Vec<Bench> = (0..150).map(|_| Bench::new()).collect();
    let tasks: Vec<_> = benches
        .iter()
        .enumerate()
        .map(|(index, bench)| tokio::spawn(run(bench.script(&format!("#!/bin/sh\nexit {}", index % 100)))))
        .collect();
    for (index, task) in tasks.into_iter().enumerate() {
        let code = i32::try_from(index % 100).expect("small");
        assert_eq!(task.await.expect("no panic").outcome, Outcome::Exited(code));
    }
}

#[tokio::test]
async fn the_steps_own_environment_wins_over_what_is_inherited() {
    let bench = Bench::new();
    let mut job = bench.command(&["env"]);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    job.env = vec![pair("HOME", "/mine"), pair("A", "1"), pair("A", "2"), pair("LANEWAY_OUTPUT", "x")];
    let path = format!("PATH={}", std::env::var("PATH").expect("tests have a PATH"));
    let own = ["A=2", "HOME=/mine", &format!("LANEWAY_OUTPUT={}", bench.path("output").display())];

    let ending = run(job.clone()).await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    let printed = bench.stdout();
    for expected in own.iter().chain([&path.as_str()]) {
        let count = printed.lines().filter(|line| line == expected).count();
        assert_eq!(count, 1, "{expected} in {printed}");
    }

    let sorted = |printed: String| {
        let (marks, mut lines): (Vec<_>, Vec<_>) =
            printed.lines().map(str::to_owned).partition(|line| line.starts_with("LANEWAY_MARK="));
        assert_eq!(marks.len(), 1);
        lines.sort();
        lines
    };
    job.inherit_env = InheritEnv::Only(vec!["PATH".to_owned(), "NOT_SET_ANYWHERE".to_owned()]);
    run(job.clone()).await;
    assert_eq!(sorted(bench.stdout()), [own[0], own[1], own[2], &path]);

    // Without any PATH a program is still found where programs are.
    job.inherit_env = InheritEnv::Only(Vec::new());
    run(job).await;
    assert_eq!(sorted(bench.stdout()), own);
}

#[tokio::test]
async fn stdin_is_empty() {
    let bench = Bench::new();
    assert_eq!(run(bench.script("cat; exit 3")).await.outcome, Outcome::Exited(3));
}
