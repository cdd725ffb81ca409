//! Objects that count packets of one queue. IF-MIB has none; vendors have their own.

use async_snmp::Oid;

/// The part of an OID that stands for `ifIndex`.
const INDEX: &str = "{index}";

/// An OID with a place for the index of the interface: `1.3.6.1.4.1.2636.3.15.1.1.23.{index}.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidTemplate {
    arcs: Vec<Option<u32>>,
}

/// Objects of a queue: packets that left it, and packets that it dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueObjects {
    /// Packets that left the queue.
    pub sent_packets: OidTemplate,
    /// Packets that the queue dropped.
    pub dropped_packets: OidTemplate,
}

impl OidTemplate {
    /// Parses an OID of numbers, in which `{index}` stands for the index of the interface.
    ///
    /// # Errors
    /// A message that says what is expected.
    pub fn parse(text: &str) -> Result<OidTemplate, String> {
        let arc = |part: &str| match part {
            INDEX => Some(None),
            part => part.parse().ok().map(Some),
        };
        let arcs: Option<Vec<Option<u32>>> = text.trim_start_matches('.').split('.').map(arc).collect();
        let template = arcs.map(|arcs| OidTemplate { arcs });
        let is_valid =
            |template: &OidTemplate| template.arcs.len() > 2 && template.oid(1).validate_all().is_ok();
        template.filter(is_valid).ok_or_else(|| {
            format!(
                "invalid OID {text:?}: expected numbers with dots, in which {{index}} stands for ifIndex, such as \
                 1.3.6.1.4.1.2636.3.15.1.1.23.{{index}}.0"
            )
        })
    }

    pub(super) fn oid(&self, index: u32) -> Oid {
        Oid::new(self.arcs.iter().map(|arc| arc.unwrap_or(index)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_filled_in() {
        let template = OidTemplate::parse(".1.3.6.1.4.1.99.{index}.2").unwrap();
        assert_eq!(template.oid(17).to_string(), "1.3.6.1.4.1.99.17.2");
        for text in ["", "1", "ifOutDiscards", "1.3.x", "1.3.{port}.1", "9.9.9"] {
            assert!(OidTemplate::parse(text).is_err(), "{text}");
        }
    }
}
