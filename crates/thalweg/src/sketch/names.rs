//! Names of keys in saved sketches.

use thalweg_measure::tasks::{FlowBytes, KeyDefinition};
use thalweg_sketch::Key;
use thalweg_sketch::state::KeyBytes;

/// Names keys of one kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    definition: Option<KeyDefinition>,
}

impl Names {
    /// Creates names for a kind of keys. Kinds of other programs are unknown.
    pub(super) fn of(key_kind: &str) -> Names {
        Names { definition: key_kind.parse().ok() }
    }

    /// Returns the name of a key, or its bytes in hexadecimal.
    pub(super) fn name(&self, key: &KeyBytes) -> String {
        let flow_bytes = FlowBytes::from_bytes(key.as_bytes());
        let name = self.definition.zip(flow_bytes).and_then(|(definition, key)| definition.name(&key));
        name.map_or_else(|| key.to_string(), |name| name.to_string())
    }
}

/// Escapes the control characters of untrusted text, so that it can neither control the terminal nor fake another line.
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
    fn control_characters_are_escaped() {
        assert_eq!(visible("Zürich: a\x1b[2J\nb\u{9b}"), "Zürich: a\\u{1b}[2J\\nb\\u{9b}");
    }

    #[test]
    fn known_kinds_of_keys_have_names() {
        let key = KeyBytes::from_bytes(&[10, 0, 0, 1]).unwrap();
        assert_eq!(Names::of("src").name(&key), "10.0.0.1");
        assert_eq!(Names::of("serial number").name(&key), "0a000001");
        // Five bytes are not an address.
        let key = KeyBytes::from_bytes(&[10, 0, 0, 1, 9]).unwrap();
        assert_eq!(Names::of("src").name(&key), "0a00000109");
    }
}
