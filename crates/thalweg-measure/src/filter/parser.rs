//! A recursive descent parser: one function per rule of the grammar in the module docs.

mod record_terms;

use thalweg_wire::nearest::nearest;
use thalweg_wire::{IpVersion, Protocol};

use super::MAX_DEPTH;
use super::error::{FilterError, FilterErrorKind, shown};
use super::expression::{Comparison, Expression, FLAG_LETTERS, Subject, Which};
use super::fields::Field;
use super::numbers::{MAX_COUNT, number};
use super::prefix::{Networks, Prefix};
use super::term::{FOREIGN, QUALIFIED, Term, known};
use super::tokens::{Token, tokens};
use super::view::View;
use record_terms::MacSide;

/// Minimum length of a word that gets a suggestion.
const SHORTEST_MISSPELT: usize = 3;

type Parsed<T> = Result<T, FilterError>;

/// The qualifier of a term with two fields.
#[derive(Clone, Copy)]
struct Qualifier {
    text: &'static str,
    which: Which,
}

impl Qualifier {
    const NONE: Qualifier = Qualifier { text: "", which: Which::Either };
    const SRC: Qualifier = Qualifier { text: "src ", which: Which::First };
    const DST: Qualifier = Qualifier { text: "dst ", which: Which::Second };
    const BOTH: Qualifier = Qualifier { text: "src and dst ", which: Which::Both };
    const IN: Qualifier = Qualifier { text: "in ", which: Which::First };
    const OUT: Qualifier = Qualifier { text: "out ", which: Which::Second };
    const INGRESS: Qualifier = Qualifier { text: "ingress ", which: Which::First };
    const EGRESS: Qualifier = Qualifier { text: "egress ", which: Which::Second };

    fn subject(self, word: &'static str, fields: [Field; 2]) -> Subject {
        Subject { qualifier: self.text, word, fields, which: self.which }
    }
}

/// Parses `text`; `None` if it is empty.
///
/// # Errors
/// If `text` is not in the language, or has a term that `view` does not have.
pub(super) fn parse(text: &str, view: &View) -> Parsed<Option<Expression>> {
    let tokens = tokens(text)?;
    let mut parser = Parser { text, view, tokens: &tokens, next: 0, depth: 0, is_negated: false };
    if parser.here().is_end() {
        return Ok(None);
    }
    let expression = parser.or()?;
    match parser.here().is_end() {
        true => Ok(Some(expression)),
        false => Err(parser.expected_one_of("'and', 'or' or the end", parser.here(), &["and", "or"])),
    }
}

struct Parser<'a> {
    text: &'a str,
    view: &'a View,
    tokens: &'a [Token],
    next: usize,
    depth: usize,
    /// Whether the number of negations around the current word is odd.
    is_negated: bool,
}

/// Rules.
impl<'a> Parser<'a> {
    fn or(&mut self) -> Parsed<Expression> {
        let mut parts = vec![self.and()?];
        while self.take(&["or", "||"]) {
            parts.push(self.and()?);
        }
        Ok(one_or(parts, Expression::Or))
    }

    fn and(&mut self) -> Parsed<Expression> {
        let mut parts = vec![self.not()?];
        while self.take(&["and", "&&"]) {
            parts.push(self.not()?);
        }
        Ok(one_or(parts, Expression::And))
    }

