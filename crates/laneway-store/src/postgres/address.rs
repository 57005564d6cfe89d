//! What a Postgres URL says: whom to connect to, how far to trust the line, and how it is shown to people: without its
//! password. Owns the words for every URL that cannot be one.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::password::Sources;
use crate::error::{Error, Result};

/// How long one host may take to accept a connection. A host that drops packets says nothing, and people wait.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long what was sent may stay without an acknowledgement before the server counts as gone. A lease is a
/// minute, and there has to be time for a second try.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection is idle before the system probes the server, how often it does so then, and after
/// how many probes without an answer the server counts as gone.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(3);
const KEEPALIVES_RETRIES: u32 = 3;

/// A database, and how to get there.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) trust: Trust,
    /// For people: who, where, which database. Never the password.
    pub(super) shown: String,
}

/// `sslmode`, with `sslrootcert` where it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// No TLS.
    Disable,
    /// TLS if the server has it; anybody may be the server.
    Prefer,
    /// TLS; anybody may be the server.
    Require,
    /// TLS, and the server is who its certificate says, signed by one of these.
    VerifyFull { roots: PathBuf },
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self> {
        let Split { plain, trust, service, passfile } = split(url)?;
        let mut config = Config::from_str(&plain).map_err(|error| refused(&error))?;
        Sources::of_environment(service, passfile).complete(&mut config)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host("localhost");
        }
        config.ssl_mode(match trust {
            Trust::Disable => SslMode::Disable,
            Trust::Prefer => SslMode::Prefer,
            Trust::Require | Trust::VerifyFull { .. } => SslMode::Require,
        });
        notice_vanished_server(&mut config, &plain);
        if config.get_application_name().is_none() {
            config.application_name("laneway");
        }
        let shown = shown(&config);
        Ok(Self { config, trust, shown })
    }

    /// As a part of errors that speak of files.
    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(&self.shown)
    }
}

/// A server that vanished without a word is noticed within some twenty seconds, where the system would take hours.
/// What the URL says wins, key by key.
fn notice_vanished_server(config: &mut Config, url: &str) {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    // The driver cannot tell a default from the same value in the URL.
    let is_named = |key: &str| query.split('&').any(|pair| pair.split('=').next() == Some(key));
    if !is_named("connect_timeout") {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if !is_named("tcp_user_timeout") {
        config.tcp_user_timeout(TCP_USER_TIMEOUT);
    }
    if !is_named("keepalives_idle") {
        config.keepalives_idle(KEEPALIVES_IDLE);
    }
    if !is_named("keepalives_interval") {
        config.keepalives_interval(KEEPALIVES_INTERVAL);
    }
    if !is_named("keepalives_retries") {
        config.keepalives_retries(KEEPALIVES_RETRIES);
    }
}

/// The URL without its password, and whether it had one: what other processes may see of it.
pub(crate) fn without_password(url: &str) -> Option<String> {
    let (scheme, rest) =
        url.split_once("://").filter(|(scheme, _)| matches!(*scheme, "postgres" | "postgresql"))?;
    let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = base.find('/').map_or((base, ""), |at| base.split_at(at));
    let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let pairs: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    let kept: Vec<&str> = pairs.iter().copied().filter(|pair| !pair.starts_with("password=")).collect();
    if password.is_empty() && kept.len() == pairs.len() {
        return None;
    }
    let at = if name.is_empty() { "" } else { "@" };
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Some(format!("{scheme}://{name}{at}{hosts}{path}{query}"))
}

/// A URL as the driver knows it, and what the driver does not know of.
struct Split {
    plain: String,
    trust: Trust,
    service: Option<String>,
    passfile: Option<PathBuf>,
}

fn split(url: &str) -> Result<Split> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let (mut mode, mut roots, mut rest) = (None, None, Vec::new());
    let (mut service, mut passfile) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sslmode", value)) => mode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => roots = Some(PathBuf::from(decode(value)?)),
            Some(("service", value)) => service = Some(decode(value)?),
            Some(("passfile", value)) => passfile = Some(PathBuf::from(decode(value)?)),
            Some(_) | None => rest.push(pair),
        }
    }
    let trust = match (mode.as_deref(), roots) {
        (Some("disable"), None) => Trust::Disable,
        (Some("prefer") | None, None) => Trust::Prefer,
        (Some("require"), None) => Trust::Require,
        (Some("verify-full"), Some(roots)) => Trust::VerifyFull { roots },
        (Some("verify-full"), None) => {
            return Err(address(
                "sslmode=verify-full needs sslrootcert=FILE, the certificates to trust; those of the system are \
                 often in /etc/ssl/certs/ca-certificates.crt",
            ));
        }
        (Some("disable" | "prefer" | "require") | None, Some(_)) => {
            return Err(address("sslrootcert is used with sslmode=verify-full alone"));
        }
        (Some(other), _) => {
            return Err(address(&format!(
                "sslmode={other} is not known; give disable, prefer, require or verify-full"
            )));
        }
    };
    let plain = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
    Ok(Split { plain, trust, service, passfile })
}

