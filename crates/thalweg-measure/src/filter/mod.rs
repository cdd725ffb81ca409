//! Flow filters in nfdump's language, for metered, sampled and recorded flows.
//!
//! ```text
//! src net 10.0.0.0/8 and (dst port 443 or proto udp) and bytes > 1m
//! ```
//!
//! [`FlowFilter::compile`] compiles a filter for one [`View`]. A view has some of the language's terms, and the error
//! for any other term names it. [`FlowFilter::matches`] evaluates the filter for a flow ([`FlowFields`]) without
//! allocation.
//!
//! # Grammar
//!
//! Words are case-insensitive, `#` starts a comment, `and` binds more tightly than `or`, and `not` most tightly.
//!
//! ```text
//! filter    = [ or ]
//! or        = and { ("or" | "||") and }
//! and       = not { ("and" | "&&") not }
//! not       = ("not" | "!") not | "(" or ")" | primitive
//! primitive = "any" | "cheetah"
//!           | "ipv4" | "inet" | "ipv6" | "inet6"
//!           | "proto" (NAME | NUMBER)
//!           | [end] ("ip" | "host") (ADDRESS | PREFIX | "in" "[" (ADDRESS | PREFIX) ... "]")
//!           | [end] "net" (PREFIX | ADDRESS NETMASK)
//!           | [end] "port" ([compare] NUMBER | "in" "[" NUMBER ... "]")
//!           | [end] "as" ([compare] NUMBER | "in" "[" NUMBER ... "]")
//!           | [end] "mask" NUMBER
//!           | ["in" | "out"] "if" (NUMBER | "name" TEXT)
//!           | ("next" | "bgpnext" | "router") "ip" (ADDRESS | PREFIX | "in" "[" (ADDRESS | PREFIX) ... "]")
//!           | "router" "name" TEXT
//!           | ("next" | "prev") "as" ([compare] NUMBER | "in" "[" NUMBER ... "]")
//!           | "flags" (LETTERS | [compare] NUMBER)
//!           | ["src" | "dst"] "tos" [compare] NUMBER                         (default: "src")
//!           | [end] "vlan" NUMBER
//!           | "customer" "vlan" NUMBER
//!           | ["in" | "out"] [end] "mac" MAC
//!           | [end] "geo" COUNTRY
//!           | ["min" | "max"] "ttl" [compare] NUMBER
//!           | "fwdstat" ("unknown" | "forwarded" | "dropped" | "consumed" | [compare] NUMBER)
//!           | "mpls" ("label" N | "exp" N | "eos") [compare] NUMBER
//!           | "mpls" "any" NUMBER
//!           | ["ingress" | "egress"] "vrf" (NUMBER | "name" TEXT)
//!           | ("icmp-type" | "icmp-code") NUMBER
//!           | ("flowdir" | "dir") ("ingress" | "egress" | NUMBER)
//!           | "observation" ("domain" | "point") "id" NUMBER
//!           | ["in" | "out"] ("packets" | "bytes") [compare] NUMBER
//!           | ("flows" | "duration" | "pps" | "bps" | "bpp") [compare] NUMBER
//! end       = "src" | "dst" | "src" "or" "dst" | "src" "and" "dst"        (default: "src or dst")
//! compare   = "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "eq" | "lt" | "gt" | "le" | "ge"    (default: "=")
//! NUMBER    = decimal with an optional k, m, g or t (10^3 to 10^12), or hexadecimal after "0x"
//! PREFIX    = ADDRESS "/" bits; trailing zero octets of an IPv4 prefix may be left out: 172.16/12
//! LETTERS   = TCP flags of "FSRPAU" that must all be set, or "X" for the six; after "not", none of them may be set
//! ```
//!
//! TEXT is a word, or a text in quotes if it has blanks or signs; `*` at its end stands for any rest. Texts are compared by
//! case. N is a position in the stack of MPLS labels, 1 to 10, written without a blank: `label1`.
//!
//! Numbers in a list are separated by blanks or commas. Where a term takes no comparison, a `=` is accepted.
//!
//! # Bounds
//!
//! A filter has at most [`MAX_LENGTH`] characters and [`MAX_DEPTH`] nested parentheses and negations, so neither
//! parsing nor evaluation can exhaust the stack.
//!
//! `python/thalweg/filter` translates the same language to SQL for stored flow records. Both pass
//! `tests/filter-cases.toml`.

mod error;
mod expression;
mod fields;
mod flows;
mod numbers;
mod parser;
mod prefix;
mod term;
mod text;
mod tokens;
mod view;

use std::borrow::Cow;
use std::fmt;

pub use error::{FilterError, FilterErrorKind};
use expression::Expression;
use fields::PartOfRow;
pub use fields::{Field, FlowFields, Totals, key_address, key_number};
pub use term::Term;
pub use view::{CHEETAHS, METERED, RECORDS, SAMPLED, View};

/// The maximum length of a filter, in characters: enough for a list of some thousand addresses.
pub const MAX_LENGTH: usize = 65_536;

/// The maximum number of nested parentheses and negations.
pub const MAX_DEPTH: usize = 100;

/// A compiled flow filter. The default selects every flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowFilter {
    text: String,
    /// `None` selects every flow.
    expression: Option<Expression>,
}

impl FlowFilter {
    /// Compiles a filter for the flows of `view`. The empty text selects every flow.
    ///
    /// # Errors
    /// If `text` is not in the language, or has a term that the view does not have.
    pub fn compile(text: &str, view: &View) -> Result<FlowFilter, FilterError> {
        Ok(FlowFilter { text: text.trim().to_owned(), expression: parser::parse(text, view)? })
    }

    /// Whether the filter has no expression and so selects every flow.
    pub fn is_empty(&self) -> bool {
        self.expression.is_none()
    }

    /// Whether the result depends on a field.
    pub fn uses(&self, field: Field) -> bool {
        self.expression.as_ref().is_some_and(|expression| expression.uses(field))
    }

    /// Returns the source text, without blanks around it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the filter on one line: the source text, or the canonical form if the text has several lines or
    /// characters other than printable ASCII.
    pub fn line(&self) -> Cow<'_, str> {
        match self.text.chars().all(|character| character == ' ' || character.is_ascii_graphic()) {
            true => Cow::Borrowed(&self.text),
            false => Cow::Owned(self.to_string()),
        }
    }

    /// Whether the filter selects a flow.
    ///
    /// A term on a field that the flow does not have ([`FlowFields`]) is unknown. An unknown result selects the flow.
    pub fn matches(&self, flow: &impl FlowFields) -> bool {
        self.expression.as_ref().is_none_or(|expression| expression.evaluate(flow) != Some(false))
    }

    /// Whether the filter may select a row that combines this flow with others: as [`FlowFilter::matches`], with all
    /// amounts ([`Field::is_amount`]) unknown, because they are those of the row.
    pub fn matches_part(&self, flow: &impl FlowFields) -> bool {
        self.matches(&PartOfRow(flow))
    }
}

/// Displays the filter in canonical form, which parses to the same expression.
impl fmt::Display for FlowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expression.as_ref().map_or(Ok(()), |expression| expression.fmt(f))
    }
}

#[cfg(test)]
mod tests;
