//! Samples as pcap files, one for each port and direction.

use std::collections::BTreeMap;

use thalweg_measure::samples::Samples;
use thalweg_wire::LinkType;
use thalweg_wire::capture_file::ByteOrder;
use thalweg_wire::capture_file::pcap::{Encoder, Precision};

use super::labels::{Labels, port_of};

/// A capture file of one port and direction.
pub(super) struct PortFile {
    /// Name of the port, from [`Labels::name`].
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) packets: u64,
}

/// Returns all files, in the order of ports. A pcap file has one link type, so each link type has its own files.
pub(super) fn encode(samples: &Samples, labels: &Labels<'_>, snap_length: u32) -> Vec<PortFile> {
    let encoder = Encoder { order: ByteOrder::Little, precision: Precision::Nanos };
    let mut files = BTreeMap::new();
    for frame in samples.iter() {
        let port_label = port_of(labels.infer(&frame).as_ref());
        let link_type = frame.link_type.number();
        let file: &mut PortFile = files.entry((port_label, link_type)).or_insert_with(|| {
            let mut name = labels.name(port_label);
            if frame.link_type != LinkType::Ethernet {
                name = format!("{name}-{link_type}");
            }
            let mut bytes = Vec::new();
            encoder.file_header(frame.link_type, snap_length, &mut bytes);
            PortFile { name, bytes, packets: 0 }
        });
        encoder.record(&frame, &mut file.bytes);
        file.packets += 1;
    }
    files.into_values().collect()
}
