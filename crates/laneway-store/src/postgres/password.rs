//! Where the password of a Postgres comes from when its URL has none: the places that every program of Postgres knows, so that it
//! stands on no command line. A service (`PGSERVICE`, `?service=`) may also say where the server is. The file of passwords is
//! `?passfile=`, `PGPASSFILE` or `~/.pgpass`; as everywhere else it is ignored where others can read it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::error::Result;

/// Where to look: what the URL and the environment name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sources {
    pub(super) service: Option<String>,
    pub(super) service_file: Option<PathBuf>,
    pub(super) password: Option<String>,
    pub(super) passfile: Option<PathBuf>,
}

impl Sources {
    /// What a URL names comes before what the environment does.
    pub(super) fn of_environment(service: Option<String>, passfile: Option<PathBuf>) -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let below_home = |name: &str| text("HOME").map(|home| Path::new(&home).join(name));
        Self {
            service: service.or_else(|| text("PGSERVICE")),
            service_file: text("PGSERVICEFILE").map(PathBuf::from).or_else(|| below_home(".pg_service.conf")),
            password: text("PGPASSWORD"),
            passfile: passfile
                .or_else(|| text("PGPASSFILE").map(PathBuf::from))
                .or_else(|| below_home(".pgpass")),
        }
    }

    /// Fills in what a URL leaves out.
    pub(super) fn complete(&self, config: &mut Config) -> Result<()> {
        if let Some(name) = &self.service {
            let file = self.service_file.as_deref().unwrap_or(Path::new("/etc/pg_service.conf"));
            let text = std::fs::read_to_string(file).map_err(|error| {
                super::address::address(&format!(
                    "the service `{name}` cannot be looked up: {} cannot be read: {error}",
                    file.display()
                ))
            })?;
            let entries = service(&text, name).ok_or_else(|| {
                super::address::address(&format!("there is no service `{name}` in {}", file.display()))
            })?;
            apply_service(config, &entries);
        }
        if config.get_password().is_some() {
            return Ok(());
        }
        if let Some(password) = &self.password {
            config.password(password);
        } else if let Some(file) = &self.passfile
            && let Some(text) = read_private(file)
            && let Some(password) = find(&text, &Wanted::of(config))
        {
            config.password(password);
        }
        Ok(())
    }
}

fn apply_service(config: &mut Config, entries: &[(String, String)]) {
    for (key, value) in entries {
        let _: &mut Config = match key.as_str() {
            "host" if config.get_hosts().is_empty() => config.host(value),
            "port" if config.get_ports().is_empty() => match value.parse() {
                Ok(port) => config.port(port),
                Err(_) => config,
            },
            "dbname" if config.get_dbname().is_none() => config.dbname(value),
            "user" if config.get_user().is_none() => config.user(value),
            "password" if config.get_password().is_none() => config.password(value),
            // What else a service says is for programs that know of it.
            _ => config,
        };
    }
}

/// The file, unless others can read it: then it is told, and ignored.
fn read_private(file: &Path) -> Option<String> {
    let data = std::fs::metadata(file).ok()?;
    if data.mode() & 0o077 != 0 {
        tracing::warn!("{} is ignored: others can read it; `chmod 600` makes it private", file.display());
        return None;
    }
    std::fs::read_to_string(file).ok()
}

/// The lines of a section of a service file.
fn service(text: &str, name: &str) -> Option<Vec<(String, String)>> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.find(|line| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) == Some(name))?;
    let entries = lines.take_while(|line| !line.starts_with('['));
    Some(
        entries
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
            .collect(),
    )
}

/// Whose password is looked for.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    host: String,
    port: String,
    database: String,
    user: String,
}

