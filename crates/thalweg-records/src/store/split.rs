//! Addresses with IPv4 apart: most are IPv4, and take four bytes rather than sixteen.

use thalweg_wire::flow_export::Address;

/// Some addresses. All of one kind are in one list, without places.
#[derive(Default)]
pub(super) struct Split {
    /// IPv4: as many as there are addresses. In others' places is the IPv4 address before, or the first.
    pub(super) v4: Vec<u32>,
    /// All others, in order.
    pub(super) others: Vec<u128>,
    /// Where they are.
    pub(super) places: Vec<u32>,
}

impl Split {
    /// Takes these addresses instead of those before.
    pub(super) fn take(&mut self, values: &[Address]) {
        self.v4.clear();
        self.others.clear();
        self.places.clear();
        let Some(mut before) = values.iter().find_map(|value| value.as_v4()) else {
            return self.others.extend(values.iter().map(|value| value.0));
        };
        self.v4.reserve(values.len());
        for (place, value) in values.iter().enumerate() {
            match value.as_v4() {
                Some(number) => before = number,
                None => {
                    self.others.push(value.0);
                    self.places.push(place as u32);
                }
            }
            self.v4.push(before);
        }
    }
}
