//! Compares decoding plans with a plain decoder that reads field by field with its own table.

use proptest::prelude::*;

use super::*;

/// Elements whose value is stored unchanged in a column, the maximum length of the value, and its field in a row.
type Column = (u16, u16, fn(&Record) -> u64);

const NUMBERS: [Column; 22] = [
    (1, 8, |row| row.octets),
    (2, 8, |row| row.packets),
    (4, 1, |row| row.protocol.into()),
    (5, 1, |row| row.class_of_service.into()),
    (6, 2, |row| row.tcp_flags.into()),
    (7, 2, |row| row.source_port.into()),
    (9, 1, |row| row.source_prefix_length.into()),
    (10, 4, |row| row.ingress_interface.into()),
    (11, 2, |row| row.destination_port.into()),
    (14, 4, |row| row.egress_interface.into()),
    (16, 4, |row| row.source_as.into()),
    (17, 4, |row| row.destination_as.into()),
    (58, 2, |row| row.vlan_id.into()),
    (136, 1, |row| row.flow_end_reason.into()),
    (52, 1, |row| row.minimum_ttl.into()),
    (55, 1, |row| row.post_class_of_service.into()),
    (59, 2, |row| row.post_vlan_id.into()),
    (128, 4, |row| row.next_as.into()),
    (138, 8, |row| row.observation_point_id),
    (234, 4, |row| row.ingress_vrf_id.into()),
    (235, 4, |row| row.egress_vrf_id.into()),
    (245, 2, |row| row.customer_vlan_id.into()),
];

#[derive(Clone, Debug)]
enum Field {
    /// An index into [`NUMBERS`], and a length in bytes.
    Number(usize, u16),
    SourceV4,
    DestinationV6,
    /// An unknown enterprise element of this length.
    Own(u16),
    /// An element of variable length.
    Text,
}

fn field() -> impl Strategy<Value = Field> {
    prop_oneof![
        6 => (0..NUMBERS.len(), 0u16..=8).prop_map(|(column, length)| Field::Number(column, length)),
        1 => Just(Field::SourceV4),
        1 => Just(Field::DestinationV6),
        2 => (0u16..20).prop_map(Field::Own),
        1 => Just(Field::Text),
    ]
}

impl Field {
    fn specifier(&self) -> Vec<u8> {
        match *self {
            Field::Number(column, length) => words(&[NUMBERS[column].0, length]),
            Field::SourceV4 => words(&[8, 4]),
            Field::DestinationV6 => words(&[28, 16]),
            Field::Own(length) => words(&[0x8000 | 1, length, 0, 4242]),
            Field::Text => words(&[0x8000 | 2, 0xFFFF, 0, 4242]),
        }
    }

    fn length(&self, noise: u8) -> usize {
        match *self {
            Field::Number(_, length) | Field::Own(length) => length.into(),
            Field::SourceV4 => 4,
            Field::DestinationV6 => 16,
            Field::Text => usize::from(noise) * 2,
        }
    }
}

