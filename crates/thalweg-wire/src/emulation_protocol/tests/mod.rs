//! Tests of whole datagrams.

mod golden;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn header(direction: Direction) -> Header {
    Header {
        direction,
        wants_acknowledgement: true,
        endpoint: 7,
        session: Session::new(0x0102_0304).unwrap(),
        peer_session: Session::new(0x1112_1314),
        sequence: Sequence(5),
        acknowledgement: Some(Acknowledgement { highest: Sequence(9), before: 0b101 }),
    }
}

fn scheme_bytes() -> impl Strategy<Value = SchemeBytes> {
    vec(any::<u8>(), 0..=MAX_SCHEME_BYTES).prop_map(|bytes| SchemeBytes::new(&bytes).unwrap())
}

fn flows() -> impl Strategy<Value = Flow> {
    let small = (0_u16..4, 0_u16..4, 0_u32..3);
    let any = (any::<u16>(), any::<u16>(), any::<u32>());
    prop_oneof![small, any].prop_map(|(source, destination, number)| Flow { source, destination, number })
}

/// Flow, base, and a request near the base.
fn requests() -> impl Strategy<Value = (Flow, u64, Request)> {
    let base = prop_oneof![0_u64..3, any::<u64>().prop_map(|base| base.min(u64::MAX - FLOW_WINDOW))];
    let distance = prop_oneof![0_u64..4, 0..FLOW_WINDOW];
    let length = prop_oneof![Just(1_500_u16), any::<u16>()];
    let class = prop_oneof![Just(2_u8), any::<u8>()];
    (flows(), base, distance, length, class, scheme_bytes()).prop_map(
        |(flow, base, distance, length, traffic_class, custom)| {
            (flow, base, Request { index: base + distance, length, traffic_class, custom })
        },
    )
}

fn answers() -> impl Strategy<Value = (Flow, Answer)> {
    let index = prop_oneof![0_u64..40, (0..u64::MAX)];
    let ticks = prop_oneof![0_u32..100, any::<u32>()];
    let verdict = prop_oneof![
        Just(Verdict::Drop),
        Just(Verdict::Send),
        Just(Verdict::SendMarked),
        scheme_bytes().prop_map(Verdict::SendWith)
    ];
    (flows(), index, verdict, ticks).prop_map(|(flow, index, verdict, ticks)| {
        (flow, Answer { index, verdict, emulated: EmulatedDelay(ticks) })
    })
}

fn headers() -> impl Strategy<Value = Header> {
    let session = || (1..u32::MAX).prop_map(|number| Session::new(number).unwrap());
    let acknowledgement = (any::<u32>(), any::<u32>())
        .prop_map(|(highest, before)| Acknowledgement { highest: Sequence(highest), before });
    (
        any::<(bool, bool, u16, u32)>(),
        session(),
        proptest::option::of(session()),
        proptest::option::of(acknowledgement),
    )
        .prop_map(|((to_arbiter, wants, endpoint, sequence), session, peer_session, acknowledgement)| {
            Header {
                direction: if to_arbiter { Direction::ToArbiter } else { Direction::ToEndpoint },
                wants_acknowledgement: wants,
                endpoint,
                session,
                peer_session,
                sequence: Sequence(sequence),
                acknowledgement,
            }
        })
}

/// As many of the requests as fit into `room` bytes, and how many that were.
fn written_requests(list: &[(Flow, u64, Request)], room: usize) -> (Vec<u8>, usize) {
    let mut buffer = vec![0xaa; room];
    let mut writer = RequestWriter::new(&mut buffer, &header(Direction::ToArbiter)).unwrap();
    let fit =
        list.iter().take_while(|(flow, base, request)| writer.push(flow, *base, request).is_ok()).count();
    let length = writer.finish();
    buffer.truncate(length);
    (buffer, fit)
}

fn written_answers(list: &[(Flow, Answer)], room: usize) -> (Vec<u8>, usize) {
    let mut buffer = vec![0xaa; room];
    let mut writer = AnswerWriter::new(&mut buffer, &header(Direction::ToEndpoint)).unwrap();
    let fit = list.iter().take_while(|(flow, answer)| writer.push(flow, answer).is_ok()).count();
    let length = writer.finish();
    buffer.truncate(length);
    (buffer, fit)
}

