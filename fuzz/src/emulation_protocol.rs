//! A datagram between an endpoint and the arbiter.

use thalweg_wire::emulation_protocol::{
    AnswerWriter, Datagram, DecodeError, Direction, HEADER_LENGTH, Header, RequestWriter, checksum,
};

/// Checks that a damaged datagram is refused, and that one with a correct checksum is refused at an offset within it or
/// decodes to values that round-trip.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    let mut sealed = data.to_vec();
    if data.len() >= HEADER_LENGTH {
        sealed[24..28].copy_from_slice(&checksum(data).to_be_bytes());
        assert!(sealed == data || Datagram::decode(data).is_err(), "a wrong checksum is accepted: {data:x?}");
    }
    let datagram = match Datagram::decode(&sealed) {
        Ok(datagram) => datagram,
        Err(error) => return check_offset(error, sealed.len()),
    };
    assert_eq!(Header::decode(&sealed), Ok(datagram.header));
    // Writers begin a block only when the flow changes, so they need no more room, except that they repeat an index
    // in each block: room for the longest is enough.
    let mut buffer = vec![0; 64 * sealed.len() + HEADER_LENGTH];
    match datagram.header.direction {
        Direction::ToArbiter => {
            let mut writer = RequestWriter::new(&mut buffer, &datagram.header).unwrap();
            datagram.requests().for_each(|(flow, base, request)| writer.push(&flow, base, &request).unwrap());
            let length = writer.finish();
            let written = Datagram::decode(&buffer[..length]).unwrap();
            assert!(written.requests().eq(datagram.requests()), "{sealed:x?}");
        }
        Direction::ToEndpoint => {
            let expected: Vec<_> = datagram.answers().collect();
            // A packet of a run takes one byte, one that the writer places elsewhere takes more.
            let mut buffer = vec![0; 64 * expected.len() + HEADER_LENGTH];
            let mut writer = AnswerWriter::new(&mut buffer, &datagram.header).unwrap();
            expected.iter().for_each(|(flow, answer)| writer.push(flow, answer).unwrap());
            let length = writer.finish();
            assert!(Datagram::decode(&buffer[..length]).unwrap().answers().eq(expected), "{sealed:x?}");
        }
    }
}

fn check_offset(error: DecodeError, length: usize) {
    let offset = match error {
        DecodeError::Truncated { offset, found, .. } => return assert_eq!(offset + found, length, "{error}"),
        DecodeError::Value { offset, .. }
        | DecodeError::Number { offset, .. }
        | DecodeError::Index { offset, .. } => offset,
        DecodeError::Version { .. } => 0,
        _ => panic!("the checksum is right: {error}"),
    };
    assert!(offset < length, "{error}");
}