/// `%2F` and its like.
fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let byte = match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                rest = behind;
                let digits = std::str::from_utf8(&[*high, *low]).ok().map(str::to_owned);
                digits.and_then(|digits| u8::from_str_radix(&digits, 16).ok())
            }
            (b'%', _) => None,
            (byte, _) => Some(*byte),
        };
        bytes.push(byte.ok_or_else(|| address(&format!("`{text}` is not encoded as a URL is")))?);
    }
    String::from_utf8(bytes).map_err(|_| address(&format!("`{text}` is not UTF-8")))
}

fn shown(config: &Config) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .enumerate()
        .map(|(index, host)| {
            let ports = config.get_ports();
            let port = ports.get(index).or(ports.first()).map(|port| format!(":{port}")).unwrap_or_default();
            match host {
                Host::Tcp(name) => format!("{name}{port}"),
                Host::Unix(path) => format!("{}{port}", path.display()),
            }
        })
        .collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{user}{}/{database}", hosts.join(","))
}

fn refused(error: &tokio_postgres::Error) -> Error {
    // The driver's own words leave out what is wrong, its cause names it, and neither repeats the password.
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    address(&format!("the URL of the store cannot be read: {cause}"))
}

pub(super) fn address(why: &str) -> Error {
    Error::Address { why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_taken_out_of_a_url_and_nothing_else() {
        for (url, bare) in [
            (
                "postgres://ada:s3:cret@db:5433/jobs?sslmode=require",
                "postgres://ada@db:5433/jobs?sslmode=require",
            ),
            ("postgresql://ada:x@a,b/d?password=y&sslmode=disable", "postgresql://ada@a,b/d?sslmode=disable"),
            ("postgres://:x@db", "postgres://db"),
            ("postgres://ada:laneway@%2Frun%2Fpg:1/d", "postgres://ada@%2Frun%2Fpg:1/d"),
        ] {
            assert_eq!(without_password(url).as_deref(), Some(bare), "{url}");
        }
        for url in ["postgres://ada@db/jobs", "postgres://db", ".laneway/laneway.db", "sqlite://a:b@c"] {
            assert_eq!(without_password(url), None, "{url}");
        }
    }

    #[test]
    fn password_is_never_shown() {
        let address = Address::parse("postgres://ada:s3cret@db.example:5433/jobs").expect("a URL");
        assert_eq!(address.shown, "postgres://ada@db.example:5433/jobs");
    }

    #[test]
    fn tls_is_as_the_url_asks() {
        let trust =
            |query: &str| Address::parse(&format!("postgres://h/d{query}")).map(|address| address.trust);
        assert_eq!(trust("").ok(), Some(Trust::Prefer));
        assert_eq!(trust("?sslmode=disable").ok(), Some(Trust::Disable));
        assert_eq!(trust("?sslmode=require&connect_timeout=3").ok(), Some(Trust::Require));
        let roots = PathBuf::from("/etc/a b.pem");
        assert_eq!(
            trust("?sslmode=verify-full&sslrootcert=%2Fetc%2Fa%20b.pem").ok(),
            Some(Trust::VerifyFull { roots })
        );
        for (query, word) in [
            ("?sslmode=verify-full", "sslrootcert=FILE"),
            ("?sslmode=maybe", "verify-full"),
            ("?sslrootcert=x", "alone"),
            ("?sslmode=verify-full&sslrootcert=%2", "encoded"),
        ] {
            let why = trust(query).expect_err("refused").to_string();
            assert!(why.contains(word), "{query}: {why}");
        }
    }

    #[test]
    fn vanished_server_is_noticed_unless_the_url_says_otherwise() {
        let seconds = Duration::from_secs;
        let said = |query: &str| {
            let config = Address::parse(&format!("postgres://h/d{query}")).expect("a URL").config;
            let probes = (config.get_keepalives_interval(), config.get_keepalives_retries());
            let waits = (config.get_connect_timeout().copied(), config.get_tcp_user_timeout().copied());
            (config.get_keepalives(), config.get_keepalives_idle(), probes, waits)
        };
        let ours = (Some(seconds(3)), Some(3));
        assert_eq!(said(""), (true, seconds(10), ours, (Some(seconds(10)), Some(seconds(10)))));
        let all = "?keepalives=0&keepalives_idle=7200&keepalives_interval=60&keepalives_retries=9\
                   &connect_timeout=2&tcp_user_timeout=120";
        let theirs = (Some(seconds(60)), Some(9));
        assert_eq!(said(all), (false, seconds(7200), theirs, (Some(seconds(2)), Some(seconds(120)))));
        let one = said("?sslmode=disable&tcp_user_timeout=45");
        assert_eq!(one, (true, seconds(10), ours, (Some(seconds(10)), Some(seconds(45)))));
    }

    #[test]
    fn unknown_key_of_a_url_is_named() {
        let why = Address::parse("postgres://h/d?colour=red").expect_err("refused").to_string();
        assert!(why.contains("colour"), "{why}");
    }
}