proptest! {
    #[test]
    fn plans_give_the_rows_of_the_plain_decoder(
        fields in prop::collection::vec(field(), 1..20),
        noise in prop::collection::vec(any::<u8>(), 1..400),
        records in 1usize..12,
        padding in 0usize..4,
    ) {
        // A last field of one byte of octets makes every record a non-empty flow.
        let fields = [fields, vec![Field::Number(0, 1)]].concat();
        let mut template = words(&[256, fields.len() as u16]);
        template.extend(fields.iter().flat_map(Field::specifier));
        let mut bytes = noise.iter().copied().cycle();
        let mut data = Vec::new();
        let mut expected = Vec::new();
        for _ in 0..records {
            let mut told: Vec<Option<u64>> = vec![None; NUMBERS.len()];
            let (mut source, mut destination) = (Address::NONE, Address::NONE);
            for field in &fields {
                let value: Vec<u8> = match field {
                    Field::Text => {
                        let length = field.length(bytes.next().unwrap());
                        match length {
                            0..=254 => data.push(length as u8),
                            _ => data.extend([255, (length >> 8) as u8, length as u8]),
                        }
                        bytes.by_ref().take(length).collect()
                    }
                    _ => bytes.by_ref().take(field.length(0)).collect(),
                };
                let number = value.iter().take(16).fold(0u128, |sum, &byte| sum << 8 | u128::from(byte));
                match field {
                    // The first with a value; an element of length 0 has none.
                    Field::Number(column, 1..) => {
                        let (_, bytes, _) = NUMBERS[*column];
                        let most = u64::MAX >> (64 - 8 * bytes);
                        if told[*column].unwrap_or(0) == 0 {
                            told[*column] = Some((number as u64).min(most));
                        }
                    }
                    Field::SourceV4 if !source.is_some() || source == Address::v4(0) => {
                        source = Address::v4(number as u32);
                    }
                    Field::DestinationV6 if !destination.is_some() || destination.0 == 0 => {
                        destination = Address(number);
                    }
                    _ => {}
                }
                data.extend(value);
            }
            expected.push((told, source, destination));
        }
        prop_assume!(data.len() < 60_000);
        let shortest: usize = fields.iter().map(|field| field.length(0).max(usize::from(matches!(field, Field::Text)))).sum();
        data.extend(vec![0; padding.min(shortest - 1)]);
        let rows = Run::new().take(&ipfix(0, 1, &[set(2, &template), set(256, &data)]));
        prop_assert_eq!(rows.len(), expected.len());
        for (row, (told, source, destination)) in rows.iter().zip(expected) {
            for ((id, _, column), told) in NUMBERS.iter().zip(told) {
                prop_assert_eq!(column(row), told.unwrap_or(0), "element {}", id);
            }
            prop_assert_eq!((row.source_address, row.destination_address), (source, destination));
        }
    }

    #[test]
    fn arbitrary_bytes_give_rows_or_an_error(
        version in prop::sample::select(vec![[0u8, 5], [0, 9], [0, 10], [0, 0]]),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..5),
    ) {
        let mut decoder = Decoder::new(Limits::default());
        let mut decoded = Decoded::default();
        for message in messages {
            let bytes = [&version[..], &message].concat();
            let before = (decoded.flows.len(), decoded.counters.len());
            let result = decoder.datagram(exporter(), NOW, &bytes, &mut decoded);
            decoded.flows.check_invariants();
            decoded.counters.check_invariants();
            if result.is_err() {
                prop_assert_eq!((decoded.flows.len(), decoded.counters.len()), before);
            }
        }
    }

    #[test]
    fn a_damaged_message_is_decoded_or_rejected(
        at in 0usize..400, value in any::<u8>(), cut in 0usize..400,
    ) {
        for format in BOTH {
            let fields = [(8, 4), (82, 0xFFFF), (12, 4), (1, 8), (152, 8), (0x8001, 4)];
            let sets = match format {
                // NetFlow v9 has no enterprise elements.
                Format::NetFlow9 => template_set(format, 256, &fields[..5]),
                _ => {
                    let mut record = words(&[256, 6]);
                    record.extend(fields.iter().flat_map(|&(id, length)| words(&[id, length])));
                    record.extend(words(&[0, 29305]));
                    set(2, &record)
                }
            };
            let record = |length: usize| [vec![1; 4], vec![length as u8], vec![7; length], vec![2; 24]].concat();
            let data = [record(0), record(9), record(40)].concat();
            let mut bytes = message(format, 0, 1, &[sets, set(256, &data), octets_data(300, &[1])]);
            let length = bytes.len();
            bytes[at % length] = value;
            bytes.truncate(length - cut % length);
            let mut run = Run::new();
            let _ = run.decoder.datagram(exporter(), NOW, &bytes, &mut run.decoded);
            run.rows();
        }
    }
}
