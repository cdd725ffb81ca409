//! The expression of a filter: a tree whose leaves each compare one field. Evaluation does not allocate.
//!
//! Evaluation is three-valued (Kleene 1938): a leaf on a field that the flow does not have is unknown, and so is any
//! expression that depends only on it.

use std::fmt;

use thalweg_wire::IpVersion;

use super::fields::{Field, FlowFields};
use super::prefix::Networks;
use super::text::Pattern;

/// IP protocols with types and codes: ICMP and ICMPv6.
const ICMP: [u64; 2] = [1, 58];
const TCP: u64 = 6;
/// Letters of the flags and their bits in `tcpControlBits`.
pub(super) const FLAG_LETTERS: [(char, u8); 6] =
    [('F', 0x01), ('S', 0x02), ('R', 0x04), ('P', 0x08), ('A', 0x10), ('U', 0x20)];

/// The expression of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    /// Conjunction.
    And(Box<[Expression]>),
    /// Disjunction.
    Or(Box<[Expression]>),
    /// Negation.
    Not(Box<Expression>),
    /// Every flow.
    Any,
    /// Flows of one IP version.
    Family(IpVersion),
    /// Flows that are cheetahs.
    Cheetah,
    /// Flows with an address in one of these networks.
    Address(Subject, Networks),
    /// Flows with a number that satisfies the comparison.
    Number(Subject, Comparison, u64),
    /// Flows with a text that matches.
    Text(Subject, Pattern),
    /// Flows with one of these sorted numbers.
    OneOf(Subject, Box<[u64]>),
    /// Flows with this MPLS label at any position.
    MplsAny(u64),
    /// TCP flows with these flags.
    Flags {
        /// The flags.
        mask: u8,
        /// Whether one of them suffices, as after an odd number of negations.
        is_any: bool,
    },
}

/// A comparison of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Parses a sign or a name.
    pub(super) fn parse(word: &str) -> Option<Comparison> {
        Some(match word {
            "=" | "==" | "eq" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" | "lt" => Comparison::Less,
            "<=" | "le" => Comparison::LessOrEqual,
            ">" | "gt" => Comparison::Greater,
            ">=" | "ge" => Comparison::GreaterOrEqual,
            _ => return None,
        })
    }

    fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        }
    }
}

/// Displays nothing for equality, the default.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparison::Equal => "",
            Comparison::NotEqual => "!= ",
            Comparison::Less => "< ",
            Comparison::LessOrEqual => "<= ",
            Comparison::Greater => "> ",
            Comparison::GreaterOrEqual => ">= ",
        })
    }
}

/// How the results of a term's two fields combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    First,
    Second,
    Either,
    Both,
}

/// The compared field, or two fields of the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// The words before the term: `src `, `dst `, `src and dst `, `in `, `out `, `in src ` and so on, or none.
    pub(super) qualifier: &'static str,
    pub(super) word: &'static str,
    pub(super) fields: [Field; 2],
    pub(super) which: Which,
}

impl Subject {
    /// Creates a subject of one field.
    pub(super) const fn one(word: &'static str, field: Field) -> Subject {
        Subject { qualifier: "", word, fields: [field; 2], which: Which::First }
    }

    fn holds(&self, test: impl Fn(Field) -> Option<bool>) -> Option<bool> {
        let [first, second] = self.fields;
        match self.which {
            Which::First => test(first),
            Which::Second => test(second),
            Which::Either => or(test(first), test(second)),
            Which::Both => and(test(first), test(second)),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.qualifier, self.word)
    }
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn or(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    and(left.map(|value| !value), right.map(|value| !value)).map(|value| !value)
}

impl Expression {
    /// Evaluates the expression for a flow; `None` if the result depends on a field that the flow does not have.
    pub(super) fn evaluate(&self, flow: &impl FlowFields) -> Option<bool> {
        match self {
            Expression::And(parts) => all(parts, flow, Some(true)),
            Expression::Or(parts) => all(parts, flow, Some(false)).map(|none| !none),
            Expression::Not(inner) => inner.evaluate(flow).map(|holds| !holds),
            Expression::Any => Some(true),
            Expression::Family(version) => {
                let address = flow.address(Field::SrcAddress)?;
                Some(address.is_ipv4() == (*version == IpVersion::V4))
            }
            Expression::Cheetah => flow.number(Field::Cheetah).map(|is_cheetah| is_cheetah != 0),
            Expression::Address(subject, networks) => {
                subject.holds(|field| flow.address(field).map(|address| networks.contain(address)))
            }
            Expression::Number(subject, comparison, right) => {
                subject.holds(|field| restricted(flow, field, |left| comparison.holds(left, *right)))
            }
            Expression::Text(subject, pattern) => {
                subject.holds(|field| flow.text(field).map(|text| pattern.matches(text)))
            }
            Expression::OneOf(subject, values) => {
                subject.holds(|field| flow.number(field).map(|value| values.binary_search(&value).is_ok()))
            }
            Expression::MplsAny(label) => flow.has_mpls_label(*label),
            Expression::Flags { mask, is_any } => restricted(flow, Field::TcpFlags, |flags| {
                let set = flags & u64::from(*mask);
                if *is_any { set != 0 } else { set == u64::from(*mask) }
            }),
        }
    }

