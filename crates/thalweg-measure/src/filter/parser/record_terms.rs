//! Terms that only flow records have: routers, interfaces, VRFs, MPLS labels, MAC addresses, countries.

use thalweg_wire::flow_export::Mac;

use super::super::expression::{Comparison, Expression, Subject, Which};
use super::super::fields::Field;
use super::super::numbers::MAX_COUNT;
use super::super::term::Term;
use super::super::text::Pattern;
use super::super::tokens::Token;
use super::{Parsed, Parser, Qualifier};

/// Whose MAC addresses: of incoming or of outgoing packets.
#[derive(Clone, Copy)]
pub(super) enum MacSide {
    In,
    Out,
}

impl MacSide {
    pub(super) fn of(is_in: bool) -> MacSide {
        if is_in { MacSide::In } else { MacSide::Out }
    }

    fn subject(self, ends: Qualifier) -> Subject {
        let (texts, fields) = match self {
            MacSide::In => (["in ", "in src ", "in dst "], [Field::SrcMac, Field::DstMac]),
            MacSide::Out => (["out ", "out src ", "out dst "], [Field::PostSrcMac, Field::PostDstMac]),
        };
        let text = match ends.which {
            Which::First => texts[1],
            Which::Second => texts[2],
            Which::Either | Which::Both => texts[0],
        };
        Qualifier { text, which: ends.which }.subject("mac", fields)
    }
}

/// The largest MPLS label.
const MAX_LABEL: u64 = 0xF_FFFF;

/// The terms of labels, by position.
const LABELS: [&str; 10] = [
    "mpls label1",
    "mpls label2",
    "mpls label3",
    "mpls label4",
    "mpls label5",
    "mpls label6",
    "mpls label7",
    "mpls label8",
    "mpls label9",
    "mpls label10",
];

/// The terms of experimental bits, by position.
const EXPERIMENTAL: [&str; 10] = [
    "mpls exp1",
    "mpls exp2",
    "mpls exp3",
    "mpls exp4",
    "mpls exp5",
    "mpls exp6",
    "mpls exp7",
    "mpls exp8",
    "mpls exp9",
    "mpls exp10",
];

/// Returns term, subject and largest value of the word after `mpls`.
fn mpls_subject(word: &str) -> Option<(Term, Subject, u64)> {
    let among = |names: [&'static str; 10]| {
        let position = names.iter().position(|name| name.strip_prefix("mpls ") == Some(word))?;
        Some((names[position], position as u8 + 1))
    };
    if word == "eos" {
        return Some((Term::MplsEos, Subject::one("mpls eos", Field::MplsBottom), MAX_LABEL));
    }
    if let Some((name, position)) = among(LABELS) {
        return Some((Term::MplsLabel, Subject::one(name, Field::MplsLabel(position)), MAX_LABEL));
    }
    let (name, position) = among(EXPERIMENTAL)?;
    Some((Term::MplsExp, Subject::one(name, Field::MplsExperimental(position)), 7))
}

