//! A stack of MPLS labels (RFC 3032).

use std::fmt;
use std::str::FromStr;

/// The number of labels that IPFIX has elements for (`mplsTopLabelStackSection` 70 to `mplsLabelStackSection10` 79).
pub const MAX_LABELS: usize = 10;

/// The top labels of a packet, top first, as IPFIX sends them: 20 bits of label, 3 experimental bits, now called traffic
/// class (RFC 5462), and the bit of the bottom of the stack. An entry of zeros is none, as exporters fill unused ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelStack(pub [[u8; 3]; MAX_LABELS]);

/// An entry of the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// 20 bits of label.
    pub label: u32,
    /// 3 experimental bits.
    pub experimental: u8,
    /// Whether it is at the bottom of the stack.
    pub is_bottom: bool,
}

impl Label {
    const fn of([high, middle, low]: [u8; 3]) -> Label {
        let number = u32::from_be_bytes([0, high, middle, low]);
        Label { label: number >> 4, experimental: low >> 1 & 7, is_bottom: low & 1 != 0 }
    }

    const fn bytes(self) -> [u8; 3] {
        let number = self.label << 4 | (self.experimental as u32 & 7) << 1 | self.is_bottom as u32;
        let [_, high, middle, low] = number.to_be_bytes();
        [high, middle, low]
    }
}

impl LabelStack {
    /// Whether it has a label.
    pub fn is_some(&self) -> bool {
        *self != LabelStack::default()
    }

    /// Returns an entry by its position, from 0; zeros beyond the stack.
    pub fn entry(&self, position: usize) -> Label {
        Label::of(self.0.get(position).copied().unwrap_or_default())
    }

    /// Returns the label at the bottom of the stack; 0 if it is not among the entries.
    pub fn bottom(&self) -> u32 {
        let entries = self.0.map(Label::of);
        entries.iter().find(|entry| entry.is_bottom).map_or(0, |entry| entry.label)
    }

    /// Whether it has a label, at any position.
    pub fn has(&self, label: u32) -> bool {
        self.0[..self.depth()].iter().any(|&entry| Label::of(entry).label == label)
    }

    /// The number of entries up to the last one that is not all zeros.
    fn depth(&self) -> usize {
        MAX_LABELS - self.0.iter().rev().take_while(|entry| **entry == [0; 3]).count()
    }
}

/// Displays each entry as nfdump does, `label-experimental-bottom`, separated by blanks: `16-0-0 100-5-1`.
impl fmt::Display for LabelStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for position in 0..self.depth() {
            let Label { label, experimental, is_bottom } = self.entry(position);
            let blank = if position > 0 { " " } else { "" };
            write!(f, "{blank}{label}-{experimental}-{}", u8::from(is_bottom))?;
        }
        Ok(())
    }
}

/// Reads what `Display` writes.
impl FromStr for LabelStack {
    type Err = ();

    fn from_str(text: &str) -> Result<LabelStack, ()> {
        let mut stack = LabelStack::default();
        let mut entries = text.split(' ').filter(|entry| !entry.is_empty());
        for place in &mut stack.0 {
            let Some(entry) = entries.next() else { return Ok(stack) };
            let mut numbers = entry.split('-').map(|number| number.parse::<u32>().ok());
            let mut number = |below: u32| numbers.next().flatten().filter(|number| *number < below).ok_or(());
            let (label, experimental, is_bottom) = (number(1 << 20)?, number(8)? as u8, number(2)? == 1);
            if numbers.next().is_some() {
                return Err(());
            }
            *place = Label { label, experimental, is_bottom }.bytes();
        }
        entries.next().is_none().then_some(stack).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_are_those_of_rfc_3032() {
        let mut stack = LabelStack::default();
        (stack.0[0], stack.0[2]) = ([0x00, 0x01, 0x00], [0x00, 0x06, 0x4b]);
        assert_eq!(stack.to_string(), "16-0-0 0-0-0 100-5-1");
        assert_eq!(stack.entry(2), Label { label: 100, experimental: 5, is_bottom: true });
        assert_eq!(
            (stack.bottom(), stack.entry(9), stack.entry(10)),
            (100, Label::default(), Label::default())
        );
        assert_eq!([0, 16, 100, 1].map(|label| stack.has(label)), [true, true, true, false]);
        assert!(!LabelStack::default().has(0));
        assert_eq!(LabelStack::default().to_string(), "");
        for text in ["1", "1-2", "1-2-0-0", "1048576-0-0", "1-8-0", "1-0-2", "x-0-0", &"1-0-0 ".repeat(11)] {
            assert_eq!(text.parse::<LabelStack>(), Err(()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_displayed_stack_is_read_back(bytes: [[u8; 3]; MAX_LABELS]) {
            let stack = LabelStack(bytes);
            prop_assert_eq!(stack.to_string().parse::<LabelStack>(), Ok(stack));
        }
    }
}
