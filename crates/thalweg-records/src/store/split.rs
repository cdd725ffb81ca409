//! Separates IPv4 from other addresses: most are IPv4, and need 4 bytes instead of 16.

use thalweg_wire::flow_export::Address;

/// Addresses split by kind. If all are of one kind, only one list is used and `positions` is empty.
#[derive(Default)]
pub(super) struct Split {
    /// IPv4 addresses, one per value. For other values, the previous IPv4 address, or the first one.
    pub(super) v4: Vec<u32>,
    /// All other addresses, in order.
    pub(super) others: Vec<u128>,
    /// Indices of the other addresses.
    pub(super) positions: Vec<u32>,
}

impl Split {
    /// Replaces the contents by `values`.
    pub(super) fn assign(&mut self, values: &[Address]) {
        self.v4.clear();
        self.others.clear();
        self.positions.clear();
        let Some(mut before) = values.iter().find_map(|value| value.as_v4()) else {
            return self.others.extend(values.iter().map(|value| value.0));
        };
        self.v4.reserve(values.len());
        for (position, value) in values.iter().enumerate() {
            match value.as_v4() {
                Some(number) => before = number,
                None => {
                    self.others.push(value.0);
                    self.positions.push(position as u32);
                }
            }
            self.v4.push(before);
        }
    }
}