    fn not(&mut self) -> Parsed<Expression> {
        let here = self.here();
        let is_negation = matches!(here.key.as_str(), "not" | "!");
        if !is_negation && here.key != "(" {
            return self.primitive();
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(here, FilterErrorKind::TooDeep));
        }
        self.next += 1;
        let expression = if is_negation {
            self.is_negated = !self.is_negated;
            let inner = self.not()?;
            self.is_negated = !self.is_negated;
            Expression::Not(Box::new(inner))
        } else {
            let inner = self.or()?;
            if !self.take(&[")"]) {
                return Err(self.expected_one_of("'and', 'or' or ')'", self.here(), &["and", "or"]));
            }
            inner
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn primitive(&mut self) -> Parsed<Expression> {
        let first = self.here();
        match first.key.as_str() {
            "src" | "dst" => {
                let qualifier = self.ends();
                let word = self.step();
                match word.key.as_str() {
                    "tos" if qualifier.text == Qualifier::SRC.text => self.plain(word),
                    "tos" if qualifier.text == Qualifier::DST.text => {
                        self.require(Term::Tos, &word.text, word)?;
                        self.compared(Subject::one("dst tos", Field::PostTos), 0xFF)
                    }
                    _ => self.ended(qualifier, word)?.map_or_else(|| Err(self.expected_qualified(word)), Ok),
                }
            }
            "in" | "out" => {
                self.next += 1;
                self.directed(first)
            }
            _ => {
                let word = self.step();
                match self.ended(Qualifier::NONE, word)? {
                    Some(expression) => Ok(expression),
                    None => self.plain(word),
                }
            }
        }
    }

    /// Parses a term that can follow `src` and `dst`; `None` if `word` starts none.
    fn ended(&mut self, qualifier: Qualifier, word: &Token) -> Parsed<Option<Expression>> {
        let addresses = [Field::SrcAddress, Field::DstAddress];
        Ok(Some(match word.key.as_str() {
            "ip" | "host" => {
                self.require(Term::Host, &word.text, word)?;
                self.addresses(qualifier.subject("ip", addresses))?
            }
            "net" => {
                self.require(Term::Net, &word.text, word)?;
                Expression::Address(qualifier.subject("ip", addresses), vec![self.network()?].into())
            }
            "port" => {
                self.require(Term::Port, &word.text, word)?;
                self.number_or_list(qualifier.subject("port", [Field::SrcPort, Field::DstPort]), 0xFFFF)?
            }
            "as" => {
                self.require(Term::As, &word.text, word)?;
                self.number_or_list(qualifier.subject("as", [Field::SrcAs, Field::DstAs]), 0xFFFF_FFFF)?
            }
            "vlan" => {
                self.require(Term::Vlan, &word.text, word)?;
                self.equal(qualifier.subject("vlan", [Field::VlanId, Field::PostVlanId]), 0xFFF)?
            }
            "geo" => {
                self.require(Term::Geo, &word.text, word)?;
                let subject = qualifier.subject("geo", [Field::SrcCountry, Field::DstCountry]);
                Expression::Text(subject, self.country()?)
            }
            "mac" => {
                self.require(Term::Mac, &word.text, word)?;
                self.mac(&[MacSide::In, MacSide::Out], qualifier)?
            }
            "mask" => {
                self.require(Term::Mask, &word.text, word)?;
                self.equal(qualifier.subject("mask", [Field::SrcPrefixLength, Field::DstPrefixLength]), 128)?
            }
            _ => return Ok(None),
        }))
    }

    /// Parses a term after `in` or `out`.
    fn directed(&mut self, first: &Token) -> Parsed<Expression> {
        let is_in = first.key == "in";
        let word = self.step();
        let (term, name, field) = match (word.key.as_str(), is_in) {
            ("if", _) => {
                let qualifier = if is_in { Qualifier::IN } else { Qualifier::OUT };
                return self.interface(qualifier, word);
            }
            ("src" | "dst", _) => {
                self.next -= 1;
                let qualifier = self.ends();
                let word = self.here();
                self.must("mac")?;
                self.require(Term::Mac, &word.text, word)?;
                return self.mac(&[MacSide::of(is_in)], qualifier);
            }
            ("mac", _) => {
                self.require(Term::Mac, &word.text, word)?;
                return self.mac(&[MacSide::of(is_in)], Qualifier::NONE);
            }
            ("bytes", true) => (Term::InBytes, "in bytes", Field::InBytes),
            ("packets", true) => (Term::InPackets, "in packets", Field::InPackets),
            ("bytes", false) => (Term::OutBytes, "out bytes", Field::OutBytes),
            ("packets", false) => (Term::OutPackets, "out packets", Field::OutPackets),
            _ => return Err(self.expected("'if', 'mac', 'bytes' or 'packets'", word)),
        };
        self.require(term, name, first)?;
        self.compared(Subject::one(name, field), MAX_COUNT)
    }

    /// Parses terms without qualifier, and refuses all others.
    fn plain(&mut self, word: &Token) -> Parsed<Expression> {
        let term = match word.key.as_str() {
            "any" => return Ok(Expression::Any),
            "cheetah" => Term::Cheetah,
            "ipv4" | "inet" => Term::Ipv4,
            "ipv6" | "inet6" => Term::Ipv6,
            "proto" => Term::Proto,
            "flags" => Term::Flags,
            "if" => return self.interface(Qualifier::NONE, word),
            "tos" => Term::Tos,
            "fwdstat" => Term::FwdStat,
            "ttl" => Term::Ttl,
            "icmp-type" => Term::IcmpType,
            "icmp-code" => Term::IcmpCode,
            "flowdir" | "dir" => Term::FlowDir,
            "bytes" => Term::Bytes,
            "packets" => Term::Packets,
            "flows" => Term::Flows,
            "duration" => Term::Duration,
            "bps" => Term::Bps,
            "pps" => Term::Pps,
            "bpp" => Term::Bpp,
            "next" | "bgpnext" | "prev" | "router" | "observation" | "min" | "max" | "customer" => {
                return self.of_several_words(word);
            }
            "mpls" => return self.mpls(word),
            "vrf" => return self.vrf(Qualifier::NONE, word),
            "ingress" | "egress" if self.here().key == "vrf" => {
                let first = if word.key == "ingress" { Qualifier::INGRESS } else { Qualifier::EGRESS };
                self.next += 1;
                return self.vrf(first, word);
            }
            key if FOREIGN.contains(&key) => return Err(self.not_known_here(&word.text, word)),
            _ => return Err(self.expected_primitive(word)),
        };
        self.require(term, &word.text, word)?;
        match term {
            Term::Cheetah => Ok(Expression::Cheetah),
            Term::Ipv4 => Ok(Expression::Family(IpVersion::V4)),
            Term::Ipv6 => Ok(Expression::Family(IpVersion::V6)),
            Term::Proto => self.protocol(),
            Term::Flags => self.flags(),
            Term::Tos => self.compared(Subject::one("tos", Field::Tos), 0xFF),
            Term::FwdStat => self.forwarding_status(),
            Term::Ttl => self.compared(Qualifier::NONE.subject("ttl", [Field::MinTtl, Field::MaxTtl]), 0xFF),
            Term::IcmpType => self.equal(Subject::one("icmp-type", Field::IcmpType), 0xFF),
            Term::IcmpCode => self.equal(Subject::one("icmp-code", Field::IcmpCode), 0xFF),
            Term::FlowDir => self.flow_direction(),
            Term::Bytes => self.compared(Subject::one("bytes", Field::Bytes), MAX_COUNT),
            Term::Packets => self.compared(Subject::one("packets", Field::Packets), MAX_COUNT),
            Term::Flows => self.compared(Subject::one("flows", Field::Flows), MAX_COUNT),
            Term::Duration => self.compared(Subject::one("duration", Field::Duration), MAX_COUNT),
            Term::Bps => self.compared(Subject::one("bps", Field::BitRate), MAX_COUNT),
            Term::Pps => self.compared(Subject::one("pps", Field::PacketRate), MAX_COUNT),
            _ => self.compared(Subject::one("bpp", Field::PacketSize), MAX_COUNT),
        }
    }

    /// Parses `src`, `dst`, or both.
    fn ends(&mut self) -> Qualifier {
        let first = self.step();
        let is_src = first.key == "src";
        let other = if is_src { "dst" } else { "src" };
        let join = self.here().key.as_str();
        let next = self.tokens.get(self.next + 1);
        if matches!(join, "or" | "and") && next.is_some_and(|next| next.key == other) {
            self.next += 2;
            return if join == "or" { Qualifier::NONE } else { Qualifier::BOTH };
        }
        if is_src { Qualifier::SRC } else { Qualifier::DST }
    }
}

/// Values.
impl<'a> Parser<'a> {
    fn addresses(&mut self, subject: Subject) -> Parsed<Expression> {
        let networks: Networks = match self.take(&["in"]) {
            true => self.list(|parser, word| parser.prefix(word))?.into(),
            false => {
                let word = self.step();
                vec![self.prefix(word)?].into()
            }
        };
        Ok(Expression::Address(subject, networks))
    }

