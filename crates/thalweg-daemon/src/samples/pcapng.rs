//! Samples as one pcapng file: an interface for each port and direction, both ports in each packet's comment.

use std::collections::BTreeMap;

use thalweg_measure::samples::Samples;
use thalweg_wire::capture_file::pcapng::Encoder;
use thalweg_wire::{FlowKey, Frame, Interface};

use super::labels::{Labels, PortLabel, port_of};

/// Returns the file, and the number of its packets: all samples, or those of `flow`, both directions.
pub(super) fn encode(
    samples: &Samples,
    labels: &Labels<'_>,
    snap_length: u32,
    flow: Option<&FlowKey>,
) -> (Vec<u8>, u64) {
    let is_wanted = |frame: &Frame<'_>| flow.is_none_or(|flow| labels.is_of(frame, flow));
    let frames: Vec<_> = samples.iter().filter(is_wanted).collect();
    let inferences: Vec<_> = frames.iter().map(|frame| labels.infer(frame)).collect();
    // By port, direction and link type.
    let mut interfaces: BTreeMap<(PortLabel, u16), u32> = BTreeMap::new();
    for (frame, inference) in frames.iter().zip(&inferences) {
        interfaces.insert((port_of(inference.as_ref()), frame.link_type.number()), 0);
    }
    let encoder = Encoder::default();
    let mut file = Vec::new();
    encoder.section_header(&mut file);
    for (index, ((port_label, link_type), number)) in interfaces.iter_mut().enumerate() {
        *number = index as u32;
        let link_type = thalweg_wire::LinkType::from_number(*link_type);
        let interface = Interface { name: Some(labels.name(*port_label)), link_type, snap_length };
        encoder.interface_description(&interface, Some(&labels.description(*port_label)), &mut file);
    }
    for (frame, inference) in frames.iter().zip(&inferences) {
        let number = interfaces[&(port_of(inference.as_ref()), frame.link_type.number())];
        let comment = inference.as_ref().map(|inference| labels.comment(inference));
        encoder.enhanced_packet(number, frame, comment.as_deref(), &mut file);
    }
    (file, frames.len() as u64)
}
