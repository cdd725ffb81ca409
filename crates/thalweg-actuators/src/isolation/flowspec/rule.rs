//! Rules: which packets a router matches and what it does with them, and the UPDATE messages that announce and withdraw
//! them (RFC 8955, RFC 8956 for IPv6).
//!
//! A rule matches destination, source and protocol, and for TCP and UDP both ports. Other protocols have no ports in a rule:
//! with a port, a rule matches TCP and UDP only (RFC 8955, section 4.2.2.4). So a rule for SCTP, GRE or ICMP matches all
//! flows of that protocol between the two hosts.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr;

use rustbgpd_wire::{
    Afi, AsPath, AsPathSegment, COMMUNITY_NO_EXPORT, ExtendedCommunity, FlowSpecAction, FlowSpecComponent,
    FlowSpecPrefix, FlowSpecRule, Ipv4Prefix, Ipv4UnicastMode, Ipv6ExtendedCommunity, Ipv6Prefix,
    Ipv6PrefixOffset, MpReachNlri, MpUnreachNlri, NumericMatch, Origin, PathAttribute, Safi, UpdateMessage,
};
use thalweg_wire::{BitRate, FlowKey, Protocol};
use thiserror::Error;

/// Maximum length of the rules of one UPDATE message, in bytes. With its attributes it is shorter than 4,096 bytes, the maximum
/// of RFC 4271.
const RULES_PER_UPDATE: usize = 3_600;

/// Preference within an autonomous system, the usual default (RFC 4271, section 5.1.5).
const LOCAL_PREFERENCE: u32 = 100;

/// The match of a rule. Several flows of a protocol without ports may have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Rule {
    destination: IpAddr,
    source: IpAddr,
    protocol: Protocol,
    /// Destination and source port; `None` for protocols other than TCP and UDP.
    ports: Option<(u16, u16)>,
}

/// What a router does with the packets of a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// It sets the differentiated services code point (RFC 8955, section 7.5), 0 to 63.
    Mark(u8),
    /// It drops what exceeds this rate (RFC 8955, section 7.1).
    RateLimit(BitRate),
    /// It forwards them in another routing instance, or to another next hop.
    Redirect(RedirectTarget),
}

/// Where packets are redirected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectTarget {
    /// The routing instance that imports this route target, with a number of an autonomous system (RFC 8955, section 7.4).
    RouteTarget {
        /// The autonomous system.
        asn: u32,
        /// The number that it has assigned; at most 65,535 if that of the system exceeds 65,535.
        number: u32,
    },
    /// The same with an address.
    AddressTarget {
        /// The address.
        address: Ipv4Addr,
        /// The number.
        number: u16,
    },
    /// The next hop (draft-ietf-idr-flowspec-redirect-ip), for flows of the same IP version.
    NextHop(IpAddr),
}

/// An invalid redirect target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "invalid redirect target {0:?}: expected a route target such as 64500:100 or 192.0.2.1:100, or the address of a next hop"
)]
pub struct ParseTargetError(String);

/// How the attributes of a session's rules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encoding {
    /// The autonomous system of this speaker.
    pub(super) local_as: u32,
    /// Whether the peer is in the same autonomous system.
    pub(super) is_internal: bool,
    /// Whether both sides use numbers of 4 bytes (RFC 6793).
    pub(super) four_octet_as: bool,
}

impl FromStr for RedirectTarget {
    type Err = ParseTargetError;

    fn from_str(text: &str) -> Result<RedirectTarget, ParseTargetError> {
        let error = || ParseTargetError(text.to_owned());
        if let Ok(address) = text.parse() {
            return Ok(RedirectTarget::NextHop(address));
        }
        let (administrator, number) = text.split_once(':').ok_or_else(error)?;
        if let Ok(address) = administrator.parse() {
            let number = number.parse().map_err(|_| error())?;
            return Ok(RedirectTarget::AddressTarget { address, number });
        }
        let (asn, number) = (administrator.parse::<u32>(), number.parse::<u32>());
        match (asn, number) {
            (Ok(asn), Ok(number)) if asn <= 0xFFFF || number <= 0xFFFF => {
                Ok(RedirectTarget::RouteTarget { asn, number })
            }
            _ => Err(error()),
        }
    }
}