    fn prefix(&self, word: &Token) -> Parsed<Prefix> {
        let expected = "an IP address or a prefix such as 192.0.2.0/24 (names are not looked up)";
        Prefix::parse(&word.text).ok_or_else(|| self.expected(expected, word))
    }

    /// Parses a prefix, or an address and its netmask.
    fn network(&mut self) -> Parsed<Prefix> {
        let expected = "a prefix such as 192.0.2.0/24, or an IPv4 address and its netmask";
        let word = self.step();
        if word.text.contains('/') {
            return Prefix::parse(&word.text).ok_or_else(|| self.expected(expected, word));
        }
        let prefix = Prefix::parse_with_netmask(&word.text, &self.here().text);
        self.next += usize::from(prefix.is_some());
        prefix.ok_or_else(|| self.expected(expected, word))
    }

    fn number_or_list(&mut self, subject: Subject, max: u64) -> Parsed<Expression> {
        if !self.take(&["in"]) {
            return self.compared(subject, max);
        }
        let mut values = self.list(|parser, word| parser.number(word, max))?;
        values.sort_unstable();
        values.dedup();
        Ok(Expression::OneOf(subject, values.into()))
    }

    fn compared(&mut self, subject: Subject, max: u64) -> Parsed<Expression> {
        let comparison = Comparison::parse(&self.here().key);
        self.next += usize::from(comparison.is_some());
        let word = self.step();
        let value = self.number(word, max)?;
        Ok(Expression::Number(subject, comparison.unwrap_or(Comparison::Equal), value))
    }

