//! Tests of all messages, with random values.

mod golden;
mod sample;

use proptest::prelude::*;

use super::*;

pub(super) use sample::{Draw, Sample};

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out).unwrap();
    out
}

fn message(body: Body) -> Message {
    Message { xid: Xid(7), body }
}

/// Returns a message of each kind, and one of an unknown kind.
fn one_of_each_kind(seed: u64) -> Vec<Message> {
    let mut draw = Draw::new(seed);
    let mut kinds = Vec::new();
    let mut messages = Vec::new();
    // The probability that 2,000 draws miss one of 26 kinds is 10^-34.
    for _ in 0..2_000 {
        let message = Message::sample(&mut draw);
        if !kinds.contains(&message.body.kind()) {
            kinds.push(message.body.kind());
            messages.push(message);
        }
    }
    assert_eq!(messages.len(), 26);
    messages
}

#[test]
fn a_message_truncated_at_any_byte_is_incomplete_or_an_error() {
    for message in (0..8).flat_map(one_of_each_kind) {
        let bytes = encoded(&message);
        for length in 0..bytes.len() {
            assert!(Message::decode(&bytes[..length]).is_err(), "{length} bytes of {message:?}");
            assert_eq!(first_message(&bytes[..length]), Ok(None), "{length} bytes of {message:?}");
        }
    }
}

