//! With what a route may refuse: what comes with its rule, its address and its body, and what it says of itself in `table.rs`. The
//! description lists these and no others, so that a program can decide by them; a build with assertions fails a request that is
//! refused in another way, and so every test of the service looks for one that nobody wrote down.

use std::collections::BTreeMap;

use crate::access::Who;
use crate::problem::Code;
use crate::table::{Route, is_open};

/// What parts of an address stand for, and how it is refused that there is nothing of that name.
const PARTS: [(&str, &[Code]); 5] = [
    ("{run}", &[Code::NoSuchRun, Code::AmbiguousRun]),
    ("{step}", &[Code::NoSuchStep]),
    ("{attempt}", &[Code::NoSuchAttempt]),
    ("{address}", &[Code::NoSuchNode]),
    ("{session}", &[Code::NoSuchSession]),
];

/// All of a route, in the order in which they are declared.
pub(crate) fn refusals(route: &Route) -> Vec<Code> {
    let rule = &route.rule;
    // The store, or the process itself.
    let mut codes =
        vec![Code::Unreadable, Code::Internal, Code::StoreUnavailable, Code::TimedOut, Code::ShuttingDown];
    if !is_open(rule.path) {
        codes.extend([Code::HostRefused, Code::OriginRefused]);
    }
    codes.extend(match rule.who {
        Who::Anybody => &[][..],
        Who::Signed => &[Code::BadSignature],
        Who::AtLeast(_) => &[Code::NoToken, Code::BadToken, Code::Forbidden],
    });
    for (part, unknown) in PARTS {
        if rule.path.contains(part) {
            codes.extend(unknown);
        }
    }
    if rule.path.contains('{') || route.query.is_some() {
        codes.extend([Code::BadRequest, Code::Unprocessable]);
    }
    if route.body.is_some() {
        codes.extend([Code::BadBody, Code::BodyTooLarge, Code::NotJson, Code::Unprocessable]);
    }
    if route.bytes.is_some() {
        codes.extend([Code::BadBody, Code::BodyTooLarge, Code::Unprocessable]);
    }
    let takes_body = route.body.is_some() || route.bytes.is_some();
    if takes_body && matches!(rule.who, Who::Anybody | Who::Signed) {
        codes.push(Code::Busy);
    }
    let is_change = rule.method != "GET";
    if is_change && rule.path.contains("{run}") {
        codes.push(Code::RunSetAside);
    }
    codes.extend(route.refuses);
    Code::ALL.iter().copied().filter(|code| codes.contains(code)).collect()
}

/// The same by status.
pub(crate) fn by_status(route: &Route) -> BTreeMap<u16, Vec<Code>> {
    let mut of_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in refusals(route) {
        of_status.entry(code.status().as_u16()).or_default().push(code);
    }
    of_status
}
