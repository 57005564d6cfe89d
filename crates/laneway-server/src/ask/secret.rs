//! Values that the store keeps sealed: set, listed and removed, and told to nobody. They are sealed where they are taken, with the key of
//! that host, which every node that runs steps with them has to have.

use laneway_engine::secret::{KEY_VARIABLE, Key, check};
use laneway_store::{Result, Store};

use super::Author;
use crate::problem::{Answer, Code, Problem};
use crate::wire;

/// By name, without values.
pub async fn secrets(store: &dyn Store) -> Result<wire::SecretList> {
    let secrets = store.secrets().await?;
    Ok(wire::SecretList { secrets: secrets.iter().map(wire::StoredSecret::from).collect() })
}

/// Says what is wrong with a name.
pub fn check_secret_name(name: &str) -> std::result::Result<(), String> {
    let is_fine = !name.is_empty()
        && name.len() <= 100
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_fine { Ok(()) } else { Err("use letters, digits, `_` and `-`, at most 100".to_owned()) }
}

pub async fn set_secret(
    store: &dyn Store,
    name: &str,
    value: &str,
    author: &Author,
) -> Answer<wire::SecretSet> {
    check_secret_name(name).map_err(|how| Problem::new(Code::Unprocessable, format!("`name`: {how}")))?;
    check(value).map_err(|bad| Problem::new(Code::Unprocessable, bad.to_string()).hint(bad.hint()))?;
    let sealed = Key::load_or_make(store.dir()).and_then(|key| key.seal(name, value)).map_err(|error| {
        tracing::error!(%error, "a secret cannot be sealed");
        Problem::new(Code::Internal, format!("the secret cannot be sealed: {error}"))
            .hint(format!("the key is in secret.key beside the store, or in {KEY_VARIABLE}"))
    })?;
    store.set_secret(name, sealed, &author.name).await?;
    author.record(store, "set_secret", format!("secret {name}")).await?;
    Ok(wire::SecretSet { name: name.to_owned(), set: true })
}

pub async fn remove_secret(store: &dyn Store, name: &str, author: &Author) -> Result<wire::SecretSet> {
    store.remove_secret(name).await?;
    author.record(store, "remove_secret", format!("secret {name}")).await?;
    Ok(wire::SecretSet { name: name.to_owned(), set: false })
}
