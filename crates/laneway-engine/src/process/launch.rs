//! From a [`Job`] to what is handed to the system: an absolute program, its arguments, its environment.
//!
//! Where a program is looked for is decided here and not left to the system, whose answer depends on
//! the platform once a working directory is given. It also keeps spawning on its fast path.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use laneway_core::shell::{ScriptForm, Shell};

use super::explain::StartError;
use super::script;
use super::{InheritEnv, Job, Program};

/// A program ready to be spawned.
#[derive(Debug)]
pub(crate) struct Launch {
    /// Absolute.
    pub(crate) program: PathBuf,
    /// What the program sees as its own name: as it was written.
    pub(crate) arg0: String,
    pub(crate) args: Vec<String>,
    /// Added to what is inherited.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The variables taken from this process; none means all of them.
    pub(crate) inherited: Option<Vec<(OsString, OsString)>>,
    /// Absolute.
    pub(crate) workdir: PathBuf,
    /// Absolute.
    pub(crate) stdin: Option<PathBuf>,
}

impl Launch {
    pub(super) fn prepare(job: &Job) -> Result<Self, StartError> {
        let workdir = absolute(&job.workdir)?;
        let mut env = Vec::with_capacity(job.env.len() + 1);
        for (name, value) in &job.env {
            check_variable(name, value)?;
            env.push((name.into(), value.into()));
        }
        // Last, because the engine reads this very file afterwards.
        env.push(("LANEWAY_OUTPUT".into(), absolute(&job.output)?.into()));
        let inherited = match &job.inherit_env {
            InheritEnv::All => None,
            InheritEnv::Only(names) => {
                Some(names.iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect())
            }
        };
        let stdin = job.stdin.as_deref().map(absolute).transpose()?;
        let mut launch = Self {
            program: PathBuf::new(),
            arg0: String::new(),
            args: Vec::new(),
            env,
            inherited,
            workdir,
            stdin,
        };
        match &job.program {
            Program::Script { text, name, args, shell } => {
                let argv = match shell.form(text, true) {
                    ScriptForm::Text => shell.with_text(text, name, args),
                    form @ (ScriptForm::File | ScriptForm::Executable) => {
                        let file = script::write(&absolute(&job.scratch)?, text)?;
                        shell.with_file(form, &file.to_string_lossy(), args)
                    }
                };
                launch.set_argv(&argv)?;
                if *shell == Shell::Sh && launch.arg0 == "/bin/sh" {
                    "sh".clone_into(&mut launch.arg0);
                }
            }
            Program::Command { argv } => {
                launch.set_argv(argv)?;
            }
        }
        for arg in std::iter::once(&launch.arg0).chain(&launch.args) {
            if arg.contains('\0') {
                return Err(StartError::Nul { what: "the script or an argument".to_owned() });
            }
        }
        Ok(launch)
    }

    fn set_argv(&mut self, argv: &[String]) -> Result<(), StartError> {
        let (first, rest) = argv.split_first().ok_or(StartError::Empty)?;
        self.program = self.find(first)?;
        self.arg0.clone_from(first);
        self.args = rest.to_vec();
        Ok(())
    }

    /// With a slash: taken from the working directory. Without: looked up in the step's own PATH.
    fn find(&self, program: &str) -> Result<PathBuf, StartError> {
        if program.is_empty() {
            return Err(StartError::Empty);
        }
        if program.contains('/') {
            return Ok(self.workdir.join(program));
        }
        let path = self.path_variable();
        let mut not_executable = None;
        for directory in std::env::split_paths(&path) {
            // An empty or relative entry means the working directory, as it would for the step itself.
            let candidate = self.workdir.join(directory).join(program);
            if !candidate.is_file() {
                continue;
            }
            if rustix::fs::access(&candidate, rustix::fs::Access::EXEC_OK).is_ok() {
                return Ok(candidate);
            }
            not_executable.get_or_insert(candidate);
        }
        Err(match not_executable {
            Some(path) => StartError::NotExecutable { path },
            None => StartError::NotInPath {
                program: program.to_owned(),
                path: path.to_string_lossy().into_owned(),
                beside: self.workdir.join(program).is_file(),
            },
        })
    }

    fn path_variable(&self) -> OsString {
        let last = |list: &[(OsString, OsString)]| {
            let found = list.iter().rev().find(|(name, _)| name == OsStr::new("PATH"));
            found.map(|(_, value)| value.clone())
        };
        last(&self.env)
            .or_else(|| match &self.inherited {
                Some(inherited) => last(inherited),
                None => std::env::var_os("PATH"),
            })
            .unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
    }
}

fn absolute(path: &Path) -> Result<PathBuf, StartError> {
    std::path::absolute(path).map_err(|source| StartError::BadPath { path: path.to_owned(), source })
}

fn check_variable(name: &str, value: &str) -> Result<(), StartError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(StartError::BadVariable { name: name.to_owned() });
    }
    if value.contains('\0') {
        return Err(StartError::Nul { what: format!("the variable {name}") });
    }
    Ok(())
}
