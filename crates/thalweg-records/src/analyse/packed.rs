//! Packs rows into few bytes. Packing costs less than writing more fresh memory.
//!
//! A packed row consists of its pair of hosts; a word with the two ports and the lengths of the numbers; and nine numbers,
//! little-endian, each in as many bytes as it needs. Starts are stored as differences from the previous row, which was
//! exported at about the same time. An IPv4 record takes about 35 bytes.

use super::row::{Fields, Row};

/// Maximum size of a packed row, and number of bytes that packing and unpacking may access.
pub(super) const MAX_ROW_BYTES: usize = 32 + 8 + 8 * NUMBERS;
/// Numbers per row, of one to eight bytes each; three bits encode the length.
const NUMBERS: usize = 9;

/// Packs a row. `start` is the start of the previous row, and is updated. Returns the number of bytes used.
#[inline]
pub(super) fn pack<R: Row>(row: &R, start: &mut i64, out: &mut [u8; MAX_ROW_BYTES]) -> usize {
    let fields = row.fields();
    let numbers = [
        u64::from(fields.tcp_flags) << 8 | u64::from(fields.protocol),
        fields.point.into(),
        fields.sampling_interval.into(),
        zigzag(fields.flow_start_us.wrapping_sub(*start)),
        fields.flow_end_us.wrapping_sub(fields.flow_start_us) as u64,
        fields.octets as u64,
        fields.packets as u64,
        fields.source_as.into(),
        fields.destination_as.into(),
    ];
    *start = fields.flow_start_us;
    let pair = bytemuck::bytes_of(row.pair());
    out[..pair.len()].copy_from_slice(pair);
    let (mut at, mut lengths) = (pair.len() + 8, 0);
    for (index, number) in numbers.into_iter().enumerate() {
        out[at..at + 8].copy_from_slice(&number.to_le_bytes());
        // Number of significant bytes minus one.
        let more = (number | 1).ilog2() >> 3;
        lengths |= u64::from(more) << (3 * index);
        at += 1 + more as usize;
    }
    let ports = u64::from(fields.source_port) << 16 | u64::from(fields.destination_port);
    out[pair.len()..pair.len() + 8].copy_from_slice(&(ports << 32 | lengths).to_le_bytes());
    at
}

/// Reverses [`pack`]. Returns the row and the number of bytes used.
#[inline]
pub(super) fn unpack<R: Row>(bytes: &[u8; MAX_ROW_BYTES], start: &mut i64) -> (R, usize) {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let pair = size_of::<R::Pair>();
    let head = word(pair);
    let mut at = pair + 8;
    let numbers: [u64; NUMBERS] = std::array::from_fn(|index| {
        let more = (head >> (3 * index)) as usize & 7;
        let number = word(at) & u64::MAX >> (56 - 8 * more);
        at += 1 + more;
        number
    });
    let [flags, point, sampling_interval, since, length, octets, packets, source_as, destination_as] =
        numbers;
    *start = start.wrapping_add(unzigzag(since));
    let fields = Fields {
        source_port: (head >> 48) as u16,
        destination_port: (head >> 32) as u16,
        tcp_flags: (flags >> 8) as u16,
        protocol: flags as u8,
        point: point as u32,
        sampling_interval: sampling_interval as u32,
        flow_start_us: *start,
        flow_end_us: start.wrapping_add(length as i64),
        octets: octets as i64,
        packets: packets as i64,
        source_as: source_as as u32,
        destination_as: destination_as as u32,
    };
    (R::of(bytemuck::pod_read_unaligned(&bytes[..pair]), fields), at)
}

/// Maps numbers near zero to small unsigned ones.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thalweg_wire::flow_export::Address;

    use super::super::row::{Narrow, Wide};
    use super::*;

    fn fields() -> impl Strategy<Value = Fields> {
        let whole = || prop_oneof![any::<i64>(), (0..64u32, any::<i64>()).prop_map(|(bits, n)| n >> bits)];
        let half = || prop_oneof![any::<u32>(), 0..9u32];
        let numbers = (half(), half(), half(), half());
        (any::<[u16; 3]>(), any::<u8>(), numbers, [whole(), whole(), whole(), whole()]).prop_map(
            |(ports, protocol, numbers, [flow_start_us, flow_end_us, octets, packets])| Fields {
                source_port: ports[0],
                destination_port: ports[1],
                tcp_flags: ports[2],
                protocol,
                point: numbers.0,
                sampling_interval: numbers.1,
                flow_start_us,
                flow_end_us,
                octets,
                packets,
                source_as: numbers.2,
                destination_as: numbers.3,
            },
        )
    }

    fn comes_back<R: Row>(rows: impl Iterator<Item = R>) {
        let rows: Vec<R> = rows.collect();
        let (mut bytes, mut start) = (Vec::new(), 0);
        for row in &rows {
            let mut out = [0xAA; MAX_ROW_BYTES];
            let length = pack(row, &mut start, &mut out);
            bytes.extend_from_slice(&out[..length]);
        }
        let end = bytes.len();
        bytes.extend([0x55; MAX_ROW_BYTES]);
        let (mut at, mut start) = (0, 0);
        for row in &rows {
            let (found, length) = unpack::<R>(bytes[at..].first_chunk().unwrap(), &mut start);
            assert_eq!((found.addresses(), found.fields()), (row.addresses(), row.fields()));
            at += length;
        }
        assert_eq!(at, end);
    }

    proptest! {
        #[test]
        fn rows_round_trip(all in prop::collection::vec((any::<[u128; 2]>(), fields()), 1..20)) {
            let address = |number: u128| number as u32;
            comes_back(all.iter().map(|(pair, fields)| Narrow::new(address(pair[0]), address(pair[1]), *fields)));
            comes_back(all.iter().map(|(pair, fields)| Wide::new(Address(pair[0]), Address(pair[1]), *fields)));
        }
    }

    #[test]
    fn a_typical_record_takes_35_bytes() {
        let fields = Fields {
            source_port: 443,
            destination_port: 50_000,
            tcp_flags: 0x1B,
            protocol: 6,
            point: 65,
            sampling_interval: 1_000,
            flow_start_us: 1_700_000_000_000_000,
            flow_end_us: 1_700_000_012_000_000,
            octets: 6_000,
            packets: 4,
            source_as: 293,
            destination_as: 64_512,
        };
        let mut start = fields.flow_start_us - 50_000_000;
        assert_eq!(pack(&Narrow::new(1, 2, fields), &mut start, &mut [0; MAX_ROW_BYTES]), 35);
    }
}
