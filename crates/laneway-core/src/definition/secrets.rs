//! The `secrets` of a workflow: names for values that are found where a step runs. No value ever stands in a document.

use super::finding::{Finding, shown};
use super::keys;
use super::model::SecretSource;
use super::reader::{Field, Reader};
use super::yaml::Data;

impl Reader<'_> {
    pub(super) fn secrets(&mut self, field: Field<'_>) -> Vec<(String, SecretSource)> {
        let must_be = "a mapping such as {db: {env: DB_PASSWORD}}";
        let mut secrets = Vec::new();
        for entry in self.entries(field, must_be).unwrap_or_default() {
            self.check_name("secret", entry.name, entry.key);
            if let Some(source) = self.secret(entry) {
                secrets.push((entry.name.to_owned(), source));
            }
        }
        secrets
    }

    fn secret(&mut self, entry: Field<'_>) -> Option<SecretSource> {
        let must_be = "one of {env: VARIABLE}, {file: PATH} and {store: NAME}";
        let fields = self.fields(entry, &keys::SECRET, must_be)?;
        let [field] = fields[..] else {
            // An unknown key has been told already.
            if fields.len() > 1
                || matches!(&self.tree.node(entry.value).data, Data::Map(flat) if flat.is_empty())
            {
                let finding = self.wrong(entry, must_be).hint("a secret comes from one place");
                self.findings.push(finding);
            }
            return None;
        };
        let advice = "where a secret comes from is fixed";
        let text = self.string(field, "a string")?.to_owned();
        if !self.literal(field, &text, advice) {
            return None;
        }
        let is_word = |other: &str| {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || other.as_bytes().contains(&byte))
        };
        let (is_fine, source) = match field.name {
            "env" => (is_word("_"), SecretSource::Env(text.clone())),
            "file" => (!text.trim().is_empty() && !text.contains('\0'), SecretSource::File(text.clone())),
            _ => (is_word("_-"), SecretSource::Store(text.clone())),
        };
        if !is_fine {
            let span = self.place(field);
            let message = format!("{} cannot be where a secret comes from", shown(&text));
            let hint = "name a variable, a file, or a secret of the store (`laneway secret list`)";
            self.findings.push(Finding::new(message, span).hint(hint));
            return None;
        }
        Some(source)
    }
}
