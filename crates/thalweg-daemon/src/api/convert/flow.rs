//! Flows.

use thalweg_api::{Basis, Flow, FlowName, FlowRate, Rate};
use thalweg_measure::collector::{self, FlowReport, LinkDirection, PortDirection};
use thalweg_measure::rates;
use thalweg_network::PortIndex;

use super::rate;
use crate::link_name::link_name;

/// Converts a flow as this collector sees it at this switch.
pub fn flow(report: &FlowReport, collector: &str, switch: &str, is_redirected: bool) -> Flow {
    let link = |port: Option<PortIndex>, way| {
        port.map(|port| link_name(switch, LinkDirection { port, direction: way }).to_string())
    };
    Flow {
        flow: FlowName::from(&report.key),
        key: report.key.to_string(),
        collector: collector.to_owned(),
        rate: report.rate.as_ref().map_or(Rate::UNKNOWN, known_rate),
        basis: report.rate.map_or(Basis::Nothing, |known| basis_name(known.basis)),
        span: report.rate.map(|known| known.span.into()),
        input: link(report.input, PortDirection::Input),
        output: link(report.output, PortDirection::Output),
        flow_start: report.first.into(),
        flow_end: report.last.into(),
        samples: report.samples,
        sampled_bytes: report.sampled.0,
        repeated_bytes: report.repeated.0,
        reordered: report.reordered,
        cheetah: report.is_cheetah,
        redirected: is_redirected,
    }
}

/// Converts the rate of one direction of a flow.
pub fn flow_rate(known: &collector::FlowRate) -> FlowRate {
    FlowRate {
        flow: FlowName::from(&known.key),
        key: known.key.to_string(),
        dst_mac: known.ethernet.destination.to_string(),
        src_mac: known.ethernet.source.to_string(),
        rate: known_rate(known),
        basis: basis_name(known.basis),
        span: known.span.into(),
    }
}

/// Converts a rate, without the value if only its bounds are known.
fn known_rate(known: &collector::FlowRate) -> Rate {
    Rate { rate_bps: known.known_value(), ..rate(known.rate) }
}

fn basis_name(basis: rates::Basis) -> Basis {
    match basis {
        rates::Basis::Nothing => Basis::Nothing,
        rates::Basis::SequenceNumbers => Basis::SequenceNumbers,
        rates::Basis::Identification => Basis::Identification,
        rates::Basis::SamplingRatio => Basis::SamplingRatio,
        rates::Basis::SamplesAlone => Basis::SamplesAlone,
    }
}
