//! Addresses from text. Each has one right spelling: with another, it would count as another address elsewhere.

use std::net::{IpAddr, Ipv6Addr};

use thalweg_wire::flow_export::Address;

/// What an address column may have.
pub(super) const ADDRESS: &str = "an address as dotted decimal or by RFC 5952, or nothing";

/// The address of a text; none where it is spelt in another way.
#[inline]
pub(super) fn address(text: &[u8]) -> Option<Address> {
    match text.len() {
        0 => Some(Address::NONE),
        7..=15 => dotted_decimal(text).map(Address::v4).or_else(|| colons(text)),
        _ => colons(text),
    }
}

/// Each byte the same.
const fn each(byte: u8) -> u128 {
    u128::from_le_bytes([byte; 16])
}

/// An IPv4 address from 7 to 15 bytes: four numbers of at most 255 without leading zeros, dots between them.
///
/// All bytes are looked at together, as numbers of a word: a branch for each byte is one that the processor cannot foresee.
#[inline]
fn dotted_decimal(text: &[u8]) -> Option<u32> {
    let number = |bytes: &[u8; 8]| u128::from(u64::from_le_bytes(*bytes));
    let word = match (text.first_chunk(), text.last_chunk()) {
        // Bytes that both have are in one place.
        (Some(first), Some(last)) => number(first) | number(last) << (8 * (text.len() - 8)),
        _ => text.iter().rev().fold(0, |word, &byte| word << 8 | u128::from(byte)),
    };
    // The upper bit of each byte that is a dot: only zero stays below 0x80 when 0x7F is added.
    let differs = word ^ each(b'.');
    let mut dots = !(((differs & each(0x7F)) + each(0x7F)) | differs) & each(0x80);
    let (mut address, mut wrong, mut start) = (0, dots.count_ones() ^ 3, 0);
    for _ in 0..4 {
        // After the last dot, the number ends with the text.
        let end = (dots.trailing_zeros() / 8).min(text.len() as u32);
        dots &= dots.wrapping_sub(1);
        let length = end.wrapping_sub(start);
        // A wrong length is taken for one of three, and told at the end.
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

/// An IPv6 address by RFC 5952: small letters, no leading zeros, the first longest run of two zero groups or more cut.
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
    // One that stands for an IPv4 address is spelt as that.
    (cut_right && address.as_v4().is_none()).then_some(address)
}

/// The first longest run of zero groups: where it begins, and its length.
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

    /// By the standard library: what reads as an address and is written so again.
    fn plain(text: &str) -> Option<Address> {
        if text.is_empty() {
            return Some(Address::NONE);
        }
        let address = Address::from(text.parse::<IpAddr>().ok()?);
        (address.to_string() == text).then_some(address)
    }

    #[test]
    fn an_address_has_one_spelling() {
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
        fn what_is_written_is_read(
            v4 in any::<u32>(),
            v6 in prop::array::uniform8(prop_oneof![Just(0), 0..20u16, any::<u16>()]),
        ) {
            for expected in [Address::v4(v4), Address::from(IpAddr::V6(Ipv6Addr::from(v6)))] {
                prop_assert_eq!(address(expected.to_string().as_bytes()), Some(expected));
            }
        }

        #[test]
        fn what_is_nearly_an_address_is_one_where_the_standard_library_writes_it_so(
            text in prop_oneof!["[0-9.]{0,16}", "(0|1|25|255|256|01)(\\.(0|9|10|200|300)){2,4}", "(:|::|0|1|a|ff|10){1,16}"],
        ) {
            prop_assert_eq!(address(text.as_bytes()), plain(&text), "{}", text);
        }
    }
}