    fn equal(&mut self, subject: Subject, max: u64) -> Parsed<Expression> {
        self.take(&["=", "==", "eq"]);
        let word = self.step();
        Ok(Expression::Number(subject, Comparison::Equal, self.number(word, max)?))
    }

    fn flags(&mut self) -> Parsed<Expression> {
        let word = self.here();
        let is_number = word.key.starts_with(|first: char| first.is_ascii_digit());
        if is_number || Comparison::parse(&word.key).is_some() {
            return self.compared(Subject::one("flags", Field::TcpFlags), 0xFF);
        }
        self.next += 1;
        let all = FLAG_LETTERS.iter().fold(0, |all, (_, flag)| all | flag);
        let flag = |letter: char| match letter {
            'X' => Some(all),
            letter => FLAG_LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, flag)| *flag),
        };
        let letters: Vec<char> = word.key.to_ascii_uppercase().chars().collect();
        let is_repeated = (1..letters.len()).any(|index| letters[..index].contains(&letters[index]));
        let mask = letters.iter().try_fold(0, |mask, letter| Some(mask | flag(*letter)?));
        match mask.filter(|_| !letters.is_empty() && !is_repeated) {
            Some(mask) => Ok(Expression::Flags { mask, is_any: self.is_negated }),
            None => {
                Err(self.expected("TCP flags: letters of FSRPAU, each once, X for all, or a number", word))
            }
        }
    }

    fn protocol(&mut self) -> Parsed<Expression> {
        let word = self.step();
        let is_number = word.key.starts_with(|first: char| first.is_ascii_digit());
        let value = match is_number {
            true => self.number(word, 0xFF)?,
            false => match Protocol::of_name(&word.key) {
                Some(protocol) => protocol.0.into(),
                None => {
                    let names: Vec<&'static str> = Protocol::names().collect();
                    return Err(self.expected_one_of(
                        "an IP protocol: a number, or a name such as tcp",
                        word,
                        &names,
                    ));
                }
            },
        };
        Ok(Expression::Number(Subject::one("proto", Field::Protocol), Comparison::Equal, value))
    }

    fn flow_direction(&mut self) -> Parsed<Expression> {
        let word = self.step();
        let value = match word.key.as_str() {
            "ingress" => 0,
            "egress" => 1,
            _ => self.number(word, 0xFF)?,
        };
        Ok(Expression::Number(Subject::one("flowdir", Field::FlowDirection), Comparison::Equal, value))
    }

    fn number(&self, word: &Token, max: u64) -> Parsed<u64> {
        match number(&word.key) {
            None => Err(self.expected("a number", word)),
            Some(value) if value > max => {
                Err(self.error(word, FilterErrorKind::TooLarge { number: shown(&word.text), max }))
            }
            Some(value) => Ok(value),
        }
    }

    fn list<T>(&mut self, item: impl Fn(&Self, &Token) -> Parsed<T>) -> Parsed<Vec<T>> {
        self.must("[")?;
        let mut items = Vec::new();
        while self.here().key != "]" {
            if self.here().is_end() {
                return Err(self.expected("']'", self.here()));
            }
            if !items.is_empty() {
                self.take(&[","]);
            }
            let word = self.step();
            items.push(item(self, word)?);
        }
        if items.is_empty() {
            return Err(self.error(self.here(), FilterErrorKind::EmptyList));
        }
        self.next += 1;
        Ok(items)
    }
}

