//! Frames of all kinds, with their parsed packets.

use thalweg_wire::parse::Parser;
use thalweg_wire::source::Frame;
use thalweg_wire::{LinkType, Packet, Timestamp};

/// The bytes of a frame that the programs parse.
const CAPTURED: usize = 512;

/// A small generator of pseudo-random numbers (xorshift64*, Marsaglia 2003).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 33) as usize % limit
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }

    /// A number that is small more often than not, so that keys repeat.
    fn small(&mut self) -> u8 {
        let limit = 1 << self.below(8);
        self.below(limit) as u8
    }
}

/// Returns the packet of a frame, as user space parses it.
pub(crate) fn parse(frame: &[u8]) -> Option<Packet> {
    let bytes = &frame[..frame.len().min(CAPTURED)];
    let frame = Frame {
        time: Timestamp::default(),
        bytes,
        original_length: frame.len() as u32,
        link_type: LinkType::Ethernet,
    };
    Parser::default().parse(&frame).ok()
}

/// Returns frames of all kinds: plain, tagged, labelled, fragmented, with options and extension headers, damaged, cut
/// and random.
pub(crate) fn mixed(count: usize, seed: u64) -> Vec<Vec<u8>> {
    let mut numbers = Numbers(seed | 1);
    (0..count).map(|_| frame(&mut numbers)).collect()
}

fn frame(numbers: &mut Numbers) -> Vec<u8> {
    let mut frame = vec![0x02; 12];
    match numbers.below(20) {
        0 => {
            frame.extend((0..2 + numbers.below(120)).map(|_| numbers.byte()));
            return frame;
        }
        1 => frame.extend([0x81, 0x00, 0, 5]),
        2 => frame.extend([0x88, 0xA8, 0, 5, 0x81, 0x00, 0, 6]),
        3 => (0..7 + numbers.below(3)).for_each(|_| frame.extend([0x81, 0x00, 0, 5])),
        _ => {}
    }
    let is_v6 = numbers.below(3) == 0;
    match numbers.below(16) {
        0 => {
            frame.extend([0x88, 0x47]);
            (0..numbers.below(18)).for_each(|_| frame.extend([0, 0, 0, 64]));
            frame.extend([0, 0, 1, 64]);
        }
        1 => frame.extend([0x88, 0x64, 0x11, 0, 0, 1, 0, 60, 0, if is_v6 { 0x57 } else { 0x21 }]),
        2 => frame.extend([0x88, 0x64, 0x11, 0, 0, 1, 0, 60, if is_v6 { 0x57 } else { 0x21 }]),
        3 => {
            frame.extend([0, 60, 0xAA, 0xAA, 3, 0, 0, if numbers.below(2) == 0 { 0 } else { 0xF8 }]);
            frame.extend(if is_v6 { [0x86, 0xDD] } else { [0x08, 0x00] });
        }
        4 => frame.extend([[0x08, 0x06], [0, 9], [0x86, 0xDD], [0x08, 0x00]][numbers.below(4)]),
        _ => frame.extend(if is_v6 { [0x86, 0xDD] } else { [0x08, 0x00] }),
    }
    let begin = frame.len();
    if is_v6 {
        ipv6(numbers, &mut frame)
    } else {
        ipv4(numbers, &mut frame)
    }
    let most = if numbers.below(4) == 0 { 1200 } else { 40 };
    let payload = numbers.below(most);
    frame.extend((0..payload).map(|n| n as u8));
    let ip_length = match numbers.below(12) {
        0 => numbers.below(2000),
        1 => 0,
        _ => frame.len() - begin,
    };
    let field = if is_v6 { (ip_length as u16).wrapping_sub(40) } else { ip_length as u16 };
    let at = begin + if is_v6 { 4 } else { 2 };
    if let Some(length) = frame.get_mut(at..at + 2) {
        let field = if is_v6 && numbers.below(12) == 0 { 0 } else { field };
        length.copy_from_slice(&field.to_be_bytes());
    }
    if numbers.below(8) == 0 {
        frame.truncate(14 + numbers.below(frame.len() - 13));
    }
    if numbers.below(12) == 0 {
        let at = 12 + numbers.below(frame.len() - 12);
        frame[at] = numbers.byte();
    }
    if numbers.below(6) == 0 && frame.len() < 60 {
        frame.resize(60, 0);
    }
    frame
}

