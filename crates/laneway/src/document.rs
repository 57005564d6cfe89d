//! Workflow files on their way in: reading (also from stdin), compiling with all errors at once, and the
//! parameters of a run. Decides nothing about documents itself: `laneway_core::definition` does.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use laneway_core::definition::{self, Diagnostics, Source};
use laneway_core::params;
use laneway_core::plan::Plan;
use laneway_server::callback::{Reach, check_hosts};
use serde_json::{Map, Value};

use crate::exit::Refusal;
use crate::print::Printer;

/// Larger documents are refused; one byte more is enough to know.
const MAX_BYTES: u64 = definition::MAX_BYTES as u64 + 1;

/// A document with the directory in which its steps run.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) source: Source,
    pub(crate) dir: PathBuf,
}

/// Reads a workflow file, or stdin for `-`.
pub(crate) fn read(file: &str) -> anyhow::Result<Document> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    if file == "-" {
        let bytes = bytes_of(std::io::stdin().lock()).context("stdin cannot be read")?;
        let source = Source::from_bytes("<stdin>", "stdin", bytes).map_err(Bad)?;
        return Ok(Document { source, dir: here });
    }
    let path = Path::new(file);
    let source = read_source(path, NO_DOCUMENT)?;
    let dir = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => here.join(parent),
        Some(_) | None => here,
    };
    // Without `..` and links, so that a run can be resumed from anywhere.
    let dir = dir.canonicalize().with_context(|| format!("the directory of {file} cannot be read"))?;
    Ok(Document { source, dir })
}

/// What to do where there is no such file.
const NO_DOCUMENT: &str =
    "`laneway init` writes one to begin with; `laneway start` runs a workflow that was applied, by its name";
const NO_PARAMS: &str = "-p NAME=VALUE gives a parameter without a file";

fn read_source(path: &Path, missing: &str) -> anyhow::Result<Source> {
    let file = path.display().to_string();
    let refuse = |why: String| Refusal::new(format!("{file} cannot be read: {why}"));
    if path.is_dir() {
        return Err(refuse("it is a directory".to_owned()).hint("name a file").into());
    }
    let bytes = std::fs::File::open(path).and_then(bytes_of).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Refusal::new(format!("there is no file {file}")).hint(missing),
        _ => refuse(error.to_string()),
    })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Source::from_bytes(file.clone(), stem, bytes).map_err(Bad)?)
}

fn bytes_of(file: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A document that is refused, with all of its errors.
#[derive(Debug)]
pub(crate) struct Bad(pub(crate) Diagnostics);

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.render(false).trim_end())
    }
}

impl std::error::Error for Bad {}

/// The plan of a document, or all of its errors.
pub(crate) fn compile(document: &Document) -> Result<Plan, Bad> {
    definition::compile(&document.source).map_err(Bad)
}

/// The plan of a document that somebody has at hand, whose warnings are printed. `reach` says where its callbacks may go,
/// unless a server does.
pub(crate) fn examine(
    printer: &Printer,
    document: &Document,
    files: Files,
    reach: Option<&Reach>,
) -> Result<Plan, Bad> {
    let examined = definition::examine(&document.source).map_err(Bad)?;
    printer.warnings(&examined.warnings);
    if let Some(reach) = reach {
        check_hosts(&document.source, &examined.plan.workflow, reach).map_err(Bad)?;
    }
    match files {
        Files::Shared if !examined.shared_directory.is_empty() => Err(Bad(examined.shared_directory)),
        Files::Shared | Files::Apart => Ok(examined.plan),
    }
}

/// Where the steps of a run will work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    /// All in the caller's directory.
    Shared,
    /// Each in a view of its own, or nowhere yet.
    Apart,
}

/// `-p` and `--params-file`, as every command that starts a run takes them.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ParamArgs {
    /// A parameter of the run; can be given often
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// Parameters from a YAML or JSON file with one object; `-p` wins
    #[arg(long, value_name = "FILE")]
    params_file: Option<PathBuf>,
}

impl ParamArgs {
    /// The typed parameters of a run of this plan, or everything that is wrong with them.
    pub(crate) fn bind(&self, plan: &Plan) -> anyhow::Result<Map<String, Value>> {
        let workflow = &plan.workflow;
        let mut given = match &self.params_file {
            Some(file) => definition::read_params(&read_source(file, NO_PARAMS)?).map_err(Bad)?,
            None => Map::new(),
        };
        let mut errors = Vec::new();
        let mut named = std::collections::HashSet::new();
        for pair in &self.param {
            let Some((name, text)) = pair.split_once('=') else {
                return Err(Refusal::new(format!("`-p {pair}` is not a parameter"))
                    .hint("write it as -p NAME=VALUE")
                    .into());
            };
            if !named.insert(name) {
                return Err(Refusal::new(format!("parameter `{name}` is given more than once"))
                    .hint("a list is one value: -p NAME='[1, 2]'")
                    .into());
            }
            let Some(param) = workflow.params.iter().find(|param| param.name == name) else {
                errors.push(params::unknown(workflow, name));
                continue;
            };
            match params::parse_value(param, text) {
                Ok(value) => {
                    given.insert(name.to_owned(), value);
                }
                Err(error) => {
                    // Not missing as well: it was given, and badly.
                    given.insert(name.to_owned(), Value::Null);
                    errors.push(error);
                }
            }
        }
        let bound = match params::bind(workflow, given) {
            Ok(bound) => bound,
            Err(more) => {
                let is_told = |error: &params::Error| match error {
                    params::Error::Missing { name } => self.names().any(|given| given == name),
                    params::Error::Unknown { .. }
                    | params::Error::Type { .. }
                    | params::Error::NotAllowed { .. } => false,
                };
                errors.extend(more.into_iter().filter(|error| !is_told(error)));
                Map::new()
            }
        };
        match errors.as_slice() {
            [] => Ok(bound),
            [error] => Err(Refusal::new(error.to_string()).into()),
            errors => {
                let lines: Vec<String> = errors.iter().map(|error| format!("\n  {error}")).collect();
                Err(Refusal::new(format!("{} parameters are wrong:{}", errors.len(), lines.concat())).into())
            }
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.param.iter().filter_map(|pair| Some(pair.split_once('=')?.0))
    }
}
