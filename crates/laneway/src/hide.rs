//! Takes the password of a store off the command line of this process, which every user of the host can read: the program is
//! executed anew, under the same process id, with the URL in its environment, which only its owner can read.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::settings;

/// Returns only if it fails.
#[expect(clippy::disallowed_methods, reason = "it starts nothing: this process goes on as the same program")]
pub(crate) fn store(url: &str, bare: &str) -> io::Error {
    let mut words = std::env::args_os();
    let own = words.next().unwrap_or_default();
    let args = without_url(words, url, bare);
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    Command::new(program).arg0(own).args(args).env(settings::STORE.env, url).exec()
}

/// The words of a command line without `--store URL` and `--store=URL`. Whatever else names the URL names it without its password.
fn without_url(words: impl Iterator<Item = OsString>, url: &str, bare: &str) -> Vec<OsString> {
    let (mut kept, mut words) = (Vec::new(), words.peekable());
    let joined = format!("--store={url}");
    while let Some(word) = words.next() {
        if word == "--store" && words.peek().is_some_and(|next| next == url) {
            words.next();
        } else if word != joined.as_str() {
            let is_url = word.as_bytes() == url.as_bytes();
            kept.push(if is_url { bare.into() } else { word });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_goes_wherever_it_stands() {
        let (url, bare) = ("postgres://a:b@c/d", "postgres://a@c/d");
        for (typed, kept) in [
            (vec!["runs", "--store", url, "--json"], vec!["runs", "--json"]),
            (vec!["--store=postgres://a:b@c/d", "runs"], vec!["runs"]),
            (vec!["runs", "--store", "other", url], vec!["runs", "--store", "other", bare]),
        ] {
            let kept: Vec<OsString> = kept.into_iter().map(Into::into).collect();
            assert_eq!(without_url(typed.iter().map(Into::into), url, bare), kept);
        }
    }
}
