//! Datagrams encoded by hand from the reference page. The checksums are those of another implementation of CRC-32C.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn requests_of_two_flows() {
    // Request 5 follows the base; 6 has only scheme bytes; 9 skips two and is shorter; 3 of the next flow has another
    // traffic class.
    let expected = "01 06 0007  01020304 11121314  00000005 00000009 00000005  34e4c35a\
         01 ac02 00 05 03  44 02 01020304  40 01020304  43 04 0028 01020304\
         01 ac02 01 00 01  45 06 00 01020304";
    assert_eq!(format!("{:02x?}", example()), format!("{:02x?}", bytes(expected)));
}

#[test]
fn answers_in_runs() {
    let flow = Flow { source: 1, destination: 2, number: 3 };
    let written = SchemeBytes::new(&[0xee]).unwrap();
    let list = [
        (5, Verdict::Send, 300),
        (6, Verdict::Send, 312),
        (7, Verdict::Drop, 0),
        (4, Verdict::SendMarked, 312),
        (5, Verdict::SendWith(written), 312),
    ];
    let list =
        list.map(|(index, verdict, ticks)| (flow, Answer { index, verdict, emulated: EmulatedDelay(ticks) }));
    let expected = "01 07 0007  01020304 11121314  00000005 00000009 00000005  4a2def47\
         01 02 03 05 04  09 d804 18  00 ef04  06 07 f004  03 01 ee 00";
    assert_eq!(format!("{:02x?}", written_answers(&list, 100).0), format!("{:02x?}", bytes(expected)));
}

#[test]
fn an_endpoint_that_knows_nothing_sends_a_header() {
    let first = Header {
        wants_acknowledgement: true,
        peer_session: None,
        acknowledgement: None,
        ..header(Direction::ToArbiter)
    };
    let mut buffer = [0xff; HEADER_LENGTH];
    RequestWriter::new(&mut buffer, &first).unwrap().finish();
    let expected = "01 02 0007  01020304 00000000  00000005 00000000 00000000";
    assert_eq!(format!("{:02x?}", &buffer[..24]), format!("{:02x?}", bytes(expected)));
}

/// A delay below 0, and one beyond 32 bits.
#[test]
fn a_delay_out_of_range_is_refused() {
    let flow = Flow { source: 1, destination: 2, number: 3 };
    let answer = |ticks| (flow, Answer { index: 0, verdict: Verdict::Send, emulated: EmulatedDelay(ticks) });
    // Block head 5 bytes, control byte 1, the delay.
    for (ticks, at, byte) in [(1, HEADER_LENGTH + 6, 1), (u32::MAX, HEADER_LENGTH + 10, 0x3f)] {
        let (mut bytes, _) = written_answers(&[answer(ticks)], 100);
        assert_eq!(bytes.len() - 1, at);
        bytes[at] = byte;
        let sum = checksum(&bytes);
        bytes[24..28].copy_from_slice(&sum.to_be_bytes());
        let error = Datagram::decode(&bytes).unwrap_err().to_string();
        let start = "difference of an emulated delay at offset 34 of an emulation datagram is ";
        assert!(
            error.starts_with(start) && error.ends_with(": expected a delay of 0 to 2^32 - 1"),
            "{error}"
        );
    }
}

/// Each error names field, offset and expectation.
#[test]
fn errors_say_where_and_what_is_expected() {
    let valid = example();
    let with = |at: usize, byte: u8| {
        let mut changed = valid.clone();
        changed[at] = byte;
        let sum = checksum(&changed);
        changed[24..28].copy_from_slice(&sum.to_be_bytes());
        Datagram::decode(&changed).unwrap_err().to_string()
    };
    let unknown_session = {
        let mut changed = valid.clone();
        changed[4..8].fill(0);
        let sum = checksum(&changed);
        changed[24..28].copy_from_slice(&sum.to_be_bytes());
        Datagram::decode(&changed).unwrap_err().to_string()
    };
    let errors = [
        with(0, 2),
        with(1, 0x16),
        with(1, 0x02),
        unknown_session,
        with(33, 0),
        with(34, 0x4c),
        with(46, 0x83),
        with(46, 0x07),
        Datagram::decode(&valid[..27]).unwrap_err().to_string(),
    ];
    assert_eq!(
        errors,
        [
            "unsupported version 2 at offset 0 of an emulation datagram: expected 1",
            "flags at offset 1 of an emulation datagram is 22: expected 0 in bits 3 to 7",
            "acknowledgement at offset 16 of an emulation datagram is 38654705669: expected 0 without its flag",
            "session at offset 4 of an emulation datagram is 0: expected 1 or more",
            "number of entries at offset 33 of an emulation datagram is 0: expected 1 or more",
            "control byte of a request at offset 34 of an emulation datagram is 76: expected 0 in bit 3",
            "index of a request at offset 46 of an emulation datagram: expected a number of at most 64 bits in its shortest form",
            "index at offset 45 of an emulation datagram is out of range: expected an index within 4,096 from the flow's base",
            "checksum at offset 24 of an emulation datagram is truncated: expected 4 bytes, found 3",
        ]
    );
}
