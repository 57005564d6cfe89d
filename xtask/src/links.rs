//! Every relative link of every page leads somewhere: to a file, and to a heading where it names one.
//! Links out of the repository are not followed: a check must not depend on the network.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Directories that hold nothing of ours.
const PASSED_OVER: [&str; 4] = [".git", ".laneway", "node_modules", "target"];

pub(crate) fn check(root: &Path) -> Result<()> {
    let mut pages = Vec::new();
    collect(root, &mut pages)?;
    pages.sort();
    let mut broken = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).with_context(|| page.display().to_string())?;
        for (number, target) in links(&text) {
            if let Some(why) = wrong(root, page, &text, &target) {
                let page = page.strip_prefix(root).unwrap_or(page).display();
                broken.push(format!("{page}:{number}: `{target}` {why}"));
            }
        }
    }
    if !broken.is_empty() {
        bail!("{} of the links lead nowhere\n  {}", broken.len(), broken.join("\n  "));
    }
    Ok(())
}

fn collect(dir: &Path, pages: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if entry.file_type()?.is_dir() {
            if !PASSED_OVER.iter().any(|passed| name == *passed) {
                collect(&path, pages)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
    Ok(())
}

/// Targets of `[text](target)` with the number of their line; code is not looked at.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let mut rest = line.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let Some(end) = rest.find(')') else { break };
            found.push((number, rest[..end].trim().to_owned()));
            rest = &rest[end..];
        }
    }
    found
}

/// Lines outside of fenced blocks, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

fn wrong(root: &Path, page: &Path, text: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = match target.split_once('#') {
        Some((path, heading)) => (path, Some(heading)),
        None => (target, None),
    };
    let file = match path.strip_prefix('/') {
        _ if path.is_empty() => page.to_owned(),
        Some(from_root) => root.join(from_root),
        None => page.parent().unwrap_or(root).join(path),
    };
    if file != page && !file.exists() {
        return Some("does not exist".to_owned());
    }
    let heading = heading?;
    let other;
    let text = if file == page {
        text
    } else {
        other = fs::read_to_string(&file).unwrap_or_default();
        &other
    };
    let has_it = prose(text).any(|(_, line)| line.starts_with('#') && slug(line) == heading);
    (!has_it).then(|| format!("names no heading of {}", file.strip_prefix(root).unwrap_or(&file).display()))
}

/// The anchor that a heading gets: lower case, words joined by hyphens, punctuation dropped.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_code_are_no_links() {
        let text = "[a](b.md) `[c](d.md)` [e](f.md#g)\n```\n[h](i.md)\n```\n[j](k.md)";
        let found = links(text);
        let expected = [(1, "b.md"), (1, "f.md#g"), (5, "k.md")];
        assert_eq!(found, expected.map(|(number, target)| (number, target.to_owned())));
    }

    #[test]
    fn a_heading_becomes_its_anchor() {
        assert_eq!(slug("## The way of the data"), "the-way-of-the-data");
        assert_eq!(slug("# `if`, and `when`: rules"), "if-and-when-rules");
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_told_apart() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = root.join("page.md");
        let look = |target: &str| wrong(root, &page, "# Here\n", target);
        assert_eq!(look("Cargo.toml"), None);
        assert_eq!(look("#here"), None);
        assert_eq!(look("https://example.org/x"), None);
        assert_eq!(look("nothing.md"), Some("does not exist".to_owned()));
        assert_eq!(look("Cargo.toml#there"), Some("names no heading of Cargo.toml".to_owned()));
    }
}
