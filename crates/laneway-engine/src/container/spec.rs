//! How a container is made: from what the document says to what the engine is asked for. Pure; owns the defaults that hold for
//! every container, be it a step's own or one of a pool.

use std::collections::HashMap;
use std::path::PathBuf;

use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountBindOptions,
    MountBindOptionsPropagationEnum, MountType,
};
use laneway_core::definition::Container;

use super::docker::variables;

/// Everything about one container that its document does not say.
#[derive(Debug, Clone, Default)]
pub struct Spec {
    pub settings: Container,
    /// What is executed; empty is what the image says itself.
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    pub workdir: Option<String>,
    pub binds: Vec<Bind>,
    pub labels: HashMap<String, String>,
}

/// A place of the host that is seen inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    pub source: PathBuf,
    pub target: String,
    pub is_read_only: bool,
    /// What is mounted below it on the host later on is seen inside as well.
    pub follows_mounts: bool,
}

impl Spec {
    /// What every container has: no new privileges, no capabilities, an init that reaps and forwards signals, no log of the
    /// engine's own (ours is capped, and the engine's disk is not a step's to fill), and no restart.
    pub fn body(&self) -> ContainerCreateBody {
        let Self { settings, argv, env, workdir, binds, labels } = self;
        let whole = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let memory = settings.memory.map(whole);
        let host_config = HostConfig {
            init: Some(true),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            cap_drop: Some(vec!["ALL".to_owned()]),
            privileged: Some(false),
            log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
            memory,
            // The same: what is beyond it is not to be swapped.
            memory_swap: memory,
            nano_cpus: settings.cpus_milli.map(|milli| i64::from(milli.get()) * 1_000_000),
            pids_limit: settings.pids.map(|pids| i64::from(pids.get())),
            network_mode: settings.network.clone(),
            readonly_rootfs: Some(settings.is_read_only),
            tmpfs: settings.is_read_only.then(|| HashMap::from([("/tmp".to_owned(), String::new())])),
            mounts: Some(binds.iter().map(mount).collect()),
            ..Default::default()
        };
        let (entrypoint, cmd) = match argv.split_first() {
            Some((program, args)) => (Some(vec![program.clone()]), Some(args.to_vec())),
            None => (None, None),
        };
        ContainerCreateBody {
            image: Some(settings.image.clone()),
            entrypoint,
            cmd,
            env: Some(variables(env)),
            working_dir: workdir.clone(),
            user: settings.user.clone(),
            labels: Some(labels.clone()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            host_config: Some(host_config),
            ..Default::default()
        }
    }
}

fn mount(bind: &Bind) -> Mount {
    let propagation = bind.follows_mounts.then_some(MountBindOptionsPropagationEnum::RSLAVE);
    Mount {
        typ: Some(MountType::BIND),
        source: Some(bind.source.to_string_lossy().into_owned()),
        target: Some(bind.target.clone()),
        read_only: Some(bind.is_read_only),
        bind_options: propagation
            .map(|propagation| MountBindOptions { propagation: Some(propagation), ..Default::default() }),
        ..Default::default()
    }
}