    /// Whether the expression compares a field.
    pub(super) fn uses(&self, field: Field) -> bool {
        let has = |subject: &Subject| match subject.which {
            Which::First => subject.fields[0].of_column() == field.of_column(),
            Which::Second => subject.fields[1].of_column() == field.of_column(),
            Which::Either | Which::Both => subject.fields.contains(&field),
        };
        match self {
            Expression::And(parts) | Expression::Or(parts) => parts.iter().any(|part| part.uses(field)),
            Expression::Not(inner) => inner.uses(field),
            Expression::Any => false,
            Expression::Family(_) => field == Field::SrcAddress,
            Expression::Cheetah => field == Field::Cheetah,
            Expression::MplsAny(_) => field.of_column() == Field::MplsBottom,
            Expression::Address(subject, _)
            | Expression::OneOf(subject, _)
            | Expression::Text(subject, _) => has(subject),
            Expression::Number(subject, ..) => {
                let restricted = [Field::TcpFlags, Field::IcmpType, Field::IcmpCode];
                has(subject)
                    || field == Field::Protocol && restricted.iter().any(|of| subject.fields.contains(of))
            }
            Expression::Flags { .. } => matches!(field, Field::TcpFlags | Field::Protocol),
        }
    }

    /// Whether the expression needs parentheses inside another.
    fn is_list(&self) -> bool {
        matches!(self, Expression::And(_) | Expression::Or(_))
    }
}

/// Whether all parts are `wanted`; stops at the first that is not.
fn all(parts: &[Expression], flow: &impl FlowFields, wanted: Option<bool>) -> Option<bool> {
    let mut is_known = true;
    for part in parts {
        match part.evaluate(flow) {
            None => is_known = false,
            holds if holds != wanted => return Some(false),
            _ => {}
        }
    }
    is_known.then_some(true)
}

/// Tests a field that only some protocols have. It fails for all others.
fn restricted(flow: &impl FlowFields, field: Field, test: impl Fn(u64) -> bool) -> Option<bool> {
    let value = flow.number(field)?;
    let protocol = || flow.number(Field::Protocol);
    match field {
        Field::TcpFlags if protocol()? != TCP => Some(false),
        Field::IcmpType | Field::IcmpCode if !ICMP.contains(&protocol()?) => Some(false),
        _ => Some(test(value)),
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::And(parts) => joined(f, parts, " and ", Expression::is_list),
            Expression::Or(parts) => joined(f, parts, " or ", |part| matches!(part, Expression::Or(_))),
            Expression::Not(inner) if inner.is_list() => write!(f, "not ({inner})"),
            Expression::Not(inner) => write!(f, "not {inner}"),
            Expression::Any => f.write_str("any"),
            Expression::Family(IpVersion::V4) => f.write_str("ipv4"),
            Expression::Family(IpVersion::V6) => f.write_str("ipv6"),
            Expression::Cheetah => f.write_str("cheetah"),
            Expression::MplsAny(label) => write!(f, "mpls any {label}"),
            Expression::Address(subject, networks) => match networks.only() {
                Some(only) => write!(f, "{subject} {only}"),
                None => listed(f, subject, networks.iter()),
            },
            Expression::Text(subject, pattern) => write!(f, "{subject} {pattern}"),
            Expression::Number(subject, comparison, value) if subject.word == "mac" => {
                write!(f, "{subject} {comparison}{}", mac_text(*value))
            }
            Expression::Number(subject, comparison, value) => write!(f, "{subject} {comparison}{value}"),
            Expression::OneOf(subject, values) => listed(f, subject, values.iter()),
            Expression::Flags { mask, .. } => {
                f.write_str("flags ")?;
                let letters = FLAG_LETTERS.iter().filter(|(_, flag)| mask & flag != 0);
                letters.map(|(letter, _)| letter).try_for_each(|letter| write!(f, "{letter}"))
            }
        }
    }
}

/// Returns a MAC address as filters read it, also that of zeros.
fn mac_text(number: u64) -> String {
    let [_, _, bytes @ ..] = number.to_be_bytes();
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

fn joined(
    f: &mut fmt::Formatter<'_>,
    parts: &[Expression],
    word: &str,
    needs_parentheses: impl Fn(&Expression) -> bool,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        f.write_str(if index > 0 { word } else { "" })?;
        match needs_parentheses(part) {
            true => write!(f, "({part})")?,
            false => write!(f, "{part}")?,
        }
    }
    Ok(())
}

fn listed(
    f: &mut fmt::Formatter<'_>,
    subject: &Subject,
    items: impl Iterator<Item = impl fmt::Display>,
) -> fmt::Result {
    write!(f, "{subject} in [")?;
    for (index, item) in items.enumerate() {
        write!(f, "{}{item}", if index > 0 { ", " } else { "" })?;
    }
    f.write_str("]")
}