/// Words and errors.
impl<'a> Parser<'a> {
    /// Returns the current word.
    fn here(&self) -> &'a Token {
        // The parser never advances past the last token, the end.
        &self.tokens[self.next.min(self.tokens.len() - 1)]
    }

    /// Returns the current word and advances.
    fn step(&mut self) -> &'a Token {
        let word = self.here();
        self.next += 1;
        word
    }

    /// Advances past the current word if it is one of these.
    fn take(&mut self, keys: &[&str]) -> bool {
        let is_one = keys.contains(&self.here().key.as_str());
        self.next += usize::from(is_one);
        is_one
    }

    fn must(&mut self, key: &'static str) -> Parsed<()> {
        match self.take(&[key]) {
            true => Ok(()),
            false => Err(self.expected_one_of(&format!("'{key}'"), self.here(), &[key])),
        }
    }

    /// Checks that the view has a term.
    fn require(&self, term: Term, written: &str, word: &Token) -> Parsed<()> {
        match self.view.meaning(term) {
            Some(_) => Ok(()),
            None => Err(self.not_known_here(written, word)),
        }
    }

    fn not_known_here(&self, written: &str, word: &Token) -> FilterError {
        let (term, known) = (shown(written), known(self.view));
        self.error(word, FilterErrorKind::NotKnownHere { term, known })
    }

    /// Returns the error for a word that cannot follow `src` or `dst`.
    fn expected_qualified(&self, word: &Token) -> FilterError {
        let is_here = |term: &Term| self.view.meaning(*term).is_some();
        // `ip` is another name of `host`.
        let names: Vec<&'static str> =
            ["ip"].into_iter().chain(QUALIFIED.into_iter().filter(is_here).map(Term::name)).collect();
        self.expected_one_of(&format!("one of {}", names.join(", ")), word, &names)
    }

    fn expected_primitive(&self, word: &Token) -> FilterError {
        if let Some(example) = example_with(word) {
            return self.expected(&format!("a term such as '{example}'"), word);
        }
        let names: Vec<&'static str> =
            self.view.terms().map(Term::name).chain(["ip", "not", "src", "dst"]).collect();
        self.expected_one_of("a term such as 'src ip 192.0.2.1', 'port 443' or 'bytes > 1m'", word, &names)
    }

    fn expected(&self, what: &str, word: &Token) -> FilterError {
        self.expected_one_of(what, word, &[])
    }

    /// Returns an error that suggests the most similar of these words.
    fn expected_one_of(&self, what: &str, word: &Token, known: &[&'static str]) -> FilterError {
        let is_long = word.key.len() >= SHORTEST_MISSPELT;
        let nearest = is_long.then(|| nearest(&word.key, known.iter().copied())).flatten();
        let kind = FilterErrorKind::Expected { what: what.to_owned(), found: word.quoted(), nearest };
        self.error(word, kind)
    }

    fn error(&self, word: &Token, kind: FilterErrorKind) -> FilterError {
        FilterError::at(self.text, word.place, kind)
    }
}

/// Returns the term that a bare value probably means.
fn example_with(word: &Token) -> Option<String> {
    let key = word.key.as_str();
    if Protocol::of_name(key).is_some() {
        return Some(format!("proto {key}"));
    }
    if let Some(prefix) = Prefix::parse(key) {
        let term = if key.contains('/') { "net" } else { "ip" };
        return Some(format!("{term} {prefix}"));
    }
    let port = number(key).filter(|port| *port <= 0xFFFF)?;
    Some(format!("port {port}"))
}

/// Returns the only expression, or joins several.
fn one_or(mut parts: Vec<Expression>, several: impl Fn(Box<[Expression]>) -> Expression) -> Expression {
    match parts.len() {
        1 => parts.remove(0),
        _ => several(parts.into()),
    }
}
