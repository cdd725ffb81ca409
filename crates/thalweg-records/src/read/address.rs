//! Parses addresses. Each address has exactly one valid text; with another one, other engines would see another address.

use std::net::{IpAddr, Ipv6Addr};

use thalweg_wire::flow_export::Address;

/// The accepted text of an address.
pub(super) const ADDRESS: &str = "an address in dotted decimal or RFC 5952 form, or an empty string";

/// Parses an address; `None` if the text is not in canonical form.
#[inline]
pub(super) fn address(text: &[u8]) -> Option<Address> {
    match text.len() {
        0 => Some(Address::NONE),
        7..=15 => dotted_decimal(text).map(Address::v4).or_else(|| colons(text)),
        _ => colons(text),
    }
}

/// Repeats a byte.
const fn splat(byte: u8) -> u128 {
    u128::from_le_bytes([byte; 16])
}

/// Parses an IPv4 address of 7 to 15 bytes: four numbers of at most 255 without leading zeros, separated by dots.
///
/// Processes all bytes at once as integers, because branches on each byte would be unpredictable.
#[inline]
fn dotted_decimal(text: &[u8]) -> Option<u32> {
    let number = |bytes: &[u8; 8]| u128::from(u64::from_le_bytes(*bytes));
    let word = match (text.first_chunk(), text.last_chunk()) {
        // Bytes in both words are at the same position.
        (Some(first), Some(last)) => number(first) | number(last) << (8 * (text.len() - 8)),
        _ => text.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte)),
    };
    // Sets the top bit of each byte that is a dot: adding 0x7F leaves only zero below 0x80.
    let differs = word ^ splat(b'.');
    let mut dots = !(((differs & splat(0x7F)) + splat(0x7F)) | differs) & splat(0x80);
    let (mut address, mut wrong, mut start) = (0, dots.count_ones() ^ 3, 0);
    for _ in 0..4 {
        // After the last dot, the number ends with the text.
        let end = (dots.trailing_zeros() / 8).min(text.len() as u32);
        dots &= dots.wrapping_sub(1);
        let length = end.wrapping_sub(start);
        // An invalid length is clamped here, and rejected at the end.
        let missing = 24 - 8 * length.clamp(1, 3);
        let digits = ((word >> ((8 * start) & 127)) as u32 ^ 0x30_3030) << missing & 0xFF_FFFF;
        let above_nine = (((digits & 0x7F_7F7F) + 0x76_7676) | digits) & 0x80_8080;
        let first = digits >> missing & 0xFF;
        let number = (digits & 0xFF) * 100 + (digits >> 8 & 0xFF) * 10 + (digits >> 16);
        wrong |= above_nine
            | u32::from(!(1..=3).contains(&length))
            | u32::from(number > 255)
            | u32::from(length > 1 && first == 0);
        address = address << 8 | number;
        start = end + 1;
    }
    (wrong == 0).then_some(address)
}

/// Parses an IPv6 address in RFC 5952 form: lower case, no leading zeros, the first longest run of zero groups shortened.
fn colons(text: &[u8]) -> Option<Address> {
    let (mut groups, mut count, mut at) = ([0u16; 8], 0, 0);
    let mut cut = None;
    if text.starts_with(b"::") {
        (cut, at) = (Some(0), 2);
    }
    while at < text.len() {
        let digits = text[at..].iter().take_while(|&&byte| byte != b':').count();
        if count == 8 || !(1..=4).contains(&digits) || digits > 1 && text[at] == b'0' {
            return None;
        }
        for &byte in &text[at..at + digits] {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            groups[count] = groups[count] << 4 | u16::from(digit);
        }
        count += 1;
        at += digits;
        match text[at..] {
            [] => {}
            [b':', b':', ..] if cut.is_none() => (cut, at) = (Some(count), at + 2),
            [b':', next, ..] if next != b':' => at += 1,
            _ => return None,
        }
    }
    if let Some(cut) = cut {
        groups[cut..].rotate_right(8 - count);
    }
    let (start, length) = zeros(&groups);
    let cut_right = match cut {
        Some(cut) => length >= 2 && (start, length) == (cut, 8 - count),
        None => length < 2 && count == 8,
    };
    let address = Address::from(IpAddr::V6(Ipv6Addr::from(groups)));
    // IPv4-mapped addresses have the IPv4 text.
    (cut_right && address.as_v4().is_none()).then_some(address)
}

/// Returns start and length of the first longest run of zero groups.
fn zeros(groups: &[u16; 8]) -> (usize, usize) {
    let (mut longest, mut run) = ((0, 0), 0);
    for (at, &group) in groups.iter().enumerate() {
        run = if group == 0 { run + 1 } else { 0 };
        if run > longest.1 {
            longest = (at + 1 - run, run);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses with the standard library, and checks that formatting returns the same text.
    fn expected(text: &str) -> Option<Address> {
        if text.is_empty() {
            return Some(Address::NONE);
        }
        let address = Address::from(text.parse::<IpAddr>().ok()?);
        (address.to_string() == text).then_some(address)
    }

    #[test]
    fn only_the_canonical_text_of_an_address_is_accepted() {
        let right = [
            "10.1.2.3",
            "0.0.0.0",
            "255.255.255.255",
            "::",
            "2001:db8::1",
            "1::",
            "0:0:1::",
            "::2:0:0:1:0",
            "",
        ];
        for text in right {
            assert_eq!(address(text.as_bytes()).map(|address| address.to_string()).as_deref(), Some(text));
        }
        let wrong = "10.1.2 10.1.2.3.4 10.1.2.256 10.01.2.3 10.1.2. .1.2.3 x 00.1.2.3 2001:DB8::1 2001:db8:0::1 1..2.3.4 \
                     ::ffff:10.1.2.3 ::ffff:a01:203 999.1.1.1 1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 1:2:3:4:5:6:7: 1::2::3 : \
                     1:::2 0:0:0:1::2:3 1::2:3:4:5:6:7:8 1::3:4:5:6:7:8 10.1.2.3\0 1000.1.1.1 1.1.1.1/8";
        for text in wrong.split(' ').chain([" 10.1.2.3"]) {
            assert_eq!(address(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn addresses_round_trip(
            v4 in any::<u32>(),
            v6 in prop::array::uniform8(prop_oneof![Just(0), 0..20u16, any::<u16>()]),
        ) {
            for expected in [Address::v4(v4), Address::from(IpAddr::V6(Ipv6Addr::from(v6)))] {
                prop_assert_eq!(address(expected.to_string().as_bytes()), Some(expected));
            }
        }

        #[test]
        fn texts_similar_to_addresses_are_parsed_as_by_the_standard_library(
            text in prop_oneof!["[0-9.]{0,16}", "(0|1|25|255|256|01)(\\.(0|9|10|200|300)){2,4}", "(:|::|0|1|a|ff|10){1,16}"],
        ) {
            prop_assert_eq!(address(text.as_bytes()), expected(&text), "{}", text);
        }
    }
}
