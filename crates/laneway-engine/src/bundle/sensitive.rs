//! Files that are not packed unless they are named: what looks like a credential, by its name or by how it begins, and what is
//! larger than a script is. A bundle is stored for every node, and every viewer of a run may see what its steps print.

use std::ffi::OsStr;
use std::path::Path;

/// Larger files have to be named.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

/// How far into a file a private key is looked for.
const LOOKED_AT: usize = 64 << 10;

/// Names of files that hold credentials, whatever is in them. Here and below in small letters: a name in others
/// means the same file.
const NAMES: [&str; 21] = [
    ".env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".pg_service.conf",
    ".git-credentials",
    ".htpasswd",
    ".pypirc",
    ".npmrc",
    ".dockercfg",
    ".dockerconfigjson",
    ".vault-token",
    ".my.cnf",
    "kubeconfig",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "credentials.json",
    "secret.key",
];

/// The same by how they end.
const ENDINGS: [&str; 7] = [".key", ".p12", ".pfx", ".jks", ".keystore", ".kubeconfig", ".ppk"];

/// The same by the directory in which they lie.
const IN_DIRECTORIES: [(&str, &str); 4] =
    [(".aws", "credentials"), (".docker", "config.json"), (".kube", "config"), ("gcloud", "credentials.db")];

/// What stands beside `env` in the name of a file with values to fill in: `.env.example`, `example.env`.
const TEMPLATES: [&str; 5] = ["example", "sample", "template", "dist", "defaults"];

/// Why a file is not packed by itself, from its path below the directory that is packed, and from what is in it.
pub(super) fn why(path: &Path, bytes: &[u8]) -> Option<&'static str> {
    let lower = |name: Option<&OsStr>| name.unwrap_or_default().to_string_lossy().to_lowercase();
    let (name, dir) = (lower(path.file_name()), lower(path.parent().and_then(Path::file_name)));
    let env = name.strip_prefix(".env.").or_else(|| name.strip_suffix(".env"));
    let is_env = env.is_some_and(|beside| !TEMPLATES.contains(&beside));
    if NAMES.contains(&name.as_str()) || is_env || IN_DIRECTORIES.contains(&(dir.as_str(), name.as_str())) {
        return Some("it usually holds credentials");
    }
    if ENDINGS.iter().any(|ending| name.ends_with(ending)) {
        return Some("it usually holds a key");
    }
    let head = &bytes[..bytes.len().min(LOOKED_AT)];
    if has_private_key(head) {
        return Some("it holds a private key");
    }
    if name.ends_with(".json") && is_service_account(head) {
        return Some("it holds the key of a service account");
    }
    (bytes.len() as u64 > MAX_FILE_BYTES).then_some("it is large")
}

/// A line of PEM that begins one, of whatever kind.
fn has_private_key(head: &[u8]) -> bool {
    head.split(|byte| *byte == b'\n').any(|line| {
        let line = line.trim_ascii();
        line.starts_with(b"-----BEGIN ") && line.ends_with(b"PRIVATE KEY-----")
    })
}

fn is_service_account(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    text.contains("\"service_account\"") && text.contains("\"private_key\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_name_or_by_how_they_begin() {
        let pem = b"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n";
        let account = br#"{"type": "service_account", "private_key": "x"}"#;
        for (path, bytes) in [
            (".env", &b""[..]),
            ("sub/.env.production", b""),
            (".envrc", b""),
            ("prod.env", b""),
            ("conf/Staging.ENV", b""),
            (".ENV.Local", b""),
            ("ID_RSA", b""),
            ("a/.AWS/Credentials", b""),
            ("TLS.Key", b""),
            ("id_ed25519", b""),
            ("a/.aws/credentials", b""),
            (".kube/config", b""),
            ("tls.key", b""),
            (".pgpass", b""),
            ("server.pem", pem),
            ("notes.txt", b"see below\n-----BEGIN OPENSSH PRIVATE KEY-----\n"),
            ("account.json", account),
        ] {
            assert!(why(Path::new(path), bytes).is_some(), "{path}");
        }
        for (path, bytes) in [
            (".env.example", &b"A="[..]),
            (".Env.Sample", b"A="),
            ("example.env", b"A="),
            ("env", b""),
            ("environment", b""),
            ("server.pem", b"-----BEGIN CERTIFICATE-----\n"),
            ("id_rsa.pub", b"ssh-rsa AAAA"),
            ("config", b""),
            ("account.json", b"{}"),
            ("keys.py", b"KEY = '-----BEGIN PRIVATE KEY-----'"),
        ] {
            assert_eq!(why(Path::new(path), bytes), None, "{path}");
        }
        let large = vec![0; usize::try_from(MAX_FILE_BYTES).expect("a size") + 1];
        assert_eq!(why(Path::new("model.bin"), &large), Some("it is large"));
        assert_eq!(why(Path::new("model.bin"), &large[1..]), None);
    }
}
