//! One file per command: its arguments, and what it does with them.
//! What several commands share stands one level up: reading documents, opening the store and driving runs.

pub(crate) mod advance;
pub(crate) mod apply;
pub(crate) mod artifacts;
pub(crate) mod backup;
pub(crate) mod cache;
pub(crate) mod cancel;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod effect;
pub(crate) mod effects;
pub(crate) mod elsewhere;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod files;
pub(crate) mod graph;
mod history;
pub(crate) mod init;
pub(crate) mod limit;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod migrate;
pub(crate) mod move_store;
pub(crate) mod nodes;
pub(crate) mod openapi;
pub(crate) mod pause;
pub(crate) mod plan;
pub(crate) mod pool;
pub(crate) mod prune;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod retry;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod schema;
pub(crate) mod secret;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod show;
pub(crate) mod signal;
pub(crate) mod skip;
pub(crate) mod start;
pub(crate) mod submit;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod validate;
pub(crate) mod warden;
pub(crate) mod watch;
pub(crate) mod web;
pub(crate) mod worker;
pub(crate) mod workflow;
pub(crate) mod workflows;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use laneway_core::id::RunId;
use laneway_server::access::read_admin_token;
use laneway_server::callback::Reach;
use laneway_server::client::{Client, is_on_this_host};
use laneway_store::{Open, Options, SchemaChange, Store};

use self::elsewhere::Asked;
use crate::cli::Command;
use crate::document::{self, Document, Files};
use crate::env;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::print::Printer;
use crate::settings::{DATA_DIR, LISTEN, MAX_LOST, SERVER, STORE, Settings, Source, TLS_CERT};

/// What every command gets.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) printer: Printer,
    /// As `--store` gave it.
    pub(crate) store: String,
    pub(crate) settings: Settings,
    /// The run that the command is about, if it is about one.
    pub(crate) asked: Option<Asked>,
}

impl Context {
    /// Reads a workflow file, or stdin for `-`, with what the settings add to it.
    pub(crate) fn document(&self, file: &str) -> anyhow::Result<Document> {
        let Document { source, dir } = document::read(file)?;
        Ok(Document { source: self.settings.document_defaults()?.complete(source), dir })
    }

    /// Where to look: a server if one is named, otherwise a store that must be there.
    pub(crate) fn face(&self) -> anyhow::Result<Face> {
        match self.client()? {
            Some(client) => Ok(Face::Server(client)),
            None => Ok(Face::Store(self.open()?)),
        }
    }

    /// The server to ask, with a token: the caller's own, or the one that a server on this host has made.
    pub(crate) fn client(&self) -> anyhow::Result<Option<Client>> {
        self.asked_server()?.map(|(url, _)| self.client_at(url)).transpose()
    }

    /// Where callbacks of a document may go, unless a server is asked, which has its own rule. What runs here asks none.
    pub(crate) fn reach(&self, files: Files) -> anyhow::Result<Option<Reach>> {
        if files == Files::Apart && self.asked_server()?.is_some() {
            return Ok(None);
        }
        Ok(Some(self.settings.reach()?))
    }

    /// The one rule of where a command looks: the nearest of `--store` and `--server` counts, and the server where both are as near.
    /// A flag is nearer than the environment, that than laneway.toml.
    fn asked_server(&self) -> Result<Option<(&str, Source)>, Refusal> {
        let Some((url, server)) = self.settings.get(&SERVER) else { return Ok(None) };
        let store = self.settings.get(&STORE).map_or(Source::Default, |(_, source)| source);
        if (server, store) == (Source::Flag, Source::Flag) {
            return Err(Refusal::new("--server and --store name two places to look").hint("give one of them"));
        }
        Ok((server <= store).then_some((url, server)))
    }

    /// Says that this command runs its steps here, although a server is named for other commands.
    fn tell_it_is_local(&self) {
        if let Some((url, source @ (Source::Environment | Source::File))) = self.settings.get(&SERVER) {
            let store = laneway_store::shown(&self.store);
            let named = if source == Source::File { "laneway.toml" } else { SERVER.env };
            self.printer
                .note(&format!("runs here, in {store}; the server of {named} ({url}) is for other commands"));
        }
    }

