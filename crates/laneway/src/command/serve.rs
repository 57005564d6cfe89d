//! `laneway serve`: the API and a worker in one process, until it is told to stop.
//!
//! ```text
//!   signals ── first: streams end, requests drain, then the worker lets what runs end; second: kill
//!      │
//!      ├──▶ stop ──▶ laneway_server::serve ──┐
//!      └──▶ control ──▶ worker ──────────────┤
//!                       triggers ────────────┴──▶ store
//! ```

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use laneway_core::id::SessionId;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::role::Role;
use laneway_engine::container::Containers;
use laneway_engine::worker::{Control, Cut, Pulse, Worker};
use laneway_server::access::{Names, admin_token};
use laneway_server::callback::Reach;
use laneway_server::{App, Deadlines, Service, Tls};
use laneway_store::Store;
use laneway_store::model::NewSession;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Context;
use super::worker::{WorkArgs, tell_cut, tell_settings, why};
use crate::drive::{Interrupts, Node, Presence, REJOIN_DELAY, has_lost_its_session, may_join_later};
use crate::env;
use crate::exit::{Exit, Refusal};
use crate::firing::{Firing, Policies};
use crate::pruning::{Kept, Pruning};
use crate::settings::{ALLOWED_HOSTS, BEHIND_PROXY, LISTEN, MAX_PARALLEL, TLS_CERT, TLS_KEY, WORKER_ENABLED};

