//! `[[workload]]`.

use thalweg_config::{Hint, Typed};
use thalweg_emulator::workloads::arrivals::Spacing;
use thalweg_emulator::workloads::compose::Limited;
use thalweg_emulator::workloads::patterns::{
    Each, Incast, IncastOptions, Rpc, RpcOptions, Schedule, Shuffle, ShuffleOptions, Staggered,
};
use thalweg_emulator::workloads::sizes::{FlowSizes, PUBLISHED, SizeClass, SizeDistribution, Sizes};
use thalweg_emulator::workloads::{UNBOUNDED, Workload, WorkloadError};
use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Bytes, Timestamp};

use super::Stage;
use super::network::{endpoint, endpoints};
use crate::experiment::Problem;
use crate::experiment::table;
use crate::experiment::table::{
    Apart, CodePoint, FlowFile, Limits, Load, Participants, Requests, SpacingName, Start, ToOne,
    Workload as Described,
};

/// A `[[workload]]` with its line numbers.
type Entry<'e> = Typed<'e, Described>;

/// The flows of a workload. `index` distinguishes it from others.
///
/// # Errors
/// If the workload is invalid.
pub(super) fn workload(
    entry: &Entry<'_>,
    index: u64,
    stage: &Stage<'_>,
) -> Result<Box<dyn Workload + Send>, Problem> {
    let flows = pattern(entry, index, stage)?;
    let Limits { until, flows: most } = entry.keys();
    let until = until.map_or(stage.until, |until| Timestamp(until.0).min(stage.until));
    Ok(Box::new(Limited::new(flows, most.unwrap_or(u64::MAX), until)))
}

fn pattern(entry: &Entry<'_>, index: u64, stage: &Stage<'_>) -> Result<Box<dyn Workload + Send>, Problem> {
    let seed = stage.seed;
    let at = |start: &Start| Timestamp(start.from.0);
    let sizes = |of: &table::FlowSizes, code_point: &CodePoint| sizes(entry, of, code_point, stage);
    let each = |of: &table::FlowSizes, apart: &Apart, start: &Start, code_point: &CodePoint| {
        let sizes = sizes(of, code_point)?;
        Ok(Each { sizes, at: at(start), apart: apart.apart, seed, index })
    };
    let named = |key, names: &Option<Vec<String>>| some_endpoints(entry, key, names.as_deref(), stage);
    let participants = |some: &Participants| {
        named(Participants::endpoints, &some.endpoints).map(|some| some.unwrap_or_else(|| all(stage)))
    };
    let refused = |error: WorkloadError| refusal(entry, &error);
    Ok(match &**entry {
        Described::AllToAll(of, load, some, start, code_point) => {
            let endpoints = participants(some)?;
            let options = rpc_options(load, sizes(of, code_point)?, index, &endpoints, at(start), stage);
            Box::new(Rpc::all_to_all(&endpoints, options).map_err(refused)?)
        }
        Described::Rpc(of, load, Requests { clients, servers, fan_in }, start, code_point) => {
            let clients = endpoints(stage.topology, clients)
                .map_err(|reason| entry.refuse(Requests::clients, reason))?;
            let servers = named(Requests::servers, servers)?.unwrap_or_else(|| {
                all(stage).into_iter().filter(|endpoint| !clients.contains(endpoint)).collect()
            });
            let options = rpc_options(load, sizes(of, code_point)?, index, &clients, at(start), stage);
            let options = RpcOptions { fan_in: *fan_in, ..options };
            Box::new(Rpc::new(&clients, &servers, options).map_err(refused)?)
        }
        Described::Incast(of, to_one, rounds, start, code_point) => {
            let (senders, receiver) = sends_to_one(entry, to_one, stage)?;
            let options = IncastOptions {
                sizes: sizes(of, code_point)?,
                rounds: rounds.rounds.unwrap_or(u64::MAX),
                from: at(start),
                pause: rounds.pause,
                seed,
                index,
            };
            Box::new(Incast::new(&senders, receiver, options).map_err(refused)?)
        }
        Described::Persistent(to_one, apart, start) => {
            let (senders, receiver) = sends_to_one(entry, to_one, stage)?;
            Box::new(Schedule::persistent(&senders, receiver, at(start), apart.apart).map_err(refused)?)
        }
        Described::Shuffle(of, some, shuffle, start, code_point) => {
            let sizes = sizes(of, code_point)?;
            let options = ShuffleOptions { sizes, at_once: shuffle.at_once, from: at(start), seed, index };
            Box::new(Shuffle::new(&participants(some)?, options).map_err(refused)?)
        }
        Described::Stride(of, some, stride, apart, start, code_point) => {
            let endpoints = participants(some)?;
            let stride = stride.stride.unwrap_or(endpoints.len() / 2);
            let each = each(of, apart, start, code_point)?;
            Box::new(Schedule::stride(&endpoints, stride, &each).map_err(refused)?)
        }
        Described::RandomBijection(of, some, apart, start, code_point) => {
            let (endpoints, each) = (participants(some)?, each(of, apart, start, code_point)?);
            Box::new(Schedule::random_bijection(&endpoints, &each).map_err(refused)?)
        }
        Described::Random(of, some, apart, start, code_point) => {
            let (endpoints, each) = (participants(some)?, each(of, apart, start, code_point)?);
            Box::new(Schedule::random(&endpoints, &each).map_err(refused)?)
        }
        Described::Staggered(of, some, stages, apart, start, code_point) => {
            let &table::Stages { endpoints_per_edge, endpoints_per_pod, edge, pod } = stages;
            let staggered = Staggered { endpoints_per_edge, endpoints_per_pod, edge, pod };
            let (endpoints, each) = (participants(some)?, each(of, apart, start, code_point)?);
            Box::new(Schedule::staggered(&endpoints, staggered, &each).map_err(refused)?)
        }
        Described::File(file) => Box::new(from_file(entry, file, stage)?),
    })
}