    fn client_at(&self, url: &str) -> anyhow::Result<Client> {
        let token = match env::token()? {
            Some(token) => Some(token),
            // It is this host's: nobody else is told it.
            None if is_on_this_host(url) => read_admin_token(&self.dir()?),
            None => None,
        };
        Ok(Client::new(url, token)?)
    }

    /// Where a server of this host listens, if it was told what we were told.
    fn own_server(&self) -> String {
        let listen = self.settings.get(&LISTEN).map_or(LISTEN.default, |(listen, _)| listen);
        let scheme = if self.settings.get(&TLS_CERT).is_some() { "https" } else { "http" };
        // Everywhere is no name to ask by.
        match listen.parse::<SocketAddr>() {
            Ok(at) if at.ip().is_unspecified() => format!("{scheme}://localhost:{}", at.port()),
            Ok(_) | Err(_) => format!("{scheme}://{listen}"),
        }
    }

    /// Where the store keeps its files.
    pub(crate) fn dir(&self) -> Result<PathBuf, Refusal> {
        Ok(laneway_store::data_dir(&self.store, &self.options()?))
    }

    /// Some commands work on a store and nothing else. Who names a server expects otherwise, and would not notice that another store was
    /// looked at, or made; unless a store is named as well, and at least as near.
    fn refuse_server(&self, command: &str, alone: Alone) -> Result<(), Refusal> {
        let Some((_, server)) = self.settings.get(&SERVER) else { return Ok(()) };
        let store = self.settings.get(&STORE).map_or(Source::Default, |(_, source)| source);
        let (named, hint) = match (server, alone) {
            (Source::Flag, _) => ("", "leave --server out; it works on the store that --store names"),
            (Source::Default, _) | (Source::Environment | Source::File, Alone::Node) => return Ok(()),
            (Source::Environment | Source::File, Alone::Store) if store <= server => return Ok(()),
            (Source::Environment, Alone::Store) => (
                ", and LANEWAY_SERVER names one",
                "use it where the store lies, and name that with --store; or unset LANEWAY_SERVER",
            ),
            (Source::File, Alone::Store) => {
                (", and laneway.toml names one", "use it where the store lies, and name that with --store")
            }
        };
        Err(Refusal::new(format!("`laneway {command}` does not go through a server{named}")).hint(hint))
    }

    /// Opens a store that must be there, with the schema that this program knows: looking back never makes or changes one.
    pub(crate) fn open(&self) -> anyhow::Result<Arc<dyn Store>> {
        Ok(laneway_store::open_with(&self.store, Open::Existing, &self.options()?)?)
    }

    /// What the deployment chose of the store.
    pub(crate) fn options(&self) -> Result<Options, Refusal> {
        let data_dir = self.settings.get(&DATA_DIR).map_or(DATA_DIR.default, |(dir, _)| dir);
        Ok(Options { data_dir: data_dir.into(), max_lost: self.settings.count(&MAX_LOST)?.get() })
    }

    /// Opens the store, or makes it. One that an older program has made is rejected: only processes that work migrate it.
    pub(crate) fn open_or_create(&self) -> anyhow::Result<Arc<dyn Store>> {
        Ok(self.open_telling(Open::Create)?.0)
    }

    /// Opens the store for a process that works. Makes a missing one, migrates an older one, and reports that.
    pub(crate) fn open_to_work(&self) -> anyhow::Result<Arc<dyn Store>> {
        let (store, change) = self.open_telling(Open::Migrate)?;
        match change {
            SchemaChange::Migrated { from, to } => {
                let shown = laneway_store::shown(&self.store);
                self.printer.note(&format!("migrated store {shown} from schema {from} to {to}"));
            }
            // A store that is made where none was is no news to its maker.
            SchemaChange::Unchanged { .. } | SchemaChange::Made { .. } => {}
        }
        if laneway_store::shares_dir(&self.store, store.dir()) {
            self.printer.note(&format!(
                "an earlier version made {}: its logs, artifacts and scratch files stay in {}",
                self.store,
                store.dir().display()
            ));
        }
        Ok(store)
    }

