//! The engine's own files of one attempt, on the host and inside: the script, what the step hands on, its secrets. Made
//! before the container and gone after it.
//!
//! No secret stands in what the container engine is told, since it tells it to everybody who asks (`docker inspect`): those that
//! are files are bound from here, and variables that hold one are set inside, by a shell.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use laneway_core::definition::{ATTEMPT_DIR, SECRETS_DIR};

use laneway_core::shell::ScriptForm;

use super::spec::Bind;
use crate::process::Program;

/// The directory of one attempt. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Stage {
    dir: PathBuf,
    has_secrets: bool,
    has_variables: bool,
}

/// What is put there.
#[derive(Debug)]
pub(super) struct Props<'a> {
    pub(super) program: &'a Program,
    /// By name, for files.
    pub(super) secrets: &'a [(String, String)],
    /// Variables that hold one.
    pub(super) variables: &'a [(&'a str, &'a str)],
    /// Who reads them inside, where that is known as a number.
    pub(super) user: Option<&'a str>,
}

impl Stage {
    /// `dir` is made anew; its parent is nobody else's to look into.
    pub(super) fn make(dir: PathBuf, props: &Props<'_>) -> io::Result<Self> {
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let outer = |name: &str| {
            fs::DirBuilder::new().mode(0o700).create(dir.join(name))?;
            io::Result::Ok(dir.join(name))
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let stage = Self {
            dir: dir.clone(),
            has_secrets: !props.secrets.is_empty(),
            has_variables: !props.variables.is_empty(),
        };
        let inside = outer("laneway")?;
        if let Program::Script { text, .. } = props.program {
            write(&inside.join("script"), text, 0o755)?;
        }
        if stage.has_variables {
            let lines =
                props.variables.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value)));
            write_secret(&inside.join("variables"), &lines.collect::<String>(), props.user)?;
        }
        if stage.has_secrets {
            let secrets = outer("secrets")?;
            for (name, value) in props.secrets {
                write_secret(&secrets.join(name), value, props.user)?;
            }
            fs::set_permissions(&secrets, Permissions::from_mode(0o755))?;
        }
        // Whoever the step runs as may hand something on. Nobody of the host gets here: the directory around it is closed.
        fs::set_permissions(&inside, Permissions::from_mode(0o777))?;
        Ok(stage)
    }

    pub(super) fn binds(&self) -> Vec<Bind> {
        let bind = |name: &str, target: &str, is_read_only| Bind {
            source: self.dir.join(name),
            target: target.to_owned(),
            is_read_only,
            follows_mounts: false,
        };
        let secrets = self.has_secrets.then(|| bind("secrets", SECRETS_DIR, true));
        [bind("laneway", ATTEMPT_DIR, false)].into_iter().chain(secrets).collect()
    }

    /// What is executed inside.
    pub(super) fn argv(&self, program: &Program) -> Vec<String> {
        let script = format!("{ATTEMPT_DIR}/script");
        let argv: Vec<String> = match program {
            Program::Command { argv } => argv.clone(),
            Program::Script { text, name, args, shell } => match shell.form(text, false) {
                ScriptForm::Text => shell.with_text(text, name, args),
                form @ (ScriptForm::File | ScriptForm::Executable) => shell.with_file(form, &script, args),
            },
        };
        if !self.has_variables {
            return argv;
        }
        let set = format!(". {ATTEMPT_DIR}/variables; exec \"$@\"");
        ["/bin/sh".to_owned(), "-c".to_owned(), set, "sh".to_owned()].into_iter().chain(argv).collect()
    }

    /// What the container sees as the directory of its attempt.
    pub(super) fn inside(&self) -> PathBuf {
        self.dir.join("laneway")
    }

    /// Where what the step hands on lies on the host.
    pub(super) fn output(&self) -> PathBuf {
        self.dir.join("laneway/output")
    }
}

/// What `$LANEWAY_OUTPUT` is inside.
pub(super) fn output_inside() -> String {
    format!("{ATTEMPT_DIR}/output")
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.dir) {
            tracing::warn!("cannot remove {}: {error}", self.dir.display());
        }
    }
}

fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    // The umask may have taken bits away.
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())
}

/// For its reader alone where that can be arranged: for root, who made it, or for a user who is known by number. Otherwise whoever
/// is in the container may read it; it is still out of sight for everybody on the host.
fn write_secret(path: &Path, text: &str, user: Option<&str>) -> io::Result<()> {
    let own = rustix::process::getuid();
    let wanted = match user.map(|user| user.split(':').next().unwrap_or(user)) {
        None | Some("root") => Some(0),
        Some(user) => user.parse::<u32>().ok(),
    };
    match wanted {
        Some(uid) if uid == own.as_raw() => write(path, text, 0o400),
        Some(uid) if own.is_root() => {
            write(path, text, 0o400)?;
            std::os::unix::fs::chown(path, Some(uid), None)
        }
        Some(_) | None => write(path, text, 0o444),
    }
}

/// As a shell reads it back, whatever is in it.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use laneway_core::shell::Shell;

    use super::*;

    #[test]
    fn the_files_of_an_attempt_are_for_it_alone_and_go_with_it() {
        let place = tempfile::tempdir().expect("tempdir");
        let dir = place.path().join("a1");
        let program = Program::Script {
            text: "echo hi".into(),
            name: "s".into(),
            args: vec!["one".into()],
            shell: Shell::Sh,
        };
        let secrets = [("db".to_owned(), "hunter2".to_owned())];
        let variables = [("TOKEN", "it's")];
        let props = Props { program: &program, secrets: &secrets, variables: &variables, user: None };
        let stage = Stage::make(dir.clone(), &props).expect("made");
        let mode = |path: &str| fs::metadata(dir.join(path)).expect(path).permissions().mode() & 0o777;
        assert_eq!((mode(""), mode("laneway"), mode("laneway/script")), (0o700, 0o777, 0o755));
        if rustix::process::getuid().is_root() {
            assert_eq!((mode("secrets/db"), mode("laneway/variables")), (0o400, 0o400));
        }
        let variables = fs::read_to_string(dir.join("laneway/variables")).expect("read");
        assert_eq!(variables, "export TOKEN='it'\\''s'\n");
        assert_eq!(
            stage.argv(&program)[..4],
            ["/bin/sh", "-c", ". /run/laneway/variables; exec \"$@\"", "sh"]
        );
        assert_eq!(stage.argv(&program)[4..], ["/bin/sh", "-e", "/run/laneway/script", "one"]);
        let under = |shell: Shell, args: &[&str]| {
            let args = args.iter().map(|arg| (*arg).to_owned()).collect();
            let program = Program::Script { text: "echo hi".into(), name: "s".into(), args, shell };
            stage.argv(&program)[4..].to_vec()
        };
        assert_eq!(under(Shell::Bash, &["one"]), ["bash", "-eo", "pipefail", "/run/laneway/script", "one"]);
        let text = Shell::Argv(vec!["ash".into(), "-c".into()]);
        assert_eq!(under(text, &["one"]), ["ash", "-c", "echo hi", "s", "one"]);
        assert_eq!(stage.binds().len(), 2);
        drop(stage);
        assert!(!dir.exists());
    }
}
