use super::*;
use crate::packet::Fragment;
use crate::parse::UdpDatagram;

/// Parses the first `snap_length` bytes of an IP packet.
fn udp_of(bytes: &[u8], snap_length: usize) -> Result<Option<UdpDatagram<'_>>, Unparsed> {
    let frame = Frame {
        time: Timestamp::default(),
        bytes: &bytes[..snap_length],
        original_length: bytes.len() as u32,
        link_type: LinkType::RawIp,
    };
    Parser::default().udp(&frame)
}

#[test]
fn the_payload_excludes_frame_padding() {
    let padded = [&udp_v4()[..], &[0; 6]].concat();
    let datagram = udp_of(&padded, padded.len()).unwrap().unwrap();
    assert_eq!(datagram.payload, b"hello, world");
    let ends = (datagram.source.to_string(), datagram.destination.to_string());
    assert_eq!(ends, ("10.0.0.1:443".into(), "10.0.0.2:51000".into()));
    assert_eq!(udp_of(&tcp_v4(), tcp_v4().len()), Ok(None), "TCP");
}

#[test]
fn the_udp_length_can_be_shorter_than_the_ip_length() {
    let mut segment = udp(443, 51000, b"hello, world");
    segment[5] = 8 + 5;
    let bytes = ipv4(17, &segment);
    assert_eq!(udp_of(&bytes, bytes.len()).unwrap().unwrap().payload, b"hello");
}

#[test]
fn uncaptured_payload_is_missing_and_a_truncated_header_is_an_error() {
    let bytes = udp_v4();
    let datagram = udp_of(&bytes, 33).unwrap().unwrap();
    assert_eq!((datagram.payload, datagram.payload_length), (&b"hello"[..], 12));
    let cut = udp_of(&bytes, 24);
    assert_eq!(cut, Err(Unparsed::Malformed { kind: Malformed::Truncated, offset: 20 }));
}

#[test]
fn fragments_are_marked_and_the_first_has_ports() {
    let mut bytes = udp_v4();
    bytes[6] = 0x20;
    let first = udp_of(&bytes, bytes.len()).unwrap().unwrap();
    assert_eq!((first.source.port(), first.fragment), (443, Fragment::First { identification: 0x1234 }));
    bytes[7] = 1;
    let later = udp_of(&bytes, bytes.len()).unwrap().unwrap();
    assert_eq!((later.source.port(), later.fragment), (0, Fragment::Later { identification: 0x1234 }));
    assert_eq!(later.payload.len(), 20);
}
