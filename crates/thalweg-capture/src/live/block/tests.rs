//! Blocks built by hand in the kernel's format.

use proptest::prelude::*;

use super::*;

/// From a frame's header to its bytes, as the kernel places Ethernet frames.
const MAC: usize = 82;

/// A frame as it was on the wire; the tests process it as the kernel would.
#[derive(Clone, Debug)]
struct Sent {
    bytes: Vec<u8>,
    tag_is_taken_off: bool,
}

fn ethernet(snap_length: u32) -> Interface {
    Interface { name: None, link_type: LinkType::Ethernet, snap_length }
}

/// A block with these frames, each cut to `snap_length` after its tag was removed.
fn block_of(frames: &[Sent], snap_length: usize) -> Vec<u8> {
    const DESCRIPTOR: usize = offset_of!(tpacket_block_desc, hdr);
    const FIRST: usize = size_of::<tpacket_block_desc>();
    let mut block = vec![0; FIRST];
    put(&mut block, DESCRIPTOR + offset_of!(tpacket_hdr_v1, num_pkts), frames.len() as u32);
    put(&mut block, DESCRIPTOR + offset_of!(tpacket_hdr_v1, offset_to_first_pkt), FIRST as u32);
    for (index, frame) in frames.iter().enumerate() {
        let mut bytes = frame.bytes.clone();
        let mut header = vec![0xee; MAC];
        put(&mut header, offset_of!(tpacket3_hdr, tp_status), 1);
        if frame.tag_is_taken_off {
            let tag: Vec<u8> = bytes.drain(12..16).collect();
            let variant = offset_of!(tpacket3_hdr, hv1);
            let tci = u16::from_be_bytes([tag[2], tag[3]]);
            let tpid = u16::from_be_bytes([tag[0], tag[1]]);
            put(&mut header, variant + offset_of!(tpacket_hdr_variant1, tp_vlan_tci), u32::from(tci));
            let at = variant + offset_of!(tpacket_hdr_variant1, tp_vlan_tpid);
            header[at..at + 2].copy_from_slice(&tpid.to_ne_bytes());
            let status = 1 | libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
            put(&mut header, offset_of!(tpacket3_hdr, tp_status), status);
        }
        put(&mut header, offset_of!(tpacket3_hdr, tp_len), bytes.len() as u32);
        bytes.truncate(snap_length);
        put(&mut header, offset_of!(tpacket3_hdr, tp_snaplen), bytes.len() as u32);
        put(&mut header, offset_of!(tpacket3_hdr, tp_sec), index as u32);
        put(&mut header, offset_of!(tpacket3_hdr, tp_nsec), 7);
        let at = offset_of!(tpacket3_hdr, tp_mac);
        header[at..at + 2].copy_from_slice(&(MAC as u16).to_ne_bytes());
        let length = (MAC + bytes.len()).next_multiple_of(8);
        put(&mut header, offset_of!(tpacket3_hdr, tp_next_offset), length as u32);
        let end = block.len() + length;
        block.extend(header);
        block.extend(bytes);
        block.resize(end, 0);
    }
    block
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
}

/// A frame with an 802.1Q or 802.1ad tag, or without one.
fn a_frame() -> impl Strategy<Value = Sent> {
    let tagged =
        (proptest::collection::vec(any::<u8>(), 18..400), prop_oneof![Just(0x8100_u16), Just(0x88a8)])
            .prop_map(|(mut bytes, tpid)| {
                bytes[12..14].copy_from_slice(&tpid.to_be_bytes());
                Sent { bytes, tag_is_taken_off: true }
            });
    let untagged = proptest::collection::vec(any::<u8>(), 0..400)
        .prop_map(|bytes| Sent { bytes, tag_is_taken_off: false });
    prop_oneof![tagged, untagged]
}

proptest! {
    #[test]
    fn removed_vlan_tags_are_restored(
        sent in proptest::collection::vec(a_frame(), 0..20),
        snap_length in 64..300_u32,
    ) {
        let mut block = block_of(&sent, snap_length as usize);
        let mut frames = Vec::new();
        prop_assert_eq!(read_block(&mut block, &ethernet(snap_length), None, &mut frames), 0);
        prop_assert_eq!(frames.len(), sent.len());
        for (index, (frame, sent)) in frames.iter().zip(&sent).enumerate() {
            let captured = &block[frame.offset..][..frame.captured_length as usize];
            prop_assert_eq!(captured, &sent.bytes[..sent.bytes.len().min(snap_length as usize)]);
            prop_assert_eq!(frame.original_length as usize, sent.bytes.len());
            prop_assert_eq!(frame.time, Timestamp::new(index as u64, 7));
        }
    }
}

#[test]
fn a_tag_without_tpid_is_an_802_1q_tag() {
    let mut bytes = vec![0; 60];
    bytes[12..16].copy_from_slice(&[0x88, 0xa8, 0, 5]);
    let mut block = block_of(&[Sent { bytes, tag_is_taken_off: true }], 64);
    let status = size_of::<tpacket_block_desc>() + offset_of!(tpacket3_hdr, tp_status);
    put(&mut block, status, 1 | libc::TP_STATUS_VLAN_VALID);
    let mut frames = Vec::new();
    read_block(&mut block, &ethernet(64), None, &mut frames);
    assert_eq!(block[frames[0].offset + 12..][..4], [0x81, 0, 0, 5]);
}

#[test]
fn a_frame_without_addresses_is_unchanged() {
    let mut block = block_of(&[Sent { bytes: vec![9; 20], tag_is_taken_off: true }], 8);
    let mut frames = Vec::new();
    read_block(&mut block, &ethernet(8), None, &mut frames);
    assert_eq!((frames[0].captured_length, frames[0].original_length), (8, 16));
}
