//! The oracle: what happens to a packet in the emulated network, computed from the packet alone.

use thalweg_realtime::protocol::Submission;
use thalweg_wire::emulation_protocol::{EmulatedDelay, SchemeBytes, Verdict};

use crate::random::mixed;

/// A pure function of all that a request conveys: a request with another flow, length, class or scheme bytes gets
/// another verdict.
pub(crate) fn verdict(packet: &Submission) -> Verdict {
    let digest = digest(packet);
    match digest % 16 {
        0..2 => Verdict::Drop,
        2..4 => Verdict::SendMarked,
        4..6 => {
            Verdict::SendWith(SchemeBytes::new(&digest.to_be_bytes()[..(digest >> 8) as usize % 8]).unwrap())
        }
        _ => Verdict::Send,
    }
}

/// How long it takes, independently of the verdict: up to 200 us, and any time for one packet of 1,024.
pub(crate) fn emulated(packet: &Submission) -> EmulatedDelay {
    let digest = mixed(digest(packet) ^ 0xde1a);
    EmulatedDelay(match digest % 1_024 {
        0 => (digest >> 32) as u32,
        _ => (digest >> 32) as u32 % 2_000,
    })
}

fn digest(packet: &Submission) -> u64 {
    let Submission { flow, length, traffic_class, custom } = packet;
    let fields = [
        u64::from(flow.source),
        flow.destination.into(),
        flow.number.into(),
        (*length).into(),
        (*traffic_class).into(),
    ];
    let digest = fields.into_iter().fold(1, |digest, field| mixed(digest ^ field));
    custom.as_slice().iter().fold(digest, |digest, byte| mixed(digest ^ u64::from(*byte)))
}