impl fmt::Display for RedirectTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedirectTarget::RouteTarget { asn, number } => write!(f, "{asn}:{number}"),
            RedirectTarget::AddressTarget { address, number } => write!(f, "{address}:{number}"),
            RedirectTarget::NextHop(address) => write!(f, "{address}"),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Mark(dscp) => write!(f, "mark with DSCP {dscp}"),
            Action::RateLimit(rate) => write!(f, "limit to {rate}"),
            Action::Redirect(target) => write!(f, "redirect to {target}"),
        }
    }
}

impl Action {
    /// Whether it can apply to packets of a family.
    pub(super) fn applies_to(self, family: Afi) -> bool {
        match self {
            Action::Redirect(RedirectTarget::NextHop(address)) => address.is_ipv4() == (family == Afi::Ipv4),
            _ => true,
        }
    }

    /// Returns the attribute that carries it.
    fn attribute(self, local_as: u32) -> PathAttribute {
        let community = |action| {
            PathAttribute::ExtendedCommunities(vec![ExtendedCommunity::from_flowspec_action(&action)])
        };
        match self {
            Action::Mark(dscp) => community(FlowSpecAction::TrafficMarking { dscp }),
            Action::RateLimit(rate) => {
                // Informative; zero if it does not fit (RFC 8955, section 7.1).
                let asn = u16::try_from(local_as).unwrap_or(0);
                community(FlowSpecAction::TrafficRateBytes { asn, rate: (rate.0 as f64 / 8.0) as f32 })
            }
            Action::Redirect(RedirectTarget::RouteTarget { asn, number }) => {
                community(match (u16::try_from(asn), u16::try_from(number)) {
                    (Ok(asn), _) => FlowSpecAction::Redirect2Octet { asn, value: number },
                    (Err(_), number) => {
                        FlowSpecAction::Redirect4Octet { asn, value: number.unwrap_or(u16::MAX) }
                    }
                })
            }
            Action::Redirect(RedirectTarget::AddressTarget { address, number }) => {
                community(FlowSpecAction::RedirectIpv4 { addr: address, value: number })
            }
            Action::Redirect(RedirectTarget::NextHop(IpAddr::V4(addr))) => {
                community(FlowSpecAction::RedirectToIp { addr, copy: false })
            }
            Action::Redirect(RedirectTarget::NextHop(IpAddr::V6(addr))) => {
                let community = Ipv6ExtendedCommunity::from_flowspec_redirect_to_ip(addr, false);
                PathAttribute::Ipv6ExtendedCommunities(vec![community])
            }
        }
    }
}

impl Rule {
    /// Returns the rule that matches a flow.
    pub(super) fn of(key: &FlowKey) -> Rule {
        let has_ports = matches!(key.protocol, Protocol::TCP | Protocol::UDP);
        Rule {
            destination: key.dst(),
            source: key.src(),
            protocol: key.protocol,
            ports: has_ports.then_some((key.dst_port, key.src_port)),
        }
    }

    /// Returns its address family.
    pub(super) fn family(&self) -> Afi {
        match self.destination {
            IpAddr::V4(_) => Afi::Ipv4,
            IpAddr::V6(_) => Afi::Ipv6,
        }
    }

    /// Returns its components by number.
    pub(super) fn components(&self) -> FlowSpecRule {
        let mut components = vec![
            FlowSpecComponent::DestinationPrefix(host(self.destination)),
            FlowSpecComponent::SourcePrefix(host(self.source)),
            FlowSpecComponent::IpProtocol(vec![equal(self.protocol.0.into())]),
        ];
        if let Some((destination, source)) = self.ports {
            components.push(FlowSpecComponent::DestinationPort(vec![equal(destination.into())]));
            components.push(FlowSpecComponent::SourcePort(vec![equal(source.into())]));
        }
        FlowSpecRule { components }
    }
}

fn host(address: IpAddr) -> FlowSpecPrefix {
    match address {
        IpAddr::V4(address) => FlowSpecPrefix::V4(Ipv4Prefix::new(address, 32)),
        IpAddr::V6(address) => {
            FlowSpecPrefix::V6(Ipv6PrefixOffset { prefix: Ipv6Prefix::new(address, 128), offset: 0 })
        }
    }
}