fn rpc_options(
    load: &Load,
    sizes: FlowSizes,
    index: u64,
    receivers: &[EndpointId],
    from: Timestamp,
    stage: &Stage<'_>,
) -> RpcOptions {
    let spacing = match load.spacing {
        SpacingName::Constant => Spacing::Constant,
        SpacingName::Poisson => Spacing::Poisson,
    };
    RpcOptions {
        load: load.load,
        rate: mean_rate(receivers, stage),
        sizes,
        fan_in: 1,
        spacing,
        from,
        seed: stage.seed,
        index,
    }
}

/// The mean rate of the links of some endpoints, so that a load is a share of what all of them can receive.
fn mean_rate(endpoints: &[EndpointId], stage: &Stage<'_>) -> BitRate {
    let rate = |&endpoint: &EndpointId| {
        stage.topology.links()[stage.topology.endpoint_link(endpoint).index()].rate.0
    };
    let sum: u128 = endpoints.iter().map(|endpoint| u128::from(rate(endpoint))).sum();
    BitRate(sum.checked_div(endpoints.len() as u128).unwrap_or_default() as u64)
}

fn sends_to_one(
    entry: &Entry<'_>,
    to_one: &ToOne,
    stage: &Stage<'_>,
) -> Result<(Vec<EndpointId>, EndpointId), Problem> {
    let receiver =
        endpoint(stage.topology, &to_one.receiver).map_err(|reason| entry.refuse(ToOne::receiver, reason))?;
    let senders = some_endpoints(entry, ToOne::senders, to_one.senders.as_deref(), stage)?;
    let others = || all(stage).into_iter().filter(|&endpoint| endpoint != receiver).collect();
    Ok((senders.unwrap_or_else(others), receiver))
}

fn some_endpoints(
    entry: &Entry<'_>,
    key: &'static str,
    names: Option<&[String]>,
    stage: &Stage<'_>,
) -> Result<Option<Vec<EndpointId>>, Problem> {
    let found = names.map(|names| endpoints(stage.topology, names)).transpose();
    found.map_err(|reason| entry.refuse(key, reason))
}

