//! `[[workload]]`.

use thalweg_config::{Hint, nearest};
use thalweg_emulator::workloads::arrivals::Spacing;
use thalweg_emulator::workloads::compose::Limited;
use thalweg_emulator::workloads::patterns::{
    Each, Incast, IncastOptions, Rpc, RpcOptions, Schedule, Shuffle, ShuffleOptions, Staggered,
};
use thalweg_emulator::workloads::sizes::{FlowSizes, PUBLISHED, SizeClass, SizeDistribution, Sizes};
use thalweg_emulator::workloads::{FOR_EVER, Workload, WorkloadError};
use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Bytes, Timestamp};

use super::network::{endpoint, endpoints};
use super::{SURE, Stage};
use crate::experiment::{Entry, Problem};

/// The flows of a workload; `index` tells it from others.
///
/// # Errors
/// If there can be no such workload.
pub(super) fn workload(
    entry: &Entry,
    index: u64,
    stage: &Stage<'_>,
) -> Result<Box<dyn Workload + Send>, Problem> {
    let flows = pattern(entry, index, stage)?;
    let most = entry.whole("flows").unwrap_or(u64::MAX);
    let until = entry.time("until").map_or(stage.until, |until| Timestamp(until.0).min(stage.until));
    Ok(Box::new(Limited::new(flows, most, until)))
}

fn pattern(entry: &Entry, index: u64, stage: &Stage<'_>) -> Result<Box<dyn Workload + Send>, Problem> {
    let seed = stage.seed;
    let from = || Timestamp(entry.time("from").expect(SURE).0);
    let each = || {
        Ok(Each {
            sizes: sizes(entry, stage)?,
            at: from(),
            apart: entry.time("apart").expect(SURE),
            seed,
            index,
        })
    };
    let hosts = || some_endpoints(entry, "hosts", stage).map(|hosts| hosts.unwrap_or_else(|| all(stage)));
    let refused = |error: WorkloadError| refusal(entry, &error);
    Ok(match entry.chosen() {
        "all_to_all" => {
            let hosts = hosts()?;
            let options = rpc_options(entry, index, &hosts, from(), stage)?;
            Box::new(Rpc::all_to_all(&hosts, options).map_err(refused)?)
        }
        "rpc" => {
            let clients = some_endpoints(entry, "clients", stage)?.expect(SURE);
            let servers = some_endpoints(entry, "servers", stage)?
                .unwrap_or_else(|| all(stage).into_iter().filter(|host| !clients.contains(host)).collect());
            let options = RpcOptions {
                fan_in: entry.whole("fan_in").expect(SURE),
                ..rpc_options(entry, index, &clients, from(), stage)?
            };
            Box::new(Rpc::new(&clients, &servers, options).map_err(refused)?)
        }
        "incast" => {
            let (senders, receiver) = to_one(entry, stage)?;
            let options = IncastOptions {
                sizes: sizes(entry, stage)?,
                rounds: entry.whole("rounds").unwrap_or(u64::MAX),
                from: from(),
                pause: entry.time("pause").expect(SURE),
                seed,
                index,
            };
            Box::new(Incast::new(&senders, receiver, options).map_err(refused)?)
        }
        "persistent" => {
            let (senders, receiver) = to_one(entry, stage)?;
            let apart = entry.time("apart").expect(SURE);
            Box::new(Schedule::persistent(&senders, receiver, from(), apart).map_err(refused)?)
        }
        "shuffle" => {
            let at_once = entry.whole("at_once").expect(SURE);
            let options = ShuffleOptions { sizes: sizes(entry, stage)?, at_once, from: from(), seed, index };
            Box::new(Shuffle::new(&hosts()?, options).map_err(refused)?)
        }
        "stride" => {
            let hosts = hosts()?;
            let stride = entry.whole("stride").unwrap_or(hosts.len() / 2);
            Box::new(Schedule::stride(&hosts, stride, &each()?).map_err(refused)?)
        }
        "random_bijection" => Box::new(Schedule::random_bijection(&hosts()?, &each()?).map_err(refused)?),
        "random" => Box::new(Schedule::random(&hosts()?, &each()?).map_err(refused)?),
        "staggered" => {
            let staggered = Staggered {
                hosts_per_edge: entry.whole("hosts_per_edge").expect(SURE),
                hosts_per_pod: entry.whole("hosts_per_pod").expect(SURE),
                edge: entry.number("edge").expect(SURE),
                pod: entry.number("pod").expect(SURE),
            };
            Box::new(Schedule::staggered(&hosts()?, staggered, &each()?).map_err(refused)?)
        }
        "file" => Box::new(from_file(entry, stage)?),
        other => unreachable!("{other} is no pattern of the list (tested below)"),
    })
}

