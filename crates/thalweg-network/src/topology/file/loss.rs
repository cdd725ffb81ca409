//! How files write the loss rates of a link.

use serde_json::{Value, json};
use thalweg_config::kind::{Kind, Reads};
use thalweg_config::{Form, Literal};

use crate::topology::LossRate;

/// The loss rates of a link: one for both directions, or one for each.
#[derive(Clone, Copy, Debug)]
pub struct LossRates;

impl Kind for LossRates {
    fn form(&self) -> Form {
        Form::Shares
    }

    fn expected(&self) -> String {
        "a probability from 0% to 100% such as \"0.01%\" or 0.0001, or one for each direction, as in [\"0.1%\", \"0%\"]"
            .to_owned()
    }

    fn schema(&self) -> Value {
        let one = json!({ "anyOf": [
            { "type": "string", "pattern": "^\\s*[0-9.]+([eE][+-]?[0-9]+)?\\s*%?\\s*$" },
            { "type": "number", "minimum": 0, "maximum": 1 },
        ] });
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 2, "maxItems": 2 }] })
    }
}

impl Reads<[LossRate; 2]> for LossRates {
    fn read(&self, literal: &Literal) -> Option<[LossRate; 2]> {
        let rate = |text: &String| text.parse().ok();
        match (literal, literal.texts()) {
            (Literal::Single(_), [both]) => rate(both).map(|rate| [rate, rate]),
            (Literal::List(_), [forth, back]) => Some([rate(forth)?, rate(back)?]),
            _ => None,
        }
    }
}
