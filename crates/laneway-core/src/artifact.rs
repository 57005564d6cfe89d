//! Paths of artifacts: what a step may name, and what it may be called. Both are relative and stay where they are: a name that
//! leads out cannot be made. Knows nothing of files.

use std::fmt;

/// The longest path, in bytes.
const MAX_LENGTH: usize = 1_000;

/// The path of one artifact, below the directory of its step.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArtifactName(String);

/// Which files of a step are its artifacts: a path in which `*` and `?` stand for what is between two slashes, and `**` for
/// any directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPattern(String);

impl ArtifactName {
    pub fn parse(text: &str) -> Result<Self, String> {
        check(text)?;
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ArtifactPattern {
    pub fn parse(text: &str) -> Result<Self, String> {
        check(text)?;
        if let Some(sign) = text.chars().find(|sign| "[]{}!".contains(*sign)) {
            return Err(format!("`{sign}` means nothing in it; there are `*`, `?` and `**`"));
        }
        if text.split('/').any(|part| part.contains("**") && part != "**") {
            return Err("`**` stands for whole directories: write `dist/**/*.html`".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn matches(&self, name: &ArtifactName) -> bool {
        let pattern: Vec<&str> = self.0.split('/').collect();
        let name: Vec<&str> = name.0.split('/').collect();
        match_parts(&pattern, &name)
    }
}

impl fmt::Display for ArtifactName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ArtifactPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn check(text: &str) -> Result<(), String> {
    let why = if text.is_empty() {
        "it is empty"
    } else if text.len() > MAX_LENGTH {
        "it is too long"
    } else if text.starts_with('/') {
        "it must be relative to the step's directory"
    } else if text.chars().any(char::is_control) {
        "it has a character that cannot be printed"
    } else if text.split('/').any(|part| part == "..") {
        "it leads out of the step's directory"
    } else if text.split('/').any(|part| part.is_empty() || part == ".") {
        "it has an empty part, or `.`"
    } else {
        return Ok(());
    };
    Err(why.to_owned())
}

/// A table over both, so that no pattern takes long.
fn match_parts(pattern: &[&str], name: &[&str]) -> bool {
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for part in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            if *part == "**" {
                next[at] = reached[at] || at > 0 && next[at - 1];
            } else if at > 0 {
                next[at] = reached[at - 1] && match_part(part, name[at - 1]);
            }
        }
        reached = next;
    }
    reached[name.len()]
}

fn match_part(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut reached = vec![false; text.len() + 1];
    reached[0] = true;
    for sign in pattern.chars() {
        let mut next = vec![false; text.len() + 1];
        for at in 0..=text.len() {
            next[at] = match sign {
                '*' => reached[at] || at > 0 && next[at - 1],
                '?' => at > 0 && reached[at - 1],
                plain => at > 0 && reached[at - 1] && text[at - 1] == plain,
            };
        }
        reached = next;
    }
    reached[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_within_a_directory_and_across() {
        let cases = [
            ("report.html", "report.html", true),
            ("report.html", "sub/report.html", false),
            ("*.html", "report.html", true),
            ("*.html", "sub/report.html", false),
            ("**/*.html", "report.html", true),
            ("**/*.html", "a/b/report.html", true),
            ("dist/**", "dist/a/b", true),
            ("dist/**", "other/a", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*a*a*a*a*a*a*a*b", &"a".repeat(200), false),
        ];
        for (pattern, name, expected) in cases {
            let matches = ArtifactPattern::parse(pattern)
                .expect(pattern)
                .matches(&ArtifactName::parse(name).expect(name));
            assert_eq!(matches, expected, "{pattern} {name}");
        }
    }

    #[test]
    fn path_that_leads_out_is_none() {
        for bad in ["", "/etc/passwd", "..", "a/../../b", "a//b", "./a", "a/", "a\nb"] {
            assert!(ArtifactName::parse(bad).is_err(), "{bad:?}");
            assert!(ArtifactPattern::parse(bad).is_err(), "{bad:?}");
        }
        for bad in ["a[bc]", "{a,b}", "a**", "!a"] {
            assert!(ArtifactPattern::parse(bad).is_err(), "{bad:?}");
        }
    }
}