fn rpc_options(
    entry: &Entry,
    index: u64,
    receivers: &[EndpointId],
    from: Timestamp,
    stage: &Stage<'_>,
) -> Result<RpcOptions, Problem> {
    let spacing = match entry.text("spacing") {
        Some("constant") => Spacing::Constant,
        _ => Spacing::Poisson,
    };
    let load = entry.number("load").expect(SURE);
    let sizes = sizes(entry, stage)?;
    Ok(RpcOptions {
        load,
        rate: mean_rate(receivers, stage),
        sizes,
        fan_in: 1,
        spacing,
        from,
        seed: stage.seed,
        index,
    })
}

/// Mean rate of the links of some endpoints, so that a load is a share of what all of them can receive.
fn mean_rate(endpoints: &[EndpointId], stage: &Stage<'_>) -> BitRate {
    let rate = |&endpoint: &EndpointId| {
        stage.topology.links()[stage.topology.endpoint_link(endpoint).index()].rate.0
    };
    let sum: u128 = endpoints.iter().map(|endpoint| u128::from(rate(endpoint))).sum();
    BitRate(sum.checked_div(endpoints.len() as u128).unwrap_or_default() as u64)
}

fn to_one(entry: &Entry, stage: &Stage<'_>) -> Result<(Vec<EndpointId>, EndpointId), Problem> {
    let name = entry.text("receiver").expect(SURE);
    let receiver = endpoint(stage.topology, name).map_err(|reason| entry.refuse("receiver", reason))?;
    let senders = some_endpoints(entry, "senders", stage)?;
    let others = || all(stage).into_iter().filter(|&host| host != receiver).collect();
    Ok((senders.unwrap_or_else(others), receiver))
}

fn some_endpoints(
    entry: &Entry,
    key: &'static str,
    stage: &Stage<'_>,
) -> Result<Option<Vec<EndpointId>>, Problem> {
    let names = entry.texts(key);
    let found = names.map(|names| endpoints(stage.topology, &names)).transpose();
    found.map_err(|reason| entry.refuse(key, reason))
}

fn all(stage: &Stage<'_>) -> Vec<EndpointId> {
    stage.topology.endpoint_ids().collect()
}

fn from_file(entry: &Entry, stage: &Stage<'_>) -> Result<Schedule, Problem> {
    let file = entry.text("file").expect(SURE);
    let text = std::fs::read_to_string(stage.experiment.folder.join(file))
        .map_err(|error| entry.refuse("file", format!("cannot read {file}: {error}")))?;
    let flows = Schedule::from_text(&text, stage.topology.endpoints().len());
    flows.map_err(|error| entry.refuse("file", format!("{file}: {error}")))
}

fn sizes(entry: &Entry, stage: &Stage<'_>) -> Result<FlowSizes, Problem> {
    let refuse = |reason| entry.refuse("sizes", reason);
    let dscp = entry.whole("dscp").expect(SURE);
    let texts = entry.texts("sizes").expect(SURE);
    let classes = texts.into_iter().map(|text| size_class(text, dscp, stage).map_err(refuse));
    let classes = classes.collect::<Result<Vec<_>, _>>()?;
    FlowSizes::mixed(classes).map_err(|error| refuse(error.to_string()))
}

/// `SIZES`, `WEIGHT SIZES`, `WEIGHT SIZES dscp N`.
fn size_class(text: &str, dscp: u8, stage: &Stage<'_>) -> Result<SizeClass, String> {
    let wrong =
        || format!("{text}: expected SIZES, WEIGHT SIZES or WEIGHT SIZES dscp N, as in 0.8 1500B dscp 3");
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
        return Ok(Sizes::Fixed(FOR_EVER));
    }
    if let Ok(Bytes(bytes)) = name.parse() {
        return Ok(Sizes::Fixed(bytes));
    }
    if let Ok(distribution) = SizeDistribution::published(name) {
        return Ok(Sizes::Drawn(distribution));
    }
    let path = stage.experiment.folder.join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        let known = PUBLISHED.iter().map(|published| published.named.name).chain(["forever"]);
        match nearest(name, known) {
            Hint::Nothing => {
                format!("{name} is no published distribution, and cannot be read as a file: {error}")
            }
            hint => format!("{name} is no published distribution and no file{hint}"),
        }
    })?;
    SizeDistribution::from_text(&text).map(Sizes::Drawn).map_err(|error| format!("{name}: {error}"))
}

/// The key that an error is about.
fn refusal(entry: &Entry, error: &WorkloadError) -> Problem {
    let key = match error {
        WorkloadError::Load(_) | WorkloadError::Rate => "load",
        WorkloadError::Endless | WorkloadError::Empty(_) | WorkloadError::Weight(_) => "sizes",
        WorkloadError::FanIn { .. } => "fan_in",
        WorkloadError::Stride { .. } => "stride",
        WorkloadError::Dscp(_) => "dscp",
        _ => "pattern",
    };
    entry.refuse(key, error.to_string())
}
