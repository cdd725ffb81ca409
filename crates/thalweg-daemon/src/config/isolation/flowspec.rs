//! The keys of actuator flowspec.

use std::net::{IpAddr, SocketAddr};

use thalweg_actuators::isolation::flowspec::{
    Action, FlowspecOptions, MIN_HOLD_TIME, PORT, ParseTargetError,
};
use thalweg_config::{Document, Problem, Typed};

use super::IsolatorConfig;
use crate::config::names::RuleActionName;
use crate::config::table::Isolation;

/// Keys of this actuator only.
pub(super) const KEYS: [&str; 10] = [
    Isolation::peer,
    Isolation::peer_as,
    Isolation::local_as,
    Isolation::local_address,
    Isolation::router_id,
    Isolation::hold_time,
    Isolation::password_file,
    Isolation::action,
    Isolation::rate_limit,
    Isolation::redirect_to,
];

/// Reads session and action.
pub(super) fn read(
    entry: &Typed<'_, Isolation>,
    document: &Document,
    problems: &mut Vec<Problem>,
) -> Option<IsolatorConfig> {
    let before = problems.len();
    let peer = peer(entry, problems);
    let mut refuse = |key, reason: &str| problems.push(entry.refuse(key, reason));
    for (key, number) in [(Isolation::peer_as, entry.peer_as), (Isolation::local_as, entry.local_as)] {
        if number.is_none() {
            refuse(key, "required by actuator flowspec: the number of an autonomous system");
        }
    }
    let local_address = entry.local_address.as_ref().map(|text| text.parse::<IpAddr>());
    let is_other = |address: &IpAddr| peer.is_some_and(|peer| peer.is_ipv4() != address.is_ipv4());
    match &local_address {
        Some(Err(_)) => refuse(Isolation::local_address, "expected an address, such as \"192.0.2.2\""),
        Some(Ok(address)) if is_other(address) => {
            refuse(Isolation::local_address, "expected an address of the same IP version as peer");
        }
        _ => {}
    }
    let router_id = entry.router_id.as_ref().map(|text| text.parse());
    match &router_id {
        Some(Err(_)) => refuse(Isolation::router_id, "expected an IPv4 address, such as \"192.0.2.2\""),
        None if peer.is_some_and(|peer| peer.is_ipv6()) => {
            refuse(Isolation::router_id, "required if peer is an IPv6 address: an IPv4 address of this host");
        }
        _ => {}
    }
    let (seconds, rest) = (entry.hold_time.0 / 1_000_000_000, entry.hold_time.0 % 1_000_000_000);
    let hold_time = u16::try_from(seconds).ok().filter(|seconds| *seconds >= MIN_HOLD_TIME && rest == 0);
    if hold_time.is_none() {
        refuse(Isolation::hold_time, "expected whole seconds, 3s to 65535s");
    }
    let action = rule_action(entry, problems);
    let options = FlowspecOptions {
        peer: peer?,
        local_address: local_address.transpose().ok()?,
        local_as: entry.local_as?,
        peer_as: entry.peer_as?,
        router_id: router_id.transpose().ok()?,
        hold_time: hold_time?,
        password: None,
        action: action?,
    };
    let password_file = entry.password_file.as_ref().map(|file| document.folder.join(file));
    (problems.len() == before).then_some(IsolatorConfig::Flowspec { options, password_file })
}

fn peer(entry: &Typed<'_, Isolation>, problems: &mut Vec<Problem>) -> Option<SocketAddr> {
    let Some(text) = &entry.peer else {
        let reason = "required by actuator flowspec: the address of the router";
        problems.push(entry.refuse(Isolation::peer, reason));
        return None;
    };
    let address = || text.parse().map(|address| SocketAddr::new(address, PORT));
    let peer = text.parse::<SocketAddr>().or_else(|_| address()).ok().filter(|peer| peer.port() != 0);
    if peer.is_none() {
        let reason = format!(
            "invalid address {text:?}: expected an address and perhaps a port, such as 192.0.2.1, 192.0.2.1:1790, 2001:db8::1 or \
             [2001:db8::1]:1790"
        );
        problems.push(entry.refuse(Isolation::peer, reason));
    }
    peer
}

/// Reads what the router does, and reports keys of another action.
fn rule_action(entry: &Typed<'_, Isolation>, problems: &mut Vec<Problem>) -> Option<Action> {
    for (key, owner) in [
        (Isolation::dscp, RuleActionName::Mark),
        (Isolation::rate_limit, RuleActionName::Rate),
        (Isolation::redirect_to, RuleActionName::Redirect),
    ] {
        if entry.action != owner && entry.is_set(key) {
            let reason = format!("requires action {}, not {}", owner.name(), entry.action.name());
            problems.push(entry.refuse(key, reason));
        }
    }
    match entry.action {
        RuleActionName::Mark => Some(Action::Mark(entry.dscp)),
        RuleActionName::Rate => {
            let rate = entry.rate_limit.filter(|rate| rate.0 >= 8);
            if rate.is_none() {
                let reason = "required by action rate: at least 8bps, such as \"10mbps\"";
                problems.push(entry.refuse(Isolation::rate_limit, reason));
            }
            rate.map(Action::RateLimit)
        }
        RuleActionName::Redirect => {
            let Some(text) = &entry.redirect_to else {
                let reason =
                    "required by action redirect: a route target such as \"64500:100\", or an address";
                problems.push(entry.refuse(Isolation::redirect_to, reason));
                return None;
            };
            match text.parse() {
                Ok(target) => Some(Action::Redirect(target)),
                Err(error) => {
                    let error: ParseTargetError = error;
                    problems.push(entry.refuse(Isolation::redirect_to, error.to_string()));
                    None
                }
            }
        }
    }
}