/// How long requests may take to end after it was told to stop. Those that wait for something are answered at once.
const REQUEST_GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway serve\n  laneway serve --store postgres://lane@db/lane --listen 0.0.0.0:7878 --tls-cert c.pem --tls-key k.pem\n\n\
    It prints a link to its web page, which signs in once; `laneway web` prints another one.\n\
    The first start makes a token with the role admin and keeps it in the file admin.token beside the store.\n\
    Ctrl-C ends it in good order; a second one kills what still runs."
)]
pub(crate) struct Args {
    #[arg(long, help = LISTEN.about, env = LISTEN.env, value_name = "ADDRESS", default_value = LISTEN.default)]
    listen: String,
    #[arg(long, help = WORKER_ENABLED.about, env = WORKER_ENABLED.env, value_name = "YES", default_value = WORKER_ENABLED.default, action = clap::ArgAction::Set)]
    worker_enabled: bool,
    /// Take no work: the same as --worker-enabled false
    #[arg(long)]
    no_worker: bool,
    #[arg(long, help = BEHIND_PROXY.about, env = BEHIND_PROXY.env, value_name = "YES", default_value = BEHIND_PROXY.default, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    behind_proxy: bool,
    /// A name by which it may be asked, beside localhost and the address it listens at; repeatable
    #[arg(long = "allowed-host", env = ALLOWED_HOSTS.env, value_name = "NAME", value_delimiter = ',')]
    allowed_hosts: Vec<String>,
    #[arg(long, help = TLS_CERT.about, env = TLS_CERT.env, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    #[arg(long, help = TLS_KEY.about, env = TLS_KEY.env, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    #[command(flatten)]
    work: WorkArgs,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let kept = Kept::read(&context.settings)?;
    let tls = tls(args.tls_cert.as_deref(), args.tls_key.as_deref())?;
    let wanted = resolve(&args.listen)?;
    if !wanted.ip().is_loopback() && tls.is_none() && !args.behind_proxy {
        return Err(Refusal::new(format!("{wanted} can be reached from other hosts, and the line would not be encrypted"))
            .hint("give --tls-cert and --tls-key, say --behind-proxy if something in front of it encrypts, or listen at 127.0.0.1")
            .into());
    }
    let directory = std::env::current_dir().context("the working directory cannot be read")?;
    let policies = Policies {
        max_parallel: context.settings.count(&MAX_PARALLEL)?.get(),
        defaults: context.settings.document_defaults()?,
    };
    let reach = context.settings.reach()?;
    let listener = TcpListener::bind(wanted).await.map_err(|error| {
        Refusal::new(format!("nothing can listen at {wanted}: {error}"))
            .hint("choose another address with --listen")
    })?;
    let listening = listener.local_addr().context("the address cannot be read")?;
    let name = args.work.address().unwrap_or_else(|| format!("{}:{}", env::host(), listening.port()));
    let is_worker = args.worker_enabled && !args.no_worker;
    let session = args.work.session(context, &name).await?;
    let store = context.open_to_work()?;
    let (token_file, is_new) = admin_token(store.as_ref(), &env::host(), &env::person()).await?;
    // Before it has a session, and before anybody is told that it is there: they may want it to end.
    let interrupts = Interrupts::listen()?;
    let joining = Joining { context, store: Arc::clone(&store), name: name.clone(), session, is_worker };
    let life = joining.begin().await?;
    let stop = CancellationToken::new();
    let service = Service {
        store: Arc::clone(&store),
        session: life.session(),
        max_parallel: policies.max_parallel,
        document_defaults: policies.defaults.clone(),
        directory,
        names: Names::new(listening, args.allowed_hosts),
        is_tls: tls.is_some(),
        is_behind_proxy: args.behind_proxy,
        remote: laneway_engine::remote::Terms {
            lease: context.settings.lease()?,
            kill_grace: args.work.kill_grace,
            is_alone: !is_worker,
        },
        deadlines: Deadlines::default(),
        reach: reach.clone(),
    };
    let app = service.app(stop.clone());
    let scheme = if tls.is_some() { "https" } else { "http" };
    let shown = laneway_store::shown(&context.store);
    let works = if is_worker { "takes work" } else { "takes no work" };
    context.printer.note(&format!("{name} serves {shown} and {works}"));
    let otherwise: &[(&str, &str)] = if args.no_worker { &[(WORKER_ENABLED.name, "false")] } else { &[] };
    tell_settings(context, otherwise);
    let made = if is_new { "was made" } else { "is" };
    context.printer.note(&format!("the admin token {made} in {}", token_file.display()));
    // To a person alone: what is written to a log lets nobody in.
    let link = match context.printer.is_read_by_a_person() {
        true => {
            let code = app.code(Role::Admin, &name, None).context("there are no random bytes")?;
            format!("/#code={code} (once, for an hour; `laneway web` prints another link)")
        }
        false => "; `laneway web` prints a link that signs in".to_owned(),
    };
    context.printer.note(&format!("the web page is at {scheme}://{}{link}", page(listening)));
    context.printer.line(&format!("listening at {scheme}://{listening}"))?;
    let control = Control::new();
    let working = async {
        let mut life = life;
        loop {
            let firing = Firing::begin(&store, life.session(), &policies);
            let pruning = Pruning::begin(kept, &store, life.session());
            let worker = life.worker(&args.work, &reach, context.settings.containers()?);
            let outcome = work(worker, life.pulse(), (&stop, &control)).await;
            drop((firing, pruning));
            let error = match outcome {
                // Its session lasts as long as the service, which may go on.
                Ok(cut) => return Ok((cut, Some(life))),
                Err(error) => error,
            };
            let lost = has_lost_its_session(&error).then(|| error.to_string());
            let outcome = Err(error).context("the worker could not go on");
            life.end(why(&outcome, &control)).await;
            let Some(why) = lost.filter(|_| !stop.is_cancelled()) else {
                return outcome.map(|cut| (cut, None));
            };
            context.printer.note(&format!("{name}: {why}; what it ran is killed, and it joins again"));
            match joining.begin_again(&stop).await? {
                Some(joined) => life = joined,
                None => return Ok((Vec::new(), None)),
            }
            app.rejoined(life.session());
        }
    };
    let serving = Serving { listener, app: app.clone(), tls, interrupts };
    let (cut, life) = until_told(context, serving, working, (&stop, &control)).await?;
    let outcome = Ok(cut);
    if let Some(life) = life {
        life.end(why(&outcome, &control)).await;
    }
    tell_cut(context, &outcome?);
    Ok(Exit::Succeeded)
}

/// How its node joins, and joins again.
struct Joining<'a> {
    context: &'a Context,
    store: Arc<dyn Store>,
    name: String,
    session: NewSession,
    is_worker: bool,
}

impl Joining<'_> {
    async fn begin(&self) -> anyhow::Result<Life> {
        let store = Arc::clone(&self.store);
        Ok(if self.is_worker {
            Life::Worker(Node::begin(self.context, store, self.session.clone()).await?)
        } else {
            let presence = NewSession { fires: true, ..NewSession::ephemeral(&self.name, 1) };
            Life::Presence(Presence::begin(self.context, store, presence).await?)
        })
    }

    /// Begins a new session as soon as the store can be used. `None` if it is told to stop before that.
    async fn begin_again(&self, stop: &CancellationToken) -> anyhow::Result<Option<Life>> {
        loop {
            match self.begin().await {
                Ok(life) => return Ok(Some(life)),
                Err(error) if may_join_later(&error) => {
                    tracing::warn!("the node cannot join again yet: {error:#}");
                }
                Err(error) => return Err(error),
            }
            tokio::select! {
                () = tokio::time::sleep(REJOIN_DELAY) => {}
                () = stop.cancelled() => return Ok(None),
            }
        }
    }
}