impl Parser<'_> {
    /// Parses terms of several words that start with `word`.
    pub(super) fn of_several_words(&mut self, word: &Token) -> Parsed<Expression> {
        match word.key.as_str() {
            "next" if self.take(&["as"]) => {
                self.require(Term::NextAs, "next as", word)?;
                self.number_or_list(Subject::one("next as", Field::NextAs), 0xFFFF_FFFF)
            }
            "next" => {
                self.must("ip")?;
                self.require(Term::NextIp, "next ip", word)?;
                self.addresses(Subject::one("next ip", Field::NextHop))
            }
            "bgpnext" => {
                self.must("ip")?;
                self.require(Term::BgpNextIp, "bgpnext ip", word)?;
                self.addresses(Subject::one("bgpnext ip", Field::BgpNextHop))
            }
            "prev" => {
                self.must("as")?;
                self.require(Term::PrevAs, "prev as", word)?;
                self.number_or_list(Subject::one("prev as", Field::PreviousAs), 0xFFFF_FFFF)
            }
            "router" if self.take(&["name"]) => {
                self.require(Term::RouterName, "router name", word)?;
                self.named(Subject::one("router name", Field::ExporterName))
            }
            "router" => {
                self.must("ip")?;
                self.require(Term::RouterIp, "router ip", word)?;
                self.addresses(Subject::one("router ip", Field::Exporter))
            }
            "min" => {
                self.must("ttl")?;
                self.require(Term::MinTtl, "min ttl", word)?;
                self.compared(Subject::one("min ttl", Field::MinTtl), 0xFF)
            }
            "max" => {
                self.must("ttl")?;
                self.require(Term::MaxTtl, "max ttl", word)?;
                self.compared(Subject::one("max ttl", Field::MaxTtl), 0xFF)
            }
            "customer" => {
                self.must("vlan")?;
                self.require(Term::CustomerVlan, "customer vlan", word)?;
                self.equal(Subject::one("customer vlan", Field::CustomerVlanId), 0xFFF)
            }
            _ => {
                let is_point = self.take(&["point"]);
                if !is_point {
                    self.must("domain")?;
                }
                self.must("id")?;
                let (term, field, max) = match is_point {
                    true => (Term::ObservationPointId, Field::ObservationPointId, MAX_COUNT),
                    false => (Term::ObservationDomainId, Field::ObservationDomainId, 0xFFFF_FFFF),
                };
                self.require(term, term.name(), word)?;
                self.equal(Subject::one(term.name(), field), max)
            }
        }
    }

    /// Parses the rest of `mpls label1`, `mpls exp1`, `mpls eos` and `mpls any`.
    pub(super) fn mpls(&mut self, first: &Token) -> Parsed<Expression> {
        let word = self.step();
        if word.key == "any" {
            self.require(Term::MplsAny, "mpls any", first)?;
            self.take(&["=", "==", "eq"]);
            let word = self.step();
            return self.number(word, MAX_LABEL).map(Expression::MplsAny);
        }
        let Some((term, subject, max)) = mpls_subject(&word.key) else {
            let what = "'label1' to 'label10', 'exp1' to 'exp10', 'eos' or 'any'";
            let names = LABELS.iter().chain(&EXPERIMENTAL).map(|name| name.trim_start_matches("mpls "));
            let known: Vec<&str> = names.chain(["eos", "any"]).collect();
            return Err(self.expected_one_of(what, word, &known));
        };
        self.require(term, subject.word, first)?;
        self.compared(subject, max)
    }

    /// Parses the rest of `vrf`.
    pub(super) fn vrf(&mut self, qualifier: Qualifier, word: &Token) -> Parsed<Expression> {
        if self.take(&["name"]) {
            self.require(Term::VrfName, "vrf name", word)?;
            let fields = [Field::IngressVrfName, Field::EgressVrfName];
            return self.named(qualifier.subject("vrf name", fields));
        }
        self.require(Term::Vrf, "vrf", word)?;
        self.equal(qualifier.subject("vrf", [Field::IngressVrfId, Field::EgressVrfId]), 0xFFFF_FFFF)
    }

    /// Parses the address of `mac`. `sides`: incoming packets, outgoing ones, or both.
    pub(super) fn mac(&mut self, sides: &[MacSide], ends: Qualifier) -> Parsed<Expression> {
        let word = self.step();
        let parsed = word.key.parse::<Mac>();
        let mac = parsed.map_err(|()| self.expected("a MAC address such as 02:00:00:00:00:01", word))?;
        let compared = |subject| Expression::Number(subject, Comparison::Equal, mac.number());
        let of_side = |side: &MacSide| compared(side.subject(ends));
        Ok(match (sides, ends.which) {
            ([side], Which::Both) => Expression::And(
                [Qualifier::SRC, Qualifier::DST].map(|end| compared(side.subject(end))).into(),
            ),
            (sides, Which::Both) => {
                let any_side = |end| sides.iter().map(|side| compared(side.subject(end))).collect();
                Expression::And(
                    [Qualifier::SRC, Qualifier::DST].map(|end| Expression::Or(any_side(end))).into(),
                )
            }
            ([side], _) => of_side(side),
            (sides, _) => Expression::Or(sides.iter().map(of_side).collect()),
        })
    }

    pub(super) fn interface(&mut self, qualifier: Qualifier, word: &Token) -> Parsed<Expression> {
        if self.take(&["name"]) {
            self.require(Term::IfName, "if name", word)?;
            let fields = [Field::IngressInterfaceName, Field::EgressInterfaceName];
            return self.named(qualifier.subject("if name", fields));
        }
        self.require(Term::If, &word.text, word)?;
        self.equal(qualifier.subject("if", [Field::IngressInterface, Field::EgressInterface]), 0xFFFF_FFFF)
    }

    pub(super) fn named(&mut self, subject: Subject) -> Parsed<Expression> {
        let word = self.step();
        let is_sign = word.text.chars().all(|character| "()[],<>=!&|".contains(character));
        let is_quoted = word.text.starts_with(['"', '\'']);
        match is_sign || !is_quoted && word.text.contains(['"', '\'']) {
            true => Err(self.expected("a name, in quotes if it has blanks or signs", word)),
            false => Ok(Expression::Text(subject, Pattern::parse(&word.text))),
        }
    }

    pub(super) fn country(&mut self) -> Parsed<Pattern> {
        let word = self.step();
        let letters = word.text.to_ascii_uppercase();
        match letters.len() == 2 && letters.bytes().all(|letter| letter.is_ascii_uppercase()) {
            true => Ok(Pattern::exactly(&letters)),
            false => Err(self.expected("the two letters of a country, such as DE", word)),
        }
    }

    /// Parses a forwarding status: a number, or one of the four classes of RFC 7270.
    pub(super) fn forwarding_status(&mut self) -> Parsed<Expression> {
        let subject = Subject::one("fwdstat", Field::ForwardingStatus);
        let class = match self.here().key.as_str() {
            "unknown" => 0,
            "forwarded" | "forw" => 1,
            "dropped" | "drop" => 2,
            "consumed" => 3,
            _ => return self.compared(subject, 0xFF),
        };
        self.next += 1;
        let bounds = [(Comparison::GreaterOrEqual, 64 * class), (Comparison::LessOrEqual, 64 * class + 63)];
        let bounds = bounds.map(|(comparison, value)| Expression::Number(subject, comparison, value));
        Ok(Expression::And(bounds.into()))
    }
}