fn all(stage: &Stage<'_>) -> Vec<EndpointId> {
    stage.topology.endpoint_ids().collect()
}

fn from_file(
    entry: &Entry<'_>,
    FlowFile { file }: &FlowFile,
    stage: &Stage<'_>,
) -> Result<Schedule, Problem> {
    let refuse = |reason: String| entry.refuse(FlowFile::file, reason);
    let text = thalweg_config::read_text(stage.experiment.folder.join(file))
        .map_err(|error| refuse(format!("cannot read {file}: {error}")))?;
    let flows = Schedule::from_text(&text, stage.topology.endpoints().len());
    flows.map_err(|error| refuse(format!("{file}: {error}")))
}

fn sizes(
    entry: &Entry<'_>,
    of: &table::FlowSizes,
    code_point: &CodePoint,
    stage: &Stage<'_>,
) -> Result<FlowSizes, Problem> {
    let refuse = |reason| entry.refuse(table::FlowSizes::sizes, reason);
    let classes = of.sizes.iter().map(|text| size_class(text, code_point.dscp, stage).map_err(refuse));
    let classes = classes.collect::<Result<Vec<_>, _>>()?;
    FlowSizes::mixed(classes).map_err(|error| refuse(error.to_string()))
}

/// `SIZES`, `WEIGHT SIZES`, `WEIGHT SIZES dscp N`.
fn size_class(text: &str, dscp: u8, stage: &Stage<'_>) -> Result<SizeClass, String> {
    let wrong =
        || format!("\"{text}\": expected SIZES, WEIGHT SIZES or WEIGHT SIZES dscp N, as in 0.8 1500B dscp 3");
    let (text, dscp) = match text.split_once(" dscp ") {
        Some((rest, number)) => (rest.trim(), number.trim().parse().map_err(|_| wrong())?),
        None => (text, dscp),
    };
    let (weight, name) = match text.split_once(' ') {
        // `10 MB` is an amount.
        Some((weight, rest)) if text.parse::<Bytes>().is_err() => {
            (weight.parse().map_err(|_| wrong())?, rest.trim())
        }
        _ => (1.0, text),
    };
    Ok(SizeClass { sizes: sizes_named(name, stage)?, dscp, weight })
}

fn sizes_named(name: &str, stage: &Stage<'_>) -> Result<Sizes, String> {
    if name == "forever" {
        return Ok(Sizes::Fixed(UNBOUNDED));
    }
    if let Ok(Bytes(bytes)) = name.parse() {
        return Ok(Sizes::Fixed(bytes));
    }
    if let Ok(distribution) = SizeDistribution::published(name) {
        return Ok(Sizes::Drawn(distribution));
    }
    let path = stage.experiment.folder.join(name);
    let text = thalweg_config::read_text(&path).map_err(|error| {
        let known = PUBLISHED.iter().map(|published| published.named.name).chain(["forever"]);
        match Hint::nearest(name, known) {
            Hint::None => format!(
                "\"{name}\" is no amount, no published distribution and no readable file ({error}): expected an amount such as \
                 10MB, forever, a name from thalweg emulate --list, or a file"
            ),
            hint => format!("\"{name}\" is neither a published distribution nor a file{hint}"),
        }
    })?;
    SizeDistribution::from_text(&text).map(Sizes::Drawn).map_err(|error| format!("{name}: {error}"))
}

/// The key of an error.
fn refusal(entry: &Entry<'_>, error: &WorkloadError) -> Problem {
    let key = match error {
        WorkloadError::Load(_) | WorkloadError::Rate => Load::load,
        WorkloadError::Endless | WorkloadError::Empty(_) | WorkloadError::Weight(_) => {
            table::FlowSizes::sizes
        }
        WorkloadError::FanIn { .. } => Requests::fan_in,
        WorkloadError::Stride { .. } => table::Stride::stride,
        WorkloadError::Dscp(_) => CodePoint::dscp,
        _ => Described::pattern,
    };
    entry.refuse(key, error.to_string())
}
