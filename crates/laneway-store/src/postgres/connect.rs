//! Connections: what each of them is told at its start, the pool, and a first look that says in
//! clear words what is not as it must be.
//!
//! Timeouts are given along with the start of a connection. A pooler in front of the server that
//! hands out connections by the transaction refuses that, or drops it in silence; either way the
//! first look notices, and the store keeps to what such a pooler can do (`link.rs`).

use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, QueueMode, RecyclingMethod, Runtime, TimeoutType,
};
use laneway_core::id::InstanceId;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use uuid::Uuid;

use super::address::Address;
use super::fault::{self, Failure};
use super::migrate::{self, Found, Migrated};
use super::tls;
use crate::error::{Error, Result};
use crate::{Open, SchemaChange};

/// The oldest server that is tested with.
const OLDEST: u32 = 15;

/// Connections of one process. Verbs are short; more of them would only wait for each other in the
/// database.
const CONNECTIONS: usize = 16;

/// How long a verb waits for a connection before it says so.
const PATIENCE: Duration = Duration::from_secs(20);

/// What every connection of ours is told at its start. A statement that takes half a minute is one
/// that hangs. A node that freezes in the middle of a transaction, or vanishes without a word,
/// holds the locks of runs and keys: three seconds at most. A transaction that was ended for that
/// runs again (`fault.rs`). Every statement has its index; a planner that does not know yet how a
/// table has grown since it was empty would read all of it instead, and once a plan is kept it
/// stays. Plans are kept from the start: to plan anew takes longer than most statements take.
/// `laneway.session` is nobody's setting: where it cannot be read back, somebody stands between us
/// and the server. The same stands in `begin_read_shared` and `begin_write_shared`.
const OPTIONS: &str = "-c statement_timeout=30s -c idle_in_transaction_session_timeout=3s \
    -c tcp_user_timeout=10s -c tcp_keepalives_idle=10 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3 \
    -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c jit=off \
    -c plan_cache_mode=force_generic_plan -c laneway.session=ours";

/// Whether what is set or prepared on a connection is still there with the next transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Session {
    Ours,
    /// A pooler hands out the server's connections by the transaction.
    Shared,
}

/// How to connect, as far as a first look could tell.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) address: Address,
    pub(super) session: Session,
    config: Config,
    tls: Tls,
}

#[derive(Clone)]
struct Tls(MakeRustlsConnect);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

pub(super) type Line =
    Connection<Socket, <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<Socket>>::Stream>;

impl Target {
    /// Looks at the server and the store on it, making or migrating that if asked.
    ///
    /// `may_be_half_moved`: also one that a move has not finished.
    pub(super) async fn prepare(
        address: Address,
        mode: Open,
        may_be_half_moved: bool,
    ) -> Result<(Self, InstanceId, SchemaChange)> {
        let tls = Tls(tls::connector(&address.trust)?);
        let mut config = address.config.clone();
        if address.config.get_hosts().len() > 1 {
            // Scheduling state is never read from a replica.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let plain = config.clone();
        // What the URL says comes last, and wins.
        let options = [OPTIONS, address.config.get_options().unwrap_or_default()].join(" ");
        config.options(options.trim_end());
        let mut target = Self { address, session: Session::Ours, config, tls };
        let mut client = match target.dial().await {
            Err(error) if has_refused_options(&error) => {
                target.config = target.without_options(plain)?;
                target.session = Session::Shared;
                target.dial().await
            }
            dialled => dialled,
        }
        .map_err(|error| fault::explain_connect(&error, &target.address))?;
        let (instance, change) = target.examine(&mut client, mode).await?;
        if !may_be_half_moved
            && migrate::is_half_moved(&client)
                .await
                .map_err(|error| fault::explain(&error, &target.address))?
        {
            return Err(Error::HalfMoved { path: target.address.path() });
        }
        Ok((target, instance, change))
    }

    async fn examine(&mut self, client: &mut Client, mode: Open) -> Result<(InstanceId, SchemaChange)> {
        let tell = |error: tokio_postgres::Error| fault::explain(&error, &self.address);
        let server = migrate::look(client).await.map_err(tell)?;
        if server.number < i64::from(OLDEST) * 10_000 {
            let (address, found) = (self.address.shown.clone(), server.version);
            return Err(Error::OldPostgres { address, found, wanted: OLDEST });
        }
        if server.session != "ours" {
            self.session = Session::Shared;
        }
        let path = self.address.path();
        let change = match server.found {
            Found::Nowhere => {
                let why = "no schema of this connection's search_path is there; make one with CREATE SCHEMA";
                return Err(Error::Address { why: why.to_owned() });
            }
            Found::Foreign => return Err(Error::NotAStore { path }),
            Found::Store { schema } if schema > migrate::KNOWN => {
                return Err(Error::Newer { path, found: schema, known: migrate::KNOWN });
            }
            Found::Store { schema } if schema == migrate::KNOWN => SchemaChange::Unchanged { schema },
            Found::Store { schema } if mode != Open::Migrate => {
                return Err(Error::NeedsMigration { path, found: schema, known: migrate::KNOWN });
            }
            Found::Empty if mode == Open::Existing => return Err(Error::Missing { path }),
            Found::Store { .. } | Found::Empty => match migrate::migrate(client, migrate::MIGRATIONS).await {
                Ok(Migrated::From(schema)) => SchemaChange::between(schema, migrate::KNOWN),
                Ok(Migrated::OlderLive(nodes)) => return Err(Error::OlderLives { path, nodes }),
                Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
                    let found = server.found.schema();
                    let (known, why) = (migrate::KNOWN, fault::words(&error));
                    return Err(Error::MayNotMigrate { path, found, known, why });
                }
                Err(error) => return Err(tell(error)),
            },
        };
        let text = migrate::instance(client).await.map_err(tell)?;
        let uuid = Uuid::try_parse(&text)
            .map_err(|error| Error::Unreadable { what: "instance id".to_owned(), why: error.to_string() })?;
        Ok((InstanceId::new(uuid), change))
    }

