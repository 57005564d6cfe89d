//! What a container is made of: limits, rights, mounts, secrets.

use std::num::NonZeroU32;

use laneway_core::definition::Mount;
use laneway_engine::container::HostMounts;
use laneway_engine::log::Stream;
use laneway_engine::process::Outcome;
use laneway_engine::secret::Masks;

use crate::support::Bench;

#[tokio::test]
async fn a_container_has_no_rights_beyond_its_own_and_the_limits_that_were_asked_for() {
    let bench = Bench::new();
    let mut job = bench.script(
        "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; id -u; id -g; ls /sys/class/net; \
         touch /denied 2>/dev/null || echo read-only; touch /tmp/fine && echo writable; : > begun; while [ ! -e go ]; do sleep 0.1; done",
    );
    job.settings.user = Some("0:12".to_owned());
    job.settings.network = Some("none".to_owned());
    job.settings.is_read_only = true;
    job.settings.memory = Some(64 << 20);
    job.settings.cpus_milli = NonZeroU32::new(500);
    job.settings.pids = NonZeroU32::new(40);
    let name = job.name.clone();
    let (_, ending) = bench.begin(job);
    bench.made("begun").await;
    let found = bench.docker.inspect(&name).await.expect("it is there");
    std::fs::write(bench.path("work/go"), "").expect("written");
    assert_eq!(ending.await.outcome, Outcome::Exited(0));
    let host = found.host_config.expect("settings");
    assert_eq!((host.memory, host.nano_cpus, host.pids_limit), (Some(64 << 20), Some(500_000_000), Some(40)));
    assert_eq!(host.init, Some(true));
    let labels = found.config.and_then(|config| config.labels).expect("labels");
    assert_eq!(labels["laneway.test"], name);
    let lines = bench.stdout();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[..6], ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "0", "12", "lo", "read-only"]);
    assert_eq!(lines[6..], ["writable"]);
}

#[tokio::test]
async fn secrets_reach_the_step_and_nobody_who_asks_the_engine() {
    let bench = Bench::new();
    let secret = "hunter2-very-secret";
    let mut job = bench.script(
        "cat /run/secrets/db; echo; stat -c '%a %n' /run/secrets/db; echo \"$TOKEN ${#TOKEN}\"; \
         echo \"length=${#TOKEN}\" > \"$LANEWAY_OUTPUT\"; touch /run/secrets/x 2>/dev/null || echo read-only; \
         : > begun; while [ ! -e go ]; do sleep 0.1; done",
    );
    job.secrets = vec![("db".to_owned(), secret.to_owned())];
    job.env = vec![("TOKEN".to_owned(), format!("a'{secret}")), ("PLAIN".to_owned(), "seen".to_owned())];
    job.masks = Masks::of([secret]);
    let name = job.name.clone();
    let (_, ending) = bench.begin(job);
    bench.made("begun").await;
    let found = bench.docker.inspect(&name).await.expect("it is there");
    let told = serde_json::to_string(&found).expect("JSON");
    assert!(told.contains("PLAIN=seen") && !told.contains("hunter2"), "{told}");
    std::fs::write(bench.path("work/go"), "").expect("written");
    let ending = ending.await;
    assert_eq!(ending.outcome, Outcome::Exited(0), "{}", bench.printed(Stream::Stderr));
    assert_eq!(ending.output.expect("values")["length"], (secret.len() + 2).to_string());
    let mode = if rustix::process::getuid().is_root() { "400" } else { "444" };
    assert_eq!(
        bench.stdout(),
        format!("***\n{mode} /run/secrets/db\na'*** {}\nread-only\n", secret.len() + 2)
    );
    assert!(!bench.path("stage").exists(), "no secret stays on the disk");
}

#[tokio::test]
async fn mounts_are_seen_inside_and_only_where_they_may_be() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("work/data")).expect("made");
    std::fs::write(bench.path("work/data/x"), "within\n").expect("written");
    std::fs::create_dir(bench.path("host")).expect("made");
    let mount = |source: &str, target: &str, is_read_only| Mount {
        source: source.to_owned(),
        target: target.to_owned(),
        is_read_only,
    };
    let host = bench.path("host").to_string_lossy().into_owned();
    let mut job = bench.script("cat /data/x; touch /data/y 2>/dev/null || echo read-only; echo out > /out/z");
    job.settings.mounts = vec![mount("./data", "/data", true), mount(&host, "/out", false)];
    let mut denied = job.clone();
    assert_eq!(bench.run(job).await.outcome, Outcome::Exited(0));
    assert_eq!(bench.stdout(), "within\nread-only\n");
    assert_eq!(std::fs::read_to_string(bench.path("host/z")).expect("made"), "out\n");

    denied.host_mounts = HostMounts::Below(Vec::new());
    let Outcome::StartFailed(told) = bench.run(denied).await.outcome else { panic!("it is not allowed") };
    assert!(told.contains("`allow_mounts`"), "{told}");

    let socket = bench.docker.socket().expect("a socket").to_owned();
    let above = std::path::Path::new(&socket).parent().expect("a directory").to_string_lossy().into_owned();
    for source in [socket, above] {
        let mut job = bench.script("true");
        job.settings.mounts = vec![mount(&source, "/engine", true)];
        let Outcome::StartFailed(told) = bench.run(job).await.outcome else { panic!("{source} is mounted") };
        assert!(told.contains("the container engine would be within reach"), "{told}");
    }
}
