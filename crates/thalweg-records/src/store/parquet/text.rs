//! Formats addresses exactly as `Display` does, but faster: a dictionary may have hundreds of thousands.

use thalweg_wire::flow_export::Address;

/// Decimal digits of an octet and a dot, the first digit in the lowest byte, and their number.
const OCTETS: [(u32, u32); 256] = {
    let mut octets = [(0, 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let (mut text, mut length, mut rest) = (b'.' as u32, 1, octet as u32);
        while rest > 0 || length == 1 {
            (text, length, rest) = (text << 8 | (b'0' as u32 + rest % 10), length + 1, rest / 10);
        }
        octets[octet] = (text, length);
        octet += 1;
    }
    octets
};

/// Maximum length: eight groups of four digits and seven colons.
pub(crate) const MAX_LENGTH: usize = 39;

/// Formats an address; returns the text and its length.
#[inline]
pub(crate) fn address(value: Address) -> ([u8; MAX_LENGTH], usize) {
    let mut text = [0; MAX_LENGTH];
    let length = match value.as_v4() {
        Some(number) => {
            let (short, length) = v4(number);
            text[..16].copy_from_slice(&short);
            length
        }
        None if value.is_some() => v6(value.0, &mut text),
        None => 0,
    };
    (text, length)
}

/// Formats an IPv4 address; returns the text and its length.
#[inline]
pub(super) fn v4(number: u32) -> ([u8; 16], usize) {
    // In one register: a load that spans several recent stores would stall.
    let (mut text, mut length) = (0_u128, 0);
    for octet in number.to_be_bytes() {
        let (digits, bytes) = OCTETS[usize::from(octet)];
        text |= u128::from(digits) << (8 * length);
        length += bytes;
    }
    (text.to_le_bytes(), length as usize - 1)
}

/// Formats by RFC 5952: omits the first of the longest runs of at least two zero groups.
fn v6(number: u128, text: &mut [u8; MAX_LENGTH]) -> usize {
    let groups: [u16; 8] = std::array::from_fn(|index| (number >> (112 - 16 * index)) as u16);
    let zeros_from = |index: usize| groups[index..].iter().take_while(|&&group| group == 0).count();
    let runs = (0..8).map(|index| (index, zeros_from(index)));
    let (left_out, zeros) = runs.rev().max_by_key(|&(_, zeros)| zeros).unwrap_or_default();
    let is_left_out = |index| zeros >= 2 && (left_out..left_out + zeros).contains(&index);

    let mut length = 0;
    let mut push = |byte| {
        text[length] = byte;
        length += 1;
    };
    for (index, group) in groups.into_iter().enumerate() {
        if is_left_out(index) {
            if index == left_out {
                push(b':');
            }
            if index == 7 {
                push(b':');
            }
            continue;
        }
        if index > 0 {
            push(b':');
        }
        let digits = (16 - group.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            push(b"0123456789abcdef"[usize::from(group >> (4 * digit) & 0xF)]);
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: Address) -> String {
        let (text, length) = address(value);
        String::from_utf8(text[..length].to_vec()).unwrap()
    }

    #[test]
    fn ipv4_matches_display() {
        for octet in 0..=255_u32 {
            let value = Address::v4(octet << 24 | 0x0001_0A64 | octet << 16 & 0x00FF_0000);
            assert_eq!(written(value), value.to_string());
        }
        assert_eq!(written(Address::NONE), "");
    }

    proptest! {
        #[test]
        fn ipv6_matches_display(groups in prop::array::uniform8(prop_oneof![
            Just(0_u16), Just(0_u16), Just(0xFFFF_u16), 0..0x20_u16, any::<u16>()
        ])) {
            let number = groups.iter().fold(0, |number, &group| number << 16 | u128::from(group));
            prop_assert_eq!(written(Address(number)), Address(number).to_string());
        }
    }
}
