//! Why a program could not be started, in words a person can act on.
//!
//! The system answers with one number that has many meanings ("No such file" may be the program, its
//! interpreter or the working directory), so the cause is looked for after the failure, never before.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::launch::Launch;

#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("`command` is empty; its first word is the program to run")]
    Empty,
    #[error("`{program}` was not found in PATH ({path}); {}", if *beside {
        format!("a file of that name lies in the working directory: write ./{program}")
    } else {
        "install it, or write the path of the program".to_owned()
    })]
    NotInPath { program: String, path: String, beside: bool },
    #[error("there is no program {}; a relative path is taken from the working directory", path.display())]
    Missing { path: PathBuf },
    #[error("{} is not executable; chmod +x it, or run it by its interpreter", path.display())]
    NotExecutable { path: PathBuf },
    #[error("{} is a directory, not a program", path.display())]
    Directory { path: PathBuf },
    #[error("{} may not be executed: a directory above it is not accessible, or its file system is mounted noexec", path.display())]
    Denied { path: PathBuf },
    #[error("{} is not a program this system can run: a script needs a first line such as #!/bin/sh, a binary must be built for this machine", path.display())]
    Format { path: PathBuf },
    #[error("the interpreter `{}` in the first line of {} does not exist{}", interpreter.escape_debug(), path.display(), if interpreter.ends_with('\r') {
        "; the line ends in a carriage return: save the file with Unix line ends"
    } else {
        "; install it, or change the #! line"
    })]
    Interpreter { path: PathBuf, interpreter: String },
    #[error("the working directory {} does not exist; create it, or change `workdir`", path.display())]
    NoWorkdir { path: PathBuf },
    #[error("the working directory {} is not a directory", path.display())]
    WorkdirIsFile { path: PathBuf },
    #[error("the working directory {} cannot be entered: {source}", path.display())]
    Workdir { path: PathBuf, source: io::Error },
    #[error("`{}` cannot be the name of an environment variable", name.escape_debug())]
    BadVariable { name: String },
    #[error("{what} holds a NUL byte, which no program can be given")]
    Nul { what: String },
    #[error(
        "arguments and environment are too large together (a single value may have 128 KiB); pass large data in a file"
    )]
    TooLarge,
    #[error(
        "cannot start one more process: {source}; lower the number of slots, or raise the limit (ulimit -u, ulimit -n)"
    )]
    Limit { source: io::Error },
    #[error("cannot write the script file {}: {source}", path.display())]
    ScriptFile { path: PathBuf, source: io::Error },
    #[error("the path `{}` cannot be used: {source}", path.display())]
    BadPath { path: PathBuf, source: io::Error },
    #[error("no process can be started: {source}")]
    Warden { source: io::Error },
    #[error("cannot start {}: {source}", path.display())]
    Other { path: PathBuf, source: io::Error },
}

impl StartError {
    /// Whether there was no space for the script's file. That passes, and is not the step's fault.
    pub(super) fn is_for_want_of_space(&self) -> bool {
        matches!(self, Self::ScriptFile { source, .. } if source.kind() == io::ErrorKind::StorageFull)
    }
}

/// Finds the cause of a failed spawn.
pub(super) fn explain(launch: &Launch, error: io::Error) -> StartError {
    let errno = Errno::from_io_error(&error);
    match errno {
        Some(Errno::TOOBIG) => return StartError::TooLarge,
        Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
            return StartError::Limit { source: error };
        }
        Some(_) | None => {}
    }
    if let Some(trouble) = workdir_trouble(&launch.workdir) {
        return trouble;
    }
    let path = launch.program.clone();
    match (errno, std::fs::metadata(&path)) {
        (_, Err(found)) if is_absence(&found) => StartError::Missing { path },
        (_, Ok(found)) if found.is_dir() => StartError::Directory { path },
        (Some(Errno::NOENT), _) => match missing_interpreter(&path) {
            Some(interpreter) => StartError::Interpreter { path, interpreter },
            None => StartError::Other { path, source: error },
        },
        (Some(Errno::ACCESS), Ok(found)) if found.permissions().mode() & 0o111 == 0 => {
            StartError::NotExecutable { path }
        }
        (Some(Errno::ACCESS | Errno::PERM), _) => StartError::Denied { path },
        (Some(Errno::NOEXEC), _) => StartError::Format { path },
        (_, _) => StartError::Other { path, source: error },
    }
}

/// Finds the cause of a program that did not even reach the warden.
pub(super) fn explain_handing_over(launch: &Launch, error: io::Error) -> StartError {
    match Errno::from_io_error(&error) {
        Some(_) => explain(launch, error),
        None => StartError::Warden { source: error },
    }
}

/// Another process may hold the file open for writing for the moment between its fork and its exec.
pub(super) fn is_text_busy(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::TXTBSY)
}

fn workdir_trouble(path: &Path) -> Option<StartError> {
    let path = path.to_owned();
    match std::fs::metadata(&path) {
        Ok(found) if !found.is_dir() => Some(StartError::WorkdirIsFile { path }),
        Ok(_) => match rustix::fs::access(&path, rustix::fs::Access::EXEC_OK) {
            Ok(()) => None,
            Err(error) => Some(StartError::Workdir { path, source: error.into() }),
        },
        Err(error) if is_absence(&error) => Some(StartError::NoWorkdir { path }),
        Err(source) => Some(StartError::Workdir { path, source }),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR))
}

/// What a script's first line asks for, if that is not there.
fn missing_interpreter(program: &Path) -> Option<String> {
    use io::Read as _;
    let mut start = Vec::new();
    let file = std::fs::File::open(program).ok()?;
    file.take(256).read_to_end(&mut start).ok()?;
    let start = String::from_utf8_lossy(&start);
    let line = start.strip_prefix("#!")?.split('\n').next()?;
    let interpreter = line.trim_start_matches([' ', '\t']).split([' ', '\t']).next()?;
    (!Path::new(interpreter).exists()).then(|| interpreter.to_owned())
}
