//! Datagrams with every field, in both directions, and some invalid ones.

use thalweg_wire::emulation_protocol::{
    Acknowledgement, Answer, AnswerWriter, DEFAULT_MAX_DATAGRAM, Direction, EmulatedDelay, Flow, Header,
    Request, RequestWriter, SchemeBytes, Sequence, Session, Verdict, checksum,
};

const FLOW: Flow = Flow { source: 1, destination: 300, number: 70_000 };

pub(crate) fn datagrams() -> Vec<(&'static str, Vec<u8>)> {
    let other = Flow { number: 1, ..FLOW };
    let custom = SchemeBytes::new(&[1, 2, 3, 4]).unwrap();
    let request = |index, length, traffic_class| Request { index, length, traffic_class, custom };
    let some = requests(&[
        (FLOW, 5, request(5, 1_500, 2)),
        (FLOW, 5, request(6, 1_500, 2)),
        (FLOW, 5, request(9, 40, 2)),
        (other, 0, request(3, 40, 184)),
    ]);
    let written = Verdict::SendWith(SchemeBytes::new(&[0xee; 15]).unwrap());
    let mixed = answers(&[
        (FLOW, 5, Verdict::Send, 400),
        (FLOW, 6, Verdict::Send, 412),
        (FLOW, 2, Verdict::Drop, 0),
        (other, 1 << 40, Verdict::SendMarked, u32::MAX),
        (other, 0, written, 7),
    ]);
    let changed = |at: usize, byte: u8| {
        let mut bytes = some.clone();
        bytes[at] = byte;
        let sum = checksum(&bytes);
        bytes[24..28].copy_from_slice(&sum.to_be_bytes());
        bytes
    };
    let many: Vec<_> = (0..200)
        .map(|index| (FLOW, 0, Request { custom: SchemeBytes::NONE, ..request(index, 1_500, 0) }))
        .collect();
    let run: Vec<_> = (0..100).map(|index| (FLOW, index, Verdict::Send, 12 * index as u32)).collect();
    vec![
        ("requests", some.clone()),
        ("many-requests", requests(&many)),
        ("answers", mixed),
        ("run-of-answers", answers(&run)),
        ("keep-alive", requests(&[])),
        ("acknowledgement", answers(&[])),
        ("version-2", changed(0, 2)),
        ("unknown-flag", changed(1, 0x80)),
        ("no-entries", changed(35, 0)),
        ("reserved-bit", changed(36, 0x4c)),
        ("beyond-the-window", changed(50, 0xff)),
        ("other-checksum", {
            let mut bytes = some.clone();
            bytes[25] ^= 1;
            bytes
        }),
        ("truncated", some[..some.len() - 3].to_vec()),
        ("short-header", some[..20].to_vec()),
    ]
}

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

fn requests(list: &[(Flow, u64, Request)]) -> Vec<u8> {
    let mut buffer = vec![0; DEFAULT_MAX_DATAGRAM];
    let mut writer = RequestWriter::new(&mut buffer, &header(Direction::ToArbiter)).unwrap();
    list.iter().for_each(|(flow, base, request)| writer.push(flow, *base, request).unwrap());
    let length = writer.finish();
    buffer[..length].to_vec()
}

/// Flow, index, verdict, ticks of the delay.
fn answers(list: &[(Flow, u64, Verdict, u32)]) -> Vec<u8> {
    let mut buffer = vec![0; DEFAULT_MAX_DATAGRAM];
    let mut writer = AnswerWriter::new(&mut buffer, &header(Direction::ToEndpoint)).unwrap();
    for &(flow, index, verdict, ticks) in list {
        writer.push(&flow, &Answer { index, verdict, emulated: EmulatedDelay(ticks) }).unwrap();
    }
    let length = writer.finish();
    buffer[..length].to_vec()
}
