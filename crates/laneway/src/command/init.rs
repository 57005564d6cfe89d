//! `laneway init`: a first workflow to run, to look at and to change. Never writes over anything.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;

use super::Context;
use crate::exit::{Exit, Refusal};

/// What it is called, and what is in it.
const FILE: &str = "hello.yaml";
const TEXT: &str = include_str!("init/hello.yaml");

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway init demo\n  laneway run demo/hello.yaml\n\n\
    One file is written, hello.yaml, which explains itself. A file of that name that is there is left as it is.")]
pub(crate) struct Args {
    /// Where; it is made if it is not there
    #[arg(default_value = ".")]
    dir: PathBuf,
}

pub(crate) fn execute(context: &Context, args: &Args) -> anyhow::Result<Exit> {
    let path = match args.dir.as_os_str() {
        dir if dir == "." => PathBuf::from(FILE),
        _ => args.dir.join(FILE),
    };
    std::fs::create_dir_all(&args.dir)
        .with_context(|| format!("the directory {} cannot be made", args.dir.display()))?;
    // One call that makes it or fails: what appears in between is not written over either.
    let mut file = match std::fs::File::create_new(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Refusal::new(format!("{} is there already", path.display()))
                .hint(format!("`laneway run {}` runs it; `laneway init DIR` writes elsewhere", shown(&path)))
                .into());
        }
        Err(error) => return Err(error).with_context(|| format!("{} cannot be written", path.display())),
    };
    file.write_all(TEXT.as_bytes()).with_context(|| format!("{} cannot be written", path.display()))?;
    let palette = context.printer.out_palette();
    let file = shown(&path);
    let mut out = format!("wrote {file}\n\nnext:\n");
    for (command, about) in [
        (format!("laneway run {file}"), "run it and watch"),
        (format!("laneway plan {file}"), "see what runs side by side"),
        ("laneway show last".to_owned(), "what became of it"),
        ("laneway logs last".to_owned(), "what its steps printed"),
        ("laneway top".to_owned(), "all of that on one screen"),
    ] {
        let blanks = " ".repeat(28_usize.saturating_sub(command.chars().count()).max(1));
        out.push_str(&format!("  {}{blanks}{}\n", palette.cyan(&command), palette.dim(about)));
    }
    context.printer.text(&out)?;
    Ok(Exit::Succeeded)
}

/// So that it can be typed: quoted if a shell would take it apart.
fn shown(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    let is_plain = |char: char| char.is_alphanumeric() || "/._-+@%".contains(char);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