fn protocol(numbers: &mut Numbers) -> u8 {
    [6, 17, 6, 17, 1, 58, 132, 33, 136, 47, 50, 51][numbers.below(12)]
}

fn ipv4(numbers: &mut Numbers, frame: &mut Vec<u8>) {
    let options = if numbers.below(4) == 0 { numbers.below(11) } else { 0 };
    let fragment: u16 = match numbers.below(8) {
        0 => 0x2000,
        1 => 0x2000 | numbers.below(0x1FFF) as u16,
        2 => 0x4000,
        _ => 0,
    };
    let protocol = protocol(numbers);
    frame.extend([0x45 + options as u8, 0, 0, 0, 1, numbers.byte()]);
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, protocol, 0, 0, 10, 0, 0, numbers.small(), 10, 1, 0, numbers.small()]);
    frame.extend((0..4 * options).map(|_| 1));
    let next = if protocol == 51 { authentication(numbers, frame) } else { protocol };
    transport(numbers, frame, next);
}

/// Adds an authentication header; returns the next header.
fn authentication(numbers: &mut Numbers, frame: &mut Vec<u8>) -> u8 {
    let (next, words) = (protocol(numbers), numbers.below(8) as u8);
    frame.extend([next, words]);
    frame.extend((0..(usize::from(words) + 2) * 4 - 2).map(|_| 0));
    next
}

fn ipv6(numbers: &mut Numbers, frame: &mut Vec<u8>) {
    let begin = frame.len();
    frame.extend([0x60, 0, 0, 0, 0, 0, 59, 64]);
    for _ in 0..2 {
        frame.extend([0x20, 1, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, numbers.small()]);
    }
    let mut field = begin + 6;
    let headers = if numbers.below(2) == 0 { 0 } else { numbers.below(14) };
    for _ in 0..headers {
        let kind = [0u8, 43, 44, 51, 60, 135, 139, 140][numbers.below(8)];
        frame[field] = kind;
        field = frame.len();
        match kind {
            44 => {
                let offset = if numbers.below(6) == 0 { (numbers.below(100) << 3) as u16 } else { 0 };
                let more = numbers.below(2) as u16;
                frame.extend([59, 0]);
                frame.extend((offset | more).to_be_bytes());
                frame.extend([0, 0, 0, numbers.byte()]);
            }
            51 => {
                let words = numbers.below(4);
                frame.extend([59, words as u8]);
                frame.extend((0..(words + 2) * 4 - 2).map(|_| 0));
            }
            0 if numbers.below(3) == 0 => {
                let length = if numbers.below(2) == 0 { 70_000u32 } else { 100 };
                frame.extend([59, 0, 0xC2, 4]);
                frame.extend(length.to_be_bytes());
            }
            _ => {
                let most = if numbers.below(4) == 0 { 30 } else { 3 };
                let words = numbers.below(most);
                frame.extend([59, words as u8]);
                frame.extend((0..(words + 1) * 8 - 2).map(|_| numbers.below(3) as u8));
            }
        }
    }
    let protocol = protocol(numbers);
    if numbers.below(8) > 0 {
        frame[field] = protocol;
    }
    transport(numbers, frame, protocol);
}

fn transport(numbers: &mut Numbers, frame: &mut Vec<u8>, protocol: u8) {
    match protocol {
        1 => frame.extend([[8, 0, 3][numbers.below(3)], 0, 0, 0, 0, numbers.small(), 0, 1]),
        58 => frame.extend([[128, 129, 1][numbers.below(3)], 0, 0, 0, 0, numbers.small(), 0, 1]),
        6 => {
            frame.extend([0, numbers.small(), 0, 80, 0, 0, 0, 1, 0, 0, 0, 1]);
            frame.extend([(5 + numbers.below(3) as u8) << 4, 0x10, 0, 0, 0, 0, 0, 0]);
        }
        _ => frame.extend([0, numbers.small(), 0, 53, 0, 20, 0, 0]),
    }
}