    /// A directory that is made for the store keeps itself out of version control.
    fn open_telling(&self, mode: Open) -> anyhow::Result<(Arc<dyn Store>, SchemaChange)> {
        let path = self.store.strip_prefix("sqlite://").unwrap_or(&self.store);
        if !path.contains("://")
            && let Some(dir) = Path::new(path).parent()
            && !dir.as_os_str().is_empty()
            && !dir.exists()
        {
            let unusable = |error: std::io::Error| match error.kind() {
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                    let why = format!("the store's directory cannot be made: {error}");
                    laneway_store::Error::ReadOnly { path: dir.to_owned(), why }
                }
                std::io::ErrorKind::StorageFull => laneway_store::Error::Full { path: dir.to_owned() },
                _ => laneway_store::Error::Io {
                    path: dir.to_owned(),
                    why: format!("the store's directory cannot be made: {error}"),
                },
            };
            laneway_store::private::create_dir_all(dir).map_err(unusable)?;
            laneway_store::private::write(&dir.join(".gitignore"), b"*\n").map_err(unusable)?;
        }
        Ok(laneway_store::open_telling(&self.store, mode, &self.options()?)?)
    }

    /// Opens the store and finds the run that RUN names.
    pub(crate) async fn find(&self, name: &str) -> anyhow::Result<(Arc<dyn Store>, RunId)> {
        let store = self.open()?;
        let run = store.find_run(name).await?;
        Ok((store, run))
    }
}

/// Why a command does not go through a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alone {
    /// It executes steps, here: a server that is named for other commands is none of its business.
    Node,
    /// What it looks at or changes is the store's.
    Store,
}

pub(crate) async fn dispatch(context: &Context, command: Command) -> anyhow::Result<Exit> {
    let Some(asked) = &context.asked else { return execute(context, command).await };
    elsewhere::note_newer(context, asked).await;
    match execute(context, command).await {
        Ok(exit) => Ok(exit),
        Err(error) => Err(elsewhere::point_here(context, asked, error).await),
    }
}