    /// Where the schema stands in the URL it must not be lost in silence.
    fn without_options(&self, plain: Config) -> Result<Config> {
        if self.address.config.get_options().is_some() {
            let why = "a pooler in front of Postgres refuses `options` of the URL; set what they say for the role, with \
                       ALTER ROLE … SET, and leave them out";
            return Err(Error::Address { why: why.to_owned() });
        }
        Ok(plain)
    }

    /// A connection that is driven by a task of its own, for a first look or for a move.
    pub(super) async fn dial(&self) -> Result<Client, tokio_postgres::Error> {
        let (client, line) = self.config.connect(self.tls.0.clone()).await?;
        tokio::spawn(line);
        Ok(client)
    }

    /// The connection that listens, which an operator can tell from the others. What it says itself
    /// are hints, which need not be on disk.
    pub(super) async fn dial_to_listen(&self, store: &str) -> Result<(Client, Line), tokio_postgres::Error> {
        let mut config = self.config.clone();
        config.application_name(format!("laneway listen {store}"));
        if self.session == Session::Ours {
            let options = config.get_options().unwrap_or_default().to_owned();
            config.options(format!("{options} -c synchronous_commit=off"));
        }
        config.connect(self.tls.0.clone()).await
    }

    /// Connections are made when they are needed, on the runtime of whoever needs them.
    pub(super) fn pool(&self) -> Result<Pool> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls.0.clone(), recycling);
        Pool::builder(manager)
            .max_size(CONNECTIONS)
            // The one that was used last has everything prepared, and its process on the server is
            // warm.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(PATIENCE))
            .create_timeout(Some(PATIENCE))
            .build()
            .map_err(|error| Error::Closed { why: error.to_string() })
    }
}

/// A connection out of the pool, or why there is none.
pub(super) async fn take(pool: &Pool, address: &Address) -> Result<Object, Failure> {
    pool.get().await.map_err(|error| {
        let shown = address.shown.clone();
        Failure::Unconnected(match error {
            PoolError::Backend(error) => fault::explain_connect(&error, address),
            PoolError::Timeout(TimeoutType::Wait) => {
                Error::TooSlow { address: shown, why: format!("all {CONNECTIONS} connections are in use") }
            }
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
                Error::Unreachable { address: shown, why: "it does not answer".to_owned() }
            }
            error @ (PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_)) => {
                Error::Closed { why: error.to_string() }
            }
        })
    })
}

/// PgBouncer and its like: what is asked for at the start of a connection would be lost with the
/// transaction.
fn has_refused_options(error: &tokio_postgres::Error) -> bool {
    let said = fault::words(error).to_ascii_lowercase();
    error.as_db_error().is_some() && said.contains("startup parameter") || said.contains("startup option")
}
