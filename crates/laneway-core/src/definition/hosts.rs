//! Hosts of callbacks that can be known without asking anybody. Owns where they stand in a document; whether one may be
//! reached is the caller's to say, because it differs from deployment to deployment.

use super::advice::{field, items, pairs};
use super::diagnostic::Diagnostics;
use super::finding::{Finding, Findings};
use super::model::{Action, Workflow};
use super::yaml::Data;
use super::{Source, parsed};

const OPEN: &str = "${{";

/// Checks the hosts of callbacks that are written out. `refuse` returns why a host cannot be reached, and what to do.
///
/// # Errors
/// All callbacks whose hosts are refused, at their places.
pub fn check_hosts(
    source: &Source,
    workflow: &Workflow,
    refuse: impl Fn(&str) -> Option<(String, String)>,
) -> Result<(), Diagnostics> {
    if !workflow.hooks.iter().any(|hook| matches!(hook.step.action, Action::Post(_))) {
        return Ok(());
    }
    let mut findings = Findings::default();
    // It was read before: what is wrong with it otherwise has been said.
    let Some(tree) = parsed(source, &mut Findings::default()) else { return Ok(()) };
    let hooks = field(&tree, tree.root, "hooks").into_iter().flat_map(|hooks| pairs(&tree, hooks));
    for item in hooks.flat_map(|(_, list)| items(&tree, list)) {
        let Some(post) = field(&tree, item, "post") else { continue };
        let Data::Scalar { text, .. } = &tree.node(post).data else { continue };
        if let Some((why, hint)) = literal_host(text).and_then(&refuse) {
            findings.push(Finding::new(why, tree.node(post).span).hint(hint));
        }
    }
    if findings.is_empty() {
        return Ok(());
    }
    Err(Diagnostics::new(&source.file, Some(source.text.as_str()), findings))
}

/// The host of an address, as far as no expression has a part in it.
fn literal_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, is_cut) = match rest.find(OPEN) {
        // An expression may stand for a name and a password, and what looks like the host is none.
        Some(open) if open < end && rest[open..].contains('@') => return None,
        Some(open) if open < end => (&rest[..open], true),
        Some(_) | None => (&rest[..end], false),
    };
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    let (host, is_whole) = match authority.strip_prefix('[') {
        Some(six) => (six.split(']').next().unwrap_or(six), six.contains(']')),
        None => (authority.split(':').next().unwrap_or(authority), authority.contains(':')),
    };
    (!host.is_empty() && (is_whole || !is_cut)).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_known_where_no_expression_has_a_part_in_it() {
        for (url, host) in [
            ("https://a.example/x", Some("a.example")),
            ("http://10.0.0.1", Some("10.0.0.1")),
            ("http://10.0.0.1:80?x", Some("10.0.0.1")),
            ("http://[::1]:80/", Some("::1")),
            ("http://me:pw@10.0.0.1/", Some("10.0.0.1")),
            ("http://10.0.0.1/${{ params.a }}", Some("10.0.0.1")),
            ("http://10.0.0.1:${{ params.port }}/", Some("10.0.0.1")),
            ("http://10.0.0.${{ params.a / 2 }}/", None),
            ("http://${{ params.host }}/", None),
            ("http://me:${{ secrets.pw }}@a.example/", None),
            ("${{ secrets.url }}", None),
            ("https://", None),
        ] {
            assert_eq!(literal_host(url), host, "{url}");
        }
    }
}
