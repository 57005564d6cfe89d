//! By which names the service may be asked, and from which pages. A page on another site can make a browser ask this
//! service: under a name that it made point here (DNS rebinding), which the `Host` header gives away, or directly, which
//! `Origin` and `Sec-Fetch-Site` give away. Pure.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, header};

use crate::problem::{Code, Problem};

/// Names that are the service's own.
#[derive(Debug, Clone, Default)]
pub struct Names {
    allowed: Vec<String>,
}

impl Names {
    /// The address it listens at, the names of this host for itself, and those that a deployment adds.
    pub fn new(listening: SocketAddr, more: impl IntoIterator<Item = String>) -> Self {
        let mut allowed = vec!["localhost".to_owned()];
        if !listening.ip().is_unspecified() {
            allowed.push(listening.ip().to_string());
        }
        allowed.extend(more.into_iter().map(|name| bare(&name).to_ascii_lowercase()));
        Self { allowed }
    }

    /// Refuses who asks by another name.
    pub(super) fn check_host(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if self.has(bare(host)) {
            return Ok(());
        }
        Err(Problem::new(Code::HostRefused, format!("`{}` is none of the names of this service", cut(host)))
            .hint("ask by an address it listens at, or name this one with `allowed_hosts`"))
    }

    /// Refuses what a page of another site asks. Programs send neither header.
    pub(super) fn check_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let refused = |whose: &str| {
            Problem::new(Code::OriginRefused, format!("a page of {whose} may not ask this service"))
        };
        if headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site") {
            return Err(refused("another site"));
        }
        let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
        let origin = origin.to_str().unwrap_or_default();
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        // The same port too: another service of this host is another site.
        match origin.split_once("://") {
            Some(("http" | "https", at)) if at.eq_ignore_ascii_case(host) => Ok(()),
            Some(_) | None => Err(refused(&format!("`{}`", cut(origin)))),
        }
    }

    fn has(&self, name: &str) -> bool {
        let is_own_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        is_own_loopback || self.allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name))
    }
}

/// Without port and brackets.
fn bare(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split_once(']').map_or("", |(address, _)| address);
    }
    match host.rsplit_once(':') {
        // An address of IPv6 that somebody wrote without brackets.
        Some((name, _)) if name.contains(':') => host,
        Some((name, _)) => name,
        None => host,
    }
}

/// What strangers send is not repeated at length.
fn cut(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(given: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header"))
        };
        given.iter().map(pair).collect()
    }

    fn names(listening: &str) -> Names {
        Names::new(listening.parse().expect("an address"), ["Lane.Example:443".to_owned()])
    }

    #[test]
    fn only_own_names_are_answered() {
        let names = names("192.0.2.7:7878");
        for good in
            ["localhost:7878", "127.0.0.1", "127.0.0.1:1", "[::1]:7878", "192.0.2.7:7878", "lane.example"]
        {
            assert!(names.check_host(&headers(&[("host", good)])).is_ok(), "{good}");
        }
        for bad in
            ["evil.example", "192.0.2.8", "localhost.evil.example", "", "127.0.0.1.evil.example", "[::2]"]
        {
            let refused = names.check_host(&headers(&[("host", bad)])).expect_err(bad);
            assert_eq!(refused.code, Code::HostRefused);
        }
        assert!(names.check_host(&HeaderMap::new()).is_err());
    }

    #[test]
    fn name_that_everything_has_is_no_name() {
        assert!(names("0.0.0.0:7878").check_host(&headers(&[("host", "0.0.0.0:7878")])).is_err());
    }

    #[test]
    fn only_own_pages_may_ask() {
        let names = names("127.0.0.1:7878");
        let ask = |given: &[(&'static str, &str)]| {
            let mut all = vec![("host", "localhost:7878")];
            all.extend(given);
            names.check_origin(&headers(&all)).is_ok()
        };
        assert!(ask(&[]));
        assert!(ask(&[("origin", "http://localhost:7878"), ("sec-fetch-site", "same-origin")]));
        for bad in ["http://localhost:8080", "http://evil.example", "null", "", "file://localhost:7878"] {
            assert!(!ask(&[("origin", bad)]), "{bad}");
        }
        assert!(!ask(&[("sec-fetch-site", "cross-site")]));
    }
}