/// As above, with the length in the header adjusted.
#[test]
fn a_message_with_a_shorter_header_length_is_an_error_or_another_message() {
    for message in (0..8).flat_map(one_of_each_kind) {
        let bytes = encoded(&message);
        for length in HEADER_LENGTH..bytes.len() {
            let mut short = bytes[..length].to_vec();
            short[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            if let Ok(read) = Message::decode(&short) {
                assert_ne!(read, message, "{length} bytes of {}", bytes.len());
                assert_eq!(Message::decode(&encoded(&read)), Ok(read));
            }
        }
    }
}

#[test]
fn bytes_after_a_message_of_fixed_length_are_an_error() {
    let mut bytes = encoded(&message(Body::BarrierRequest));
    bytes.extend([0; 4]);
    bytes[3] += 4;
    let expected = DecodeError::Trailing { structure: "BarrierRequest", offset: 8, left: 4 };
    assert_eq!(Message::decode(&bytes), Err(expected));
}

#[test]
fn a_stream_is_split_into_messages() {
    let messages = one_of_each_kind(1);
    let mut stream = Vec::new();
    for message in &messages {
        message.encode(&mut stream).unwrap();
    }
    stream.extend_from_slice(&[VERSION, 0]);
    let mut left = &stream[..];
    let mut read = Vec::new();
    while let Some(first) = first_message(left).unwrap() {
        read.push(Message::decode(first).unwrap());
        left = &left[first.len()..];
    }
    assert_eq!((read, left), (messages, &[VERSION, 0][..]));
}

#[test]
fn an_invalid_message_length_is_an_error() {
    let expected = DecodeError::Length { structure: "Header", offset: 0, length: 7, expected: "8 or more" };
    assert_eq!(first_message(&[4, 0, 0, 7, 0, 0, 0, 1, 9]), Err(expected));
    assert!(Message::decode(&[4, 0, 0, 7, 0, 0, 0]).is_err());
}

#[test]
fn a_length_of_zero_in_a_structure_is_an_error() {
    let flow = FlowMod {
        instructions: vec![Instruction::ApplyActions(vec![Action::PopVlan])],
        ..FlowMod::default()
    };
    let bytes = encoded(&message(Body::FlowMod(flow)));
    for at in [bytes.len() - 6, bytes.len() - 14] {
        let mut broken = bytes.clone();
        assert!([8, 16].contains(&broken[at + 1]), "a length is here");
        broken[at..at + 2].fill(0);
        let error = Message::decode(&broken).unwrap_err();
        assert!(
            matches!(error, DecodeError::Length { length: 0, offset, .. } if offset == at - 2),
            "{error}"
        );
    }
}

#[test]
fn other_versions_are_rejected_except_hellos_and_errors() {
    for version in [1, 3, 5, 6] {
        for message in one_of_each_kind(3) {
            let mut bytes = encoded(&message);
            bytes[0] = version;
            match (&message.body, Message::decode(&bytes)) {
                (Body::Error(_), read) => assert_eq!(read, Ok(message)),
                (Body::Hello(_), read) if version > VERSION => assert_eq!(read, Ok(message)),
                (Body::Hello(_), read) => assert_eq!(read.unwrap().body, Body::Hello(Hello::default())),
                (_, read) => assert_eq!(read, Err(DecodeError::Version { found: version })),
            }
        }
    }
    let old = [1, 0, 0, 11, 0, 0, 0, 1, 0xff, 0xff, 0xff];
    assert!(Message::decode(&old).is_ok(), "what follows the header of an old hello is ignored");
}

#[test]
fn a_too_long_structure_is_an_error_and_leaves_the_vector_unchanged() {
    let mut out = vec![1, 2, 3];
    let too_long = |structure, length, limit| Err(EncodeError::TooLong { structure, length, limit });
    let echo = message(Body::EchoRequest(vec![0; 65_528]));
    assert_eq!(echo.encode(&mut out), too_long("EchoRequest", 65_536, 65_535));
    let field = OtherField { class: 0xffff, field: 1, has_mask: false, payload: vec![0; 256] };
    let flow = FlowMod { matching: Match::any().with(MatchField::Other(field)), ..FlowMod::default() };
    assert_eq!(message(Body::FlowMod(flow)).encode(&mut out), too_long("MatchField", 256, 255));
    let buckets = vec![Bucket::new(vec![Action::PopVlan; 8_192])];
    let (command, group_type, group_id) = (GroupModCommand::ADD, GroupType::ALL, GroupId(1));
    let group = GroupMod { command, group_type, group_id, buckets };
    assert_eq!(message(Body::GroupMod(group)).encode(&mut out), too_long("Bucket", 65_552, 65_535));
    assert_eq!(out, [1, 2, 3]);
    let longest = message(Body::EchoRequest(vec![0; 65_527]));
    assert_eq!(longest.encode(&mut out), Ok(()));
    assert_eq!(Message::decode(&out[3..]), Ok(longest));
}

/// Checks the documented memory limit: a list may have capacity for twice its entries.
#[test]
fn an_entry_of_a_list_takes_at_most_ten_times_its_encoded_length() {
    let least_bytes: [(usize, usize); 6] = [
        (size_of::<MatchField>(), 4),
        (size_of::<Action>(), 8),
        (size_of::<Instruction>(), 8),
        (size_of::<Bucket>(), 16),
        (size_of::<multipart::FlowStats>(), 56),
        (size_of::<multipart::GroupDescription>(), 8),
    ];
    for (size, bytes) in least_bytes {
        assert!(size <= 10 * bytes, "{size} for {bytes}");
    }
}

#[test]
fn padding_is_written_as_zeros_and_ignored_when_read() {
    let port = PortStatus { reason: PortReason::ADD, port: Port::sample(&mut Draw::new(1)) };
    let port = message(Body::PortStatus(port));
    let mut bytes = encoded(&port);
    assert_eq!(bytes[9..16], [0; 7]);
    bytes[9..16].fill(0xff);
    assert_eq!(Message::decode(&bytes), Ok(port));
}

#[test]
fn a_known_field_with_an_unsupported_mask_is_kept_as_received() {
    // Open vSwitch encodes ranges of TCP ports in this way.
    let field = OtherField { class: 0x8000, field: 14, has_mask: true, payload: vec![0x10, 0, 0xff, 0] };
    let flow = FlowMod { matching: Match(vec![MatchField::Other(field)]), ..FlowMod::default() };
    let flow = message(Body::FlowMod(flow));
    assert_eq!(Message::decode(&encoded(&flow)), Ok(flow));
}

#[test]
fn a_known_field_of_the_wrong_length_is_an_error() {
    for (length, payload) in [(2, &[0, 1][..]), (6, &[0, 0, 0, 1, 0, 0])] {
        let field = OtherField { class: 0x8000, field: 0, has_mask: false, payload: payload.to_vec() };
        let flow = FlowMod { matching: Match(vec![MatchField::Other(field)]), ..FlowMod::default() };
        let error = Message::decode(&encoded(&message(Body::FlowMod(flow)))).unwrap_err();
        match error {
            DecodeError::Truncated { structure: "InPort", offset: 56, needed: 4, found } => {
                assert_eq!(found, length);
            }
            DecodeError::Trailing { structure: "InPort", offset: 60, left } => assert_eq!(left + 4, length),
            other => panic!("{other}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn messages_round_trip(seed: u64) {
        let message = Message::sample(&mut Draw::new(seed));
        let mut bytes = vec![0xaa; 3];
        message.encode(&mut bytes).unwrap();
        prop_assert_eq!(Header::decode(&bytes[3..]).unwrap().unwrap().length as usize, bytes.len() - 3);
        prop_assert_eq!(Message::decode(&bytes[3..]), Ok(message));
    }

    #[test]
    fn a_damaged_message_is_an_error_or_round_trips(
        seed: u64,
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encoded(&Message::sample(&mut Draw::new(seed)));
        for (at, byte) in damages {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(message) = Message::decode(&bytes) {
            prop_assert_eq!(Message::decode(&encoded(&message)), Ok(message));
        }
    }
}