impl Wanted {
    fn of(config: &Config) -> Self {
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            // By a socket, wherever it lies.
            Some(Host::Unix(_)) | None => "localhost".to_owned(),
        };
        let user = config.get_user().map_or_else(|| std::env::var("USER").unwrap_or_default(), str::to_owned);
        Self {
            host,
            port: config.get_ports().first().copied().unwrap_or(5432).to_string(),
            database: config.get_dbname().unwrap_or(&user).to_owned(),
            user,
        }
    }
}

/// The password of the first line that fits: `host:port:database:user:password`, where `*` is anything and `\` takes the next
/// character as it is.
fn find(text: &str, wanted: &Wanted) -> Option<String> {
    let asked = [&wanted.host, &wanted.port, &wanted.database, &wanted.user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let (password, keys) = fields.split_last().filter(|(_, keys)| keys.len() == asked.len())?;
        let fits = keys.iter().zip(asked).all(|(key, asked)| key == "*" || key == asked);
        fits.then(|| password.clone())
    })
}

fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut letters) = (vec![String::new()], line.chars());
    while let Some(letter) = letters.next() {
        match letter {
            // Behind the fourth separator all of it is the password, as far as it is not escaped.
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => fields.last_mut().expect("there is one").extend(letters.next()),
            letter => fields.last_mut().expect("there is one").push(letter),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> Config {
        url.parse().expect("a URL")
    }

    #[test]
    fn first_line_that_fits_has_the_password() {
        let text = "# comment\ndb:5432:jobs:ada:one\n*:*:*:ada:t\\:w:o\nshort:line\n";
        let of = |url: &str| find(text, &Wanted::of(&config(url)));
        assert_eq!(of("postgres://ada@db/jobs").as_deref(), Some("one"));
        assert_eq!(of("postgres://ada@db:6432/jobs").as_deref(), Some("t:w:o"));
        assert_eq!(of("postgres://bob@db/jobs"), None);
    }

    #[test]
    fn password_comes_from_where_the_url_leaves_it_open() {
        let dir = tempfile::tempdir().expect("a directory");
        let passfile = dir.path().join("pgpass");
        crate::private::write(&passfile, b"*:*:*:ada:from-file\n").expect("written");
        let service_file = dir.path().join("services");
        std::fs::write(&service_file, "[other]\nhost=x\n[jobs]\nhost=db\nport=6432\nuser=ada\ndbname=jobs\n")
            .expect("written");
        let complete = |url: &str, sources: &Sources| {
            let mut config = config(url);
            sources.complete(&mut config).map(|()| config)
        };
        let password =
            |config: &Config| config.get_password().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        let sources = Sources { passfile: Some(passfile.clone()), ..Sources::default() };
        let found = complete("postgres://ada@db/jobs", &sources).expect("a config");
        assert_eq!(password(&found).as_deref(), Some("from-file"));
        let own = complete("postgres://ada:own@db/jobs", &sources).expect("a config");
        assert_eq!(password(&own).as_deref(), Some("own"), "the URL comes first");
        let both = Sources { password: Some("from-environment".to_owned()), ..sources.clone() };
        let found = complete("postgres://ada@db/jobs", &both).expect("a config");
        assert_eq!(password(&found).as_deref(), Some("from-environment"));
        let by_name =
            Sources { service: Some("jobs".to_owned()), service_file: Some(service_file), ..sources.clone() };
        let found = complete("postgres://", &by_name).expect("a config");
        assert_eq!(
            (found.get_user(), found.get_dbname(), found.get_ports()),
            (Some("ada"), Some("jobs"), &[6432][..])
        );
        assert_eq!(password(&found).as_deref(), Some("from-file"));
        let unknown = Sources { service: Some("nobody".to_owned()), ..by_name };
        assert!(complete("postgres://", &unknown).is_err());
        std::os::unix::fs::chown(&passfile, None, None).expect("ours");
        std::fs::set_permissions(&passfile, std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .expect("open");
        let open = complete("postgres://ada@db/jobs", &sources).expect("a config");
        assert_eq!(password(&open), None, "others can read it");
    }
}
