//! `[[packets]]`.

use thalweg_config::Typed;
use thalweg_emulator::Ecn;
use thalweg_emulator::workloads::open_loop::{
    BurstSenders, Bursts, ConstantSenders, Destinations, PacketKind, PacketMix, PacketWorkload,
    PoissonSenders, Rack,
};
use thalweg_emulator::workloads::{WorkloadError, random};
use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Bytes};

use super::Stage;
use crate::experiment::Problem;
use crate::experiment::table::{BurstLengths, DestinationsName, OpenLoop, Packets};

/// The senders of all racks. `index` distinguishes this workload from others.
///
/// # Errors
/// If the senders are invalid.
pub(super) fn senders(
    entry: &Typed<'_, Packets>,
    index: u64,
    stage: &Stage<'_>,
) -> Result<Vec<Box<dyn PacketWorkload>>, Problem> {
    let keys: OpenLoop = entry.keys();
    let mix = mix(entry, &keys, stage)?;
    let refused = |error: WorkloadError| {
        let key = match error {
            WorkloadError::Hurst(_) => BurstLengths::hurst,
            WorkloadError::Bursts { .. } => BurstLengths::burst,
            WorkloadError::Share { .. } => OpenLoop::leaving,
            _ => OpenLoop::load,
        };
        entry.refuse(key, error.to_string())
    };
    // Senders differ by seed, since they do not know other workloads.
    let seed = random::Random::new(stage.seed, "packets", index).bits();
    let racks = racks(stage).into_iter().map(|(first, endpoints, rate)| {
        let rack = Rack {
            first,
            endpoints,
            network: stage.topology.endpoints().len(),
            destinations: destinations(&keys),
            load: keys.load,
            slot_bytes: slot_bytes(rate, stage),
            mix: mix.clone(),
            seed,
        };
        sender(entry, &rack, stage).map_err(refused)
    });
    racks.collect()
}

fn sender(
    packets: &Packets,
    rack: &Rack,
    stage: &Stage<'_>,
) -> Result<Box<dyn PacketWorkload>, WorkloadError> {
    Ok(match packets {
        Packets::Poisson() => Box::new(PoissonSenders::new(rack)?),
        Packets::Constant() => Box::new(ConstantSenders::new(rack)?),
        Packets::Bursts(BurstLengths { hurst, burst, burst_rate }) => {
            let mean_slots = burst.as_secs_f64() / stage.clock.seconds();
            let bursts = Bursts { hurst: *hurst, mean_slots, rate: *burst_rate };
            Box::new(BurstSenders::new(rack, bursts)?)
        }
    })
}

/// Consecutive endpoints at one router with links of one rate.
fn racks(stage: &Stage<'_>) -> Vec<(EndpointId, usize, BitRate)> {
    let topology = stage.topology;
    let of = |endpoint| {
        (topology.router_of(endpoint), topology.links()[topology.endpoint_link(endpoint).index()].rate)
    };
    let endpoints: Vec<EndpointId> = topology.endpoint_ids().collect();
    let racks = endpoints.chunk_by(|&a, &b| of(a) == of(b));
    racks.map(|rack| (rack[0], rack.len(), of(rack[0]).1)).collect()
}

/// Bytes that pass a link of this rate in a slot.
fn slot_bytes(rate: BitRate, stage: &Stage<'_>) -> u32 {
    let bytes =
        u128::from(stage.clock.slot_bytes) * u128::from(rate.0) / u128::from(stage.clock.rate.0.max(1));
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn destinations(keys: &OpenLoop) -> Destinations {
    match (keys.destinations, keys.leaving) {
        (DestinationsName::Permutation, _) => Destinations::Permutation,
        (DestinationsName::Uniform, Some(leaving)) => Destinations::Leaving(leaving),
        (DestinationsName::Uniform, None) => Destinations::Uniform,
    }
}

fn mix(entry: &Typed<'_, Packets>, keys: &OpenLoop, stage: &Stage<'_>) -> Result<PacketMix, Problem> {
    let refuse = |reason: String| entry.refuse(OpenLoop::lengths, reason);
    let dscp = keys.dscp;
    let ecn = if keys.ecn { Ecn::Capable0 } else { Ecn::NotCapable };
    let kind = |length| PacketKind { traffic_class: dscp << 2 | ecn as u8, ..PacketKind::of_length(length) };
    let kinds = match &keys.lengths {
        None => vec![(kind(stage.longest), 1.0)],
        Some(texts) => {
            let kinds = texts.iter().map(|text| {
                let (weight, length) = weighted(text, stage)?;
                Ok((kind(length), weight))
            });
            kinds.collect::<Result<Vec<_>, String>>().map_err(refuse)?
        }
    };
    PacketMix::mixed(&kinds).map_err(|error| refuse(error.to_string()))
}

/// `LENGTH`, `WEIGHT LENGTH`.
fn weighted(text: &str, stage: &Stage<'_>) -> Result<(f64, u16), String> {
    let longest = stage.longest;
    let wrong = || {
        format!(
            "\"{text}\": expected LENGTH or WEIGHT LENGTH, as in 0.5 64B, with lengths from 1B to {longest}B"
        )
    };
    let (weight, length) = match text.split_once(' ') {
        Some((weight, length)) if text.parse::<Bytes>().is_err() => {
            (weight.parse().map_err(|_| wrong())?, length)
        }
        _ => (1.0, text),
    };
    let length = length.parse().ok().filter(|length: &Bytes| (1..=u64::from(longest)).contains(&length.0));
    Ok((weight, length.ok_or_else(wrong)?.0 as u16))
}
