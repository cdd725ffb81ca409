//! A stream of OpenFlow messages.

use thalweg_wire::openflow::{HEADER_LENGTH, Header, Message, first_message};

/// The maximum length of message prefixes to check.
const LONGEST_PREFIX: usize = 200;

/// Checks that any stream is split into messages up to its end or an invalid length, that each message round-trips
/// or is an error, and that no truncated message is decoded.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    let mut left = data;
    while let Ok(Some(bytes)) = first_message(left) {
        assert!(bytes.len() >= HEADER_LENGTH && left.starts_with(bytes));
        check_message(bytes);
        left = &left[bytes.len()..];
    }
    // The rest does not decode as a message either, unless its length is correct by chance.
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