async fn execute(context: &Context, command: Command) -> anyhow::Result<Exit> {
    let alone = match &command {
        Command::Run(_) => Some(("run", Alone::Node)),
        Command::Worker(_) => Some(("worker", Alone::Node)),
        Command::Serve(_) => Some(("serve", Alone::Node)),
        Command::Replay(_) => Some(("replay", Alone::Store)),
        Command::Doctor(_) => Some(("doctor", Alone::Store)),
        Command::Backup(_) => Some(("backup", Alone::Store)),
        Command::Restore(_) => Some(("restore", Alone::Store)),
        Command::Migrate(_) => Some(("migrate", Alone::Store)),
        Command::Move(_) => Some(("move", Alone::Store)),
        Command::Prune(_) => Some(("prune", Alone::Store)),
        Command::Validate(_)
        | Command::Apply(_)
        | Command::Schedule(_)
        | Command::Plan(_)
        | Command::Graph(_)
        | Command::Schema(_)
        | Command::Openapi(_)
        | Command::Workflow(_)
        | Command::Workflows(_)
        | Command::Start(_)
        | Command::Submit(_)
        | Command::Token(_)
        | Command::Secret(_)
        | Command::Web(_)
        | Command::Nodes(_)
        | Command::Pool(_)
        | Command::Drain(_)
        | Command::Limit(_)
        | Command::Advance(_)
        | Command::Cache(_)
        | Command::Pause(_)
        | Command::Resume(_)
        | Command::Runs(_)
        | Command::Artifacts(_)
        | Command::Files(_)
        | Command::Show(_)
        | Command::Logs(_)
        | Command::Events(_)
        | Command::Explain(_)
        | Command::Cancel(_)
        | Command::Retry(_)
        | Command::Signal(_)
        | Command::Effects(_)
        | Command::Effect(_)
        | Command::Skip(_)
        | Command::Settings(_)
        | Command::Complete(_)
        | Command::Completions(_)
        | Command::Init(_)
        | Command::Man(_)
        | Command::Top(_)
        | Command::Watch(_) => None,
    };
    if let Some((name, alone)) = alone {
        context.refuse_server(name, alone)?;
    }
    match command {
        Command::Run(args) => {
            context.tell_it_is_local();
            run::execute(context, args).await
        }
        Command::Validate(args) => validate::execute(context, args),
        Command::Plan(args) => plan::execute(context, args),
        Command::Graph(args) => graph::execute(context, args),
        Command::Schema(args) => schema::execute(context, args),
        Command::Settings(args) => settings::execute(context, args),
        Command::Apply(args) => apply::execute(context, args).await,
        Command::Workflow(args) => workflow::execute(context, args).await,
        Command::Workflows(args) => workflows::execute(context, args).await,
        Command::Start(args) => start::execute(context, args).await,
        Command::Submit(args) => submit::execute(context, args).await,
        Command::Worker(args) => worker::execute(context, args).await,
        Command::Serve(args) => serve::execute(context, args).await,
        Command::Token(args) => token::execute(context, args).await,
        Command::Web(args) => web::execute(context, args).await,
        Command::Openapi(args) => openapi::execute(context, args),
        Command::Nodes(args) => nodes::execute(context, args).await,
        Command::Drain(args) => nodes::drain(context, args).await,
        Command::Pool(args) => pool::execute(context, args).await,
        Command::Secret(args) => secret::execute(context, args).await,
        Command::Limit(args) => limit::execute(context, args).await,
        Command::Advance(args) => advance::execute(context, args).await,
        Command::Cache(args) => cache::execute(context, args).await,
        Command::Pause(args) => pause::execute(context, args).await,
        Command::Resume(args) => pause::resume(context, args).await,
        Command::Schedule(args) => schedule::execute(context, args).await,
        Command::Runs(args) => runs::execute(context, args).await,
        Command::Show(args) => show::execute(context, args).await,
        Command::Logs(args) => logs::execute(context, args).await,
        Command::Artifacts(args) => artifacts::execute(context, args).await,
        Command::Files(args) => files::execute(context, args).await,
        Command::Events(args) => events::execute(context, args).await,
        Command::Explain(args) => explain::execute(context, args).await,
        Command::Cancel(args) => cancel::execute(context, args).await,
        Command::Retry(args) => retry::execute(context, args).await,
        Command::Signal(args) => signal::execute(context, args).await,
        Command::Effects(args) => effects::execute(context, args).await,
        Command::Skip(args) => skip::execute(context, args).await,
        Command::Replay(args) => replay::execute(context, args).await,
        Command::Doctor(args) => doctor::execute(context, args).await,
        Command::Prune(args) => prune::execute(context, args).await,
        Command::Backup(args) => backup::execute(context, args).await,
        Command::Restore(args) => restore::execute(context, &args),
        Command::Migrate(args) => migrate::execute(context, &args),
        Command::Move(args) => move_store::execute(context, args).await,
        Command::Init(args) => init::execute(context, &args),
        Command::Man(args) => man::execute(context, &args),
        Command::Top(args) => top::execute(context, args).await,
        Command::Watch(args) => watch::execute(context, args).await,
        Command::Complete(args) => complete::execute(context, args).await,
        Command::Completions(args) => completions::execute(context, args),
        // Before there is a runtime, in lib.rs.
        Command::Effect(_) => unreachable!("it has ended before there was a runtime"),
    }
}

/// Writes to a file that a person named, or to stdout.
fn write_to(context: &Context, path: Option<&Path>, text: &str) -> anyhow::Result<()> {
    match path {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
        }
        None => context.printer.text(text),
    }
}