fn equal(value: u64) -> NumericMatch {
    NumericMatch { end_of_list: true, and_bit: false, lt: false, gt: false, eq: true, value }
}

/// Returns the messages that announce rules of one family.
///
/// # Errors
/// A message, if they cannot be encoded.
pub(super) fn announce(
    rules: &[Rule],
    family: Afi,
    action: Action,
    encoding: Encoding,
) -> Result<Vec<UpdateMessage>, String> {
    let path = match encoding.is_internal {
        true => Vec::new(),
        false => vec![AsPathSegment::AsSequence(vec![encoding.local_as])],
    };
    let update = |rules: Vec<FlowSpecRule>| {
        let reach = MpReachNlri {
            afi: family,
            safi: Safi::FlowSpec,
            next_hop: Ipv4Addr::UNSPECIFIED.into(),
            link_local_next_hop: None,
            announced: Vec::new(),
            flowspec_announced: rules,
            evpn_announced: Vec::new(),
            bgpls_announced: Vec::new(),
            vpn_announced: Vec::new(),
            labeled_announced: Vec::new(),
            rtc_announced: Vec::new(),
        };
        let mut attributes = vec![
            PathAttribute::Origin(Origin::Igp),
            PathAttribute::AsPath(AsPath { segments: path.clone() }),
        ];
        if encoding.is_internal {
            attributes.push(PathAttribute::LocalPref(LOCAL_PREFERENCE));
        }
        // The rules are for the networks of the operator.
        attributes.push(PathAttribute::Communities(vec![COMMUNITY_NO_EXPORT]));
        attributes.push(PathAttribute::MpReachNlri(Box::new(reach)));
        attributes.push(action.attribute(encoding.local_as));
        message(&attributes, encoding)
    };
    batches(rules, family).into_iter().map(update).collect()
}

/// Returns the messages that withdraw rules of one family.
///
/// # Errors
/// A message, if they cannot be encoded.
pub(super) fn withdraw(
    rules: &[Rule],
    family: Afi,
    encoding: Encoding,
) -> Result<Vec<UpdateMessage>, String> {
    let update = |rules: Vec<FlowSpecRule>| {
        let unreach = MpUnreachNlri {
            afi: family,
            safi: Safi::FlowSpec,
            withdrawn: Vec::new(),
            flowspec_withdrawn: rules,
            evpn_withdrawn: Vec::new(),
            bgpls_withdrawn: Vec::new(),
            vpn_withdrawn: Vec::new(),
            labeled_withdrawn: Vec::new(),
            rtc_withdrawn: Vec::new(),
        };
        message(&[PathAttribute::MpUnreachNlri(Box::new(unreach))], encoding)
    };
    batches(rules, family).into_iter().map(update).collect()
}

fn message(attributes: &[PathAttribute], encoding: Encoding) -> Result<UpdateMessage, String> {
    let four_octet_as = encoding.four_octet_as;
    UpdateMessage::try_build(&[], &[], attributes, four_octet_as, false, Ipv4UnicastMode::MpReach)
        .map_err(|error| format!("cannot encode an UPDATE message: {error}"))
}

/// Divides rules into parts that fit into one message each.
fn batches(rules: &[Rule], family: Afi) -> Vec<Vec<FlowSpecRule>> {
    let mut batches: Vec<Vec<FlowSpecRule>> = Vec::new();
    let mut free = 0;
    for rule in rules {
        let components = rule.components();
        // With a length of one byte, or two if it exceeds 239 (RFC 8955, section 4.1).
        let length = components.encoded_len(family) + 2;
        if length > free || batches.is_empty() {
            batches.push(Vec::new());
            free = RULES_PER_UPDATE;
        }
        free = free.saturating_sub(length);
        batches.last_mut().expect("there is one").push(components);
    }
    batches
}

/// Returns the families of rules.
pub(super) const FAMILIES: [Afi; 2] = [Afi::Ipv4, Afi::Ipv6];

/// Returns the name of a family.
pub(super) const fn family_name(family: Afi) -> &'static str {
    match family {
        Afi::Ipv4 => "IPv4",
        _ => "IPv6",
    }
}

#[cfg(test)]
mod tests;
