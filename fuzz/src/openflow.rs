//! A stream of OpenFlow messages.

use thalweg_wire::openflow::{HEADER_LENGTH, Header, Message, first_message};

/// Prefixes of a message are tried one by one up to this length.
const LONGEST_PREFIX: usize = 200;

/// Any stream is cut into messages until its end or a length that none can have; each message says something that is
/// encoded and decodes to the same, or is an error; none that is cut short says anything.
///
/// # Panics
/// If it does not hold.
pub fn check(data: &[u8]) {
    let mut left = data;
    while let Ok(Some(bytes)) = first_message(left) {
        assert!(bytes.len() >= HEADER_LENGTH && left.starts_with(bytes));
        check_message(bytes);
        left = &left[bytes.len()..];
    }
    // What is left is not read as a message either, but for one whose length is right by chance.
    let _ = Message::decode(left);
}

fn check_message(bytes: &[u8]) {
    let header = Header::decode(bytes).expect("it has been cut off by it").expect("it is there in whole");
    assert_eq!(usize::from(header.length), bytes.len());
    for length in 0..bytes.len().min(LONGEST_PREFIX) {
        assert!(Message::decode(&bytes[..length]).is_err(), "{length} bytes of {bytes:x?}");
        assert_eq!(first_message(&bytes[..length]), Ok(None));
    }
    let Ok(message) = Message::decode(bytes) else { return };
    assert_eq!((message.xid, message.body.kind()), (header.xid, header.kind));
    let mut encoded = vec![0xaa; 3];
    message.encode(&mut encoded).expect("what was read fits into its lengths");
    assert_eq!(Message::decode(&encoded[3..]), Ok(message));
}
