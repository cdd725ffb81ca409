use super::*;

/// Whether libpcap is available; otherwise the rest of a test is skipped.
fn has_libpcap() -> bool {
    match Libpcap::get() {
        Ok(_) => true,
        Err(error) => {
            crate::skip::skip(error);
            false
        }
    }
}

/// An Ethernet frame with an IPv4 header of the given protocol and destination port, no more.
fn frame(protocol: u8, port: u16) -> Vec<u8> {
    let mut bytes = vec![0; 54];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14] = 0x45;
    bytes[23] = protocol;
    bytes[36..38].copy_from_slice(&port.to_be_bytes());
    bytes
}

#[test]
fn expressions_select_matching_frames() {
    if !has_libpcap() {
        return;
    }
    let filter = Filter::compile("tcp dst port 443", LinkType::Ethernet, 128).unwrap();
    assert!(filter.matches(&frame(6, 443), 1500));
    assert!(!filter.matches(&frame(6, 80), 1500));
    assert!(!filter.matches(&frame(17, 443), 1500));
    assert!(!filter.matches(&frame(6, 443)[..30], 1500), "the port was not captured");
    assert!(!filter.matches(&[], 0));
}

#[test]
fn lengths_refer_to_the_wire() {
    if !has_libpcap() {
        return;
    }
    let filter = Filter::compile("greater 1000", LinkType::Ethernet, 0).unwrap();
    assert!(filter.matches(&frame(6, 1), 1500));
    assert!(!filter.matches(&frame(6, 1), 60));
}

#[test]
fn an_empty_expression_accepts_everything() {
    if !has_libpcap() {
        return;
    }
    let filter = Filter::compile("", LinkType::Ethernet, 96).unwrap();
    assert!(filter.matches(&[], 0));
    assert_eq!(filter.program(), [Instruction { code: 6, jump_true: 0, jump_false: 0, k: 96 }]);
}

#[test]
fn every_supported_link_type_can_be_filtered() {
    if !has_libpcap() {
        return;
    }
    for number in [0, 1, 101, 108, 113, 228, 229, 276] {
        let link_type = LinkType::from_number(number);
        Filter::compile("udp port 53 or icmp6", link_type, 0).unwrap_or_else(|e| panic!("{e}"));
    }
    let filter = Filter::compile("udp", LinkType::RawIp, 0).unwrap();
    assert!(filter.matches(&frame(17, 53)[14..], 40));
    assert!(!filter.matches(&frame(6, 53)[14..], 40));
}

#[test]
fn an_invalid_expression_is_rejected_with_the_reason() {
    if !has_libpcap() {
        return;
    }
    let message = |text| Filter::compile(text, LinkType::Ethernet, 0).unwrap_err().to_string();
    assert!(message("tcp prot 80").starts_with("invalid capture filter `tcp prot 80` for Ethernet frames: "));
    assert!(message("tcp prot 80").contains("syntax error"), "{}", message("tcp prot 80"));
    assert!(message("tcp\0").contains("zero byte"));
}

#[test]
fn filters_compile_concurrently() {
    if !has_libpcap() {
        return;
    }
    std::thread::scope(|scope| {
        for port in 0..8_u16 {
            scope.spawn(move || {
                for _ in 0..50 {
                    let filter =
                        Filter::compile(&format!("udp dst port {port}"), LinkType::Ethernet, 0).unwrap();
                    assert!(filter.matches(&frame(17, port), 60));
                    assert!(!filter.matches(&frame(17, port + 1), 60));
                }
            });
        }
    });
}
