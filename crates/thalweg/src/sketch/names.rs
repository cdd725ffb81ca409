//! Keys of saved states, as people write them.

use thalweg_measure::tasks::{FlowBytes, KeyDefinition};
use thalweg_sketch::Key;
use thalweg_sketch::state::KeyBytes;

/// Names keys of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    definition: Option<KeyDefinition>,
}

impl Names {
    /// For keys of the kind that a state says; kinds of other programs have no names.
    pub(super) fn of(key_kind: &str) -> Names {
        Names { definition: key_kind.parse().ok() }
    }

    /// The key's name, or its bytes.
    pub(super) fn name(&self, key: &KeyBytes) -> String {
        let flow_bytes = FlowBytes::from_bytes(key.as_bytes());
        let name = self.definition.zip(flow_bytes).and_then(|(definition, key)| definition.name(&key));
        name.map_or_else(|| key.to_string(), |name| name.to_string())
    }
}

/// A text of a stranger's with its control characters made visible, so that it can neither command a terminal nor
/// pretend to be another line.
pub(super) fn visible(text: &str) -> String {
    let each = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.chars().map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_command_a_terminal() {
        assert_eq!(visible("Zürich: a\x1b[2J\nb\u{9b}"), "Zürich: a\\u{1b}[2J\\nb\\u{9b}");
    }

    #[test]
    fn keys_of_our_kinds_have_names_and_others_their_bytes() {
        let key = KeyBytes::from_bytes(&[10, 0, 0, 1]).unwrap();
        assert_eq!(Names::of("src").name(&key), "10.0.0.1");
        assert_eq!(Names::of("serial number").name(&key), "0a000001");
        // Five bytes are no address.
        let key = KeyBytes::from_bytes(&[10, 0, 0, 1, 9]).unwrap();
        assert_eq!(Names::of("src").name(&key), "0a00000109");
    }
}
