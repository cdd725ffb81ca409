//! The oracle: what happens to a packet in the emulated network, computed from the packet alone.

use thalweg_realtime::protocol::Submission;
use thalweg_wire::emulation_protocol::{SchemeBytes, Verdict};

use crate::random::mixed;

/// A pure function of all that a request conveys: a request with another flow, length, class or scheme bytes gets
/// another verdict.
pub(crate) fn verdict(packet: &Submission) -> Verdict {
    let Submission { flow, length, traffic_class, custom } = packet;
    let fields = [
        u64::from(flow.source),
        flow.destination.into(),
        flow.number.into(),
        (*length).into(),
        (*traffic_class).into(),
    ];
    let digest = fields.into_iter().fold(1, |digest, field| mixed(digest ^ field));
    let digest = custom.as_slice().iter().fold(digest, |digest, byte| mixed(digest ^ u64::from(*byte)));
    match digest % 16 {
        0..2 => Verdict::Drop,
        2..4 => Verdict::SendMarked,
        4..6 => {
            Verdict::SendWith(SchemeBytes::new(&digest.to_be_bytes()[..(digest >> 8) as usize % 8]).unwrap())
        }
        _ => Verdict::Send,
    }
}