/// Works, or waits where there is no worker, until it is told to leave or its session is over.
async fn work(
    worker: Option<Worker>,
    pulse: Option<Pulse>,
    (stop, control): (&CancellationToken, &Control),
) -> Result<Vec<Cut>, laneway_engine::Error> {
    match worker {
        Some(worker) => worker.until_stopped(control.clone()).await,
        // There is nothing to wait for once it is told to leave. Without a session it can submit nothing.
        None => tokio::select! {
            () = stop.cancelled() => Ok(Vec::new()),
            lost = lost(pulse) => Err(lost),
        },
    }
}

/// In whose name it acts.
enum Life {
    Worker(Node),
    Presence(Presence),
}

impl Life {
    fn session(&self) -> SessionId {
        match self {
            Self::Worker(node) => node.session,
            Self::Presence(presence) => presence.session,
        }
    }

    fn worker(&self, args: &WorkArgs, reach: &Reach, containers: Containers) -> Option<Worker> {
        match self {
            Self::Worker(node) => Some(args.worker(node, reach, containers)),
            Self::Presence(_) => None,
        }
    }

    fn pulse(&self) -> Option<Pulse> {
        match self {
            Self::Worker(node) => node.pulse(),
            Self::Presence(presence) => presence.pulse(),
        }
    }

    async fn end(self, why: Leaving) {
        match self {
            Self::Worker(node) => node.end(why).await,
            Self::Presence(presence) => presence.end(why).await,
        }
    }
}

/// Why the session is over; never, where it needs no lease.
async fn lost(pulse: Option<Pulse>) -> laneway_engine::Error {
    match pulse {
        Some(pulse) => pulse.lost().await,
        None => std::future::pending().await,
    }
}

struct Serving {
    listener: TcpListener,
    app: App,
    tls: Option<Tls>,
    interrupts: Interrupts,
}

/// The order in which it ends: nothing new is heard, streams end, requests are answered, then the worker leaves. A worker
/// that cannot go on takes the service with it: both stand on the same session. One that was drained does not.
async fn until_told<T>(
    context: &Context,
    serving: Serving,
    working: impl Future<Output = anyhow::Result<T>>,
    (stop, control): (&CancellationToken, &Control),
) -> anyhow::Result<T> {
    let Serving { listener, app, tls, mut interrupts } = serving;
    let mut serving = std::pin::pin!(laneway_server::serve(listener, app, tls, REQUEST_GRACE));
    let mut working = std::pin::pin!(working);
    let (mut was_told, mut is_served, mut cut) = (false, false, None);
    loop {
        tokio::select! {
            () = &mut serving, if !is_served => {
                is_served = true;
                control.leave(Leaving::because(LeaveReason::Signal));
                if let Some(cut) = cut.take() {
                    return Ok(cut);
                }
            }
            ended = &mut working, if cut.is_none() => match ended {
                Ok(ended) if is_served => return Ok(ended),
                // Drained: what is asked is still answered.
                Ok(ended) => cut = Some(ended),
                Err(error) => {
                    stop.cancel();
                    if !is_served {
                        serving.await;
                    }
                    return Err(error);
                }
            },
            () = interrupts.next() => {
                if was_told {
                    context.printer.note("killing what still runs");
                    control.kill();
                } else {
                    context.printer.note("stopping: nothing new is heard or taken, what runs may end; once more kills it");
                    stop.cancel();
                }
                was_told = true;
            }
        }
    }
}

/// Where a browser of this host finds it: everywhere is no name to ask by.
fn page(listening: SocketAddr) -> String {
    if listening.ip().is_unspecified() {
        format!("localhost:{}", listening.port())
    } else {
        listening.to_string()
    }
}

fn tls(certificate: Option<&Path>, key: Option<&Path>) -> Result<Option<Tls>, Refusal> {
    match (certificate, key) {
        (Some(certificate), Some(key)) => Tls::read(certificate, key).map(Some).map_err(Refusal::new),
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(Refusal::new("there is a certificate and no key").hint("give --tls-key as well"))
        }
        (None, Some(_)) => {
            Err(Refusal::new("there is a key and no certificate").hint("give --tls-cert as well"))
        }
    }
}

fn resolve(listen: &str) -> Result<SocketAddr, Refusal> {
    let how = "write an address and a port, such as 127.0.0.1:7878 or [::1]:7878";
    let found = listen
        .to_socket_addrs()
        .map_err(|error| Refusal::new(format!("`{listen}` is no address to listen at: {error}")).hint(how))?;
    found
        .into_iter()
        .next()
        .ok_or_else(|| Refusal::new(format!("`{listen}` is no address to listen at")).hint(how))
}