fn read_answers(datagram: &Datagram<'_>) -> Vec<(Flow, Answer)> {
    datagram.answers().collect()
}

/// A datagram of several flows with every field.
fn example() -> Vec<u8> {
    let custom = SchemeBytes::new(&[1, 2, 3, 4]).unwrap();
    let request = |index, length, traffic_class| Request { index, length, traffic_class, custom };
    let flow = |number| Flow { source: 1, destination: 300, number };
    let list = [
        (flow(0), 5, request(5, 1_500, 2)),
        (flow(0), 5, request(6, 1_500, 2)),
        (flow(0), 5, request(9, 40, 2)),
        (flow(1), 0, request(3, 40, 0)),
    ];
    written_requests(&list, DEFAULT_MAX_DATAGRAM).0
}

proptest! {
    #[test]
    fn requests_round_trip(list in vec(requests(), 0..80), room in HEADER_LENGTH..1_500) {
        let (bytes, fit) = written_requests(&list, room);
        let datagram = Datagram::decode(&bytes).unwrap();
        prop_assert_eq!(datagram.header, header(Direction::ToArbiter));
        prop_assert_eq!(datagram.requests().collect::<Vec<_>>(), &list[..fit]);
        prop_assert_eq!(datagram.answers().count(), 0);
        // A list that did not fit did not fit by less than one entry.
        if fit < list.len() {
            prop_assert!(bytes.len() + MAX_BLOCK_HEAD + MAX_REQUEST + MAX_SCHEME_BYTES > room);
        }
    }

    #[test]
    fn answers_round_trip(list in vec(answers(), 0..80), room in HEADER_LENGTH..1_500) {
        let (bytes, fit) = written_answers(&list, room);
        let datagram = Datagram::decode(&bytes).unwrap();
        prop_assert_eq!(read_answers(&datagram), &list[..fit]);
        prop_assert_eq!(datagram.requests().count(), 0);
        if fit < list.len() {
            prop_assert!(bytes.len() + MAX_BLOCK_HEAD + MAX_ANSWER + MAX_SCHEME_BYTES > room);
        }
    }

    #[test]
    fn headers_round_trip(header in headers()) {
        let mut buffer = [0; HEADER_LENGTH];
        prop_assert_eq!(RequestWriter::new(&mut buffer, &header).unwrap().finish(), HEADER_LENGTH);
        prop_assert_eq!(Datagram::decode(&buffer).unwrap().header, header);
        prop_assert_eq!(Header::decode(&buffer), Ok(header));
    }

    /// With a valid checksum, so that the fields are read.
    #[test]
    fn any_bytes_are_a_datagram_or_an_error_within_them(mut bytes in vec(any::<u8>(), 0..200), flags in 0_u8..8) {
        for (byte, value) in bytes.iter_mut().zip([VERSION, flags]) {
            *byte = value;
        }
        if bytes.len() >= HEADER_LENGTH {
            let sum = checksum(&bytes);
            bytes[24..28].copy_from_slice(&sum.to_be_bytes());
        }
        match Datagram::decode(&bytes) {
            Ok(datagram) => drop((datagram.requests().count(), datagram.answers().count())),
            Err(DecodeError::Truncated { offset, needed, found, .. }) => {
                prop_assert!(offset + found == bytes.len() && needed > found);
            }
            Err(
                DecodeError::Value { offset, .. } | DecodeError::Number { offset, .. } | DecodeError::Index { offset, .. },
            ) => prop_assert!(offset < bytes.len()),
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}

#[test]
fn a_truncated_or_changed_datagram_is_refused() {
    let bytes = example();
    assert_eq!(Datagram::decode(&bytes).unwrap().requests().count(), 4);
    for length in 0..bytes.len() {
        assert!(Datagram::decode(&bytes[..length]).is_err(), "{length} bytes");
    }
    for bit in 0..8 * bytes.len() {
        for other in bit + 1..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            changed[other / 8] ^= 1 << (other % 8);
            assert!(Datagram::decode(&changed).is_err(), "bits {bit} and {other}");
        }
    }
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let flow = Flow { source: 1, destination: 2, number: 3 };
    let request = Request { index: 0, length: 1_500, traffic_class: 0, custom: SchemeBytes::NONE };
    let mut buffer = [0; HEADER_LENGTH + 7];
    let mut writer = RequestWriter::new(&mut buffer, &header(Direction::ToArbiter)).unwrap();
    writer.push(&flow, 0, &request).unwrap();
    assert_eq!(
        writer.push(&flow, 0, &Request { index: 2, ..request }),
        Err(EncodeError::Full { needed: 2, left: 1 })
    );
    writer.push(&flow, 0, &Request { index: 1, ..request }).unwrap();
    let window = EncodeError::Window { index: FLOW_WINDOW, base: 0 };
    assert_eq!(writer.push(&flow, 0, &Request { index: FLOW_WINDOW, ..request }), Err(window));
    let length = writer.finish();
    let datagram = Datagram::decode(&buffer[..length]).unwrap();
    assert_eq!(datagram.requests().map(|(_, _, request)| request.index).collect::<Vec<_>>(), [0, 1]);
    let short = RequestWriter::new(&mut buffer[..HEADER_LENGTH - 1], &header(Direction::ToArbiter)).err();
    assert_eq!(short, Some(EncodeError::Full { needed: HEADER_LENGTH, left: HEADER_LENGTH - 1 }));
}

/// The longest entries have the documented lengths: a sender reserves them.
#[test]
fn the_maximum_lengths_are_reached() {
    let flow = Flow { source: u16::MAX, destination: u16::MAX, number: u32::MAX };
    let custom = SchemeBytes::new(&[9; MAX_SCHEME_BYTES]).unwrap();
    let base = u64::MAX - FLOW_WINDOW - 1;
    let request = Request { index: base + 4_000, length: 40, traffic_class: 1, custom };
    let (bytes, _) = written_requests(&[(flow, base, request)], 200);
    assert_eq!(bytes.len(), HEADER_LENGTH + MAX_BLOCK_HEAD + MAX_REQUEST + MAX_SCHEME_BYTES);
    let verdict = Verdict::SendWith(custom);
    let far = [(1 << 63, 0), (0, u32::MAX)];
    let far = far.map(|(index, ticks)| (flow, Answer { index, verdict, emulated: EmulatedDelay(ticks) }));
    let (bytes, _) = written_answers(&far, 200);
    let longest = HEADER_LENGTH + MAX_BLOCK_HEAD + 2 * (MAX_ANSWER + MAX_SCHEME_BYTES);
    // The first answer of a block needs no index, and its delay is 0.
    assert_eq!(bytes.len(), longest - 10 - 4);
    assert_eq!(read_answers(&Datagram::decode(&bytes).unwrap()), far);
}

#[test]
fn a_block_has_at_most_255_entries() {
    let flow = Flow { source: 1, destination: 2, number: 3 };
    let list: Vec<_> = (0..600)
        .map(|index| (flow, 0, Request { index, length: 1_500, traffic_class: 0, custom: SchemeBytes::NONE }))
        .collect();
    let (bytes, fit) = written_requests(&list, DEFAULT_MAX_DATAGRAM);
    assert_eq!(fit, 600);
    assert_eq!(Datagram::decode(&bytes).unwrap().requests().collect::<Vec<_>>(), list);
    let (verdict, emulated) = (Verdict::Send, EmulatedDelay(7));
    let list: Vec<_> = (0..600).map(|index| (flow, Answer { index: 2 * index, verdict, emulated })).collect();
    let (bytes, fit) = written_answers(&list, 2_000);
    assert_eq!((fit, read_answers(&Datagram::decode(&bytes).unwrap())), (600, list));
}

#[test]
fn acknowledgements_cover_33_numbers() {
    let seen = Acknowledgement { highest: Sequence(1), before: 1 << 31 | 1 };
    let covered: Vec<u32> = (0..40)
        .map(|back| 2_u32.wrapping_sub(back))
        .filter(|&number| seen.covers(Sequence(number)))
        .collect();
    assert_eq!(covered, [1, 0, 1_u32.wrapping_sub(32)]);
}
