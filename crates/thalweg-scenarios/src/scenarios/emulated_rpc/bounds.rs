//! The claims about completion times, with bounds that were fixed before the first measurement.
//!
//! | claim | source of the bounds |
//! |---|---|
//! | DropTail, loads up to 60 %: mean time over that of the kernel's queue, small flows: 0.92 to 1.08, large ones: 0.86 to 1.14 | figure 4: within 2-8 % and 3-14 % |
//! | small flows at the highest load: DropTail is worst in the mean, pFabric best at the 99th percentile | section 5.2 |
//! | pFabric, small flows: 99th percentile at the highest load less than twice that at the lowest | section 5.2: good even at high load and at the tail |
//! | large flows at the highest load: HULL and pFabric worse than DCTCP and DropTail | section 5.2 |
//! | small flows at 10 %: the mean is about 2.5 | section 5.2. Our links are a hundred times slower, so it is expected to fail |
//! | a request of one packet takes at least twice as long after a pause | section 5.2: a ping takes 77 us every 2 ms, 14 us every 50 us |
//! | few slots are late, endpoints decide on every packet | the arbiter's own rule |
//!
//! A claim about loads or networks that were not measured is left out.

use super::Results;
use super::network::Network;
use super::run::{Completions, Run};
use crate::scenarios::isolate::bounds::Check;

/// Loads up to which figure 4 gives bounds, the load of the claim on idle hosts, and those of the highest.
const FIGURE_4: f64 = 0.6;
const LOWEST: f64 = 0.1;
const HIGHEST: f64 = 0.8;

/// Checks all claims about what was measured.
pub fn check(results: &Results) -> Vec<Check> {
    let mut checks = Vec::new();
    figure_4(results, &mut checks);
    figure_7(results, &mut checks);
    idle_hosts(results, &mut checks);
    let emulations = results.runs.iter().filter_map(|run| run.emulation.as_ref());
    let emulations = emulations.chain(results.unloaded.iter().filter_map(|it| it.emulation.as_ref()));
    let (mut invalid, mut undecided, mut count) = (0, 0, 0);
    for emulation in emulations {
        invalid += u32::from(!emulation.arbiter.valid);
        undecided += emulation.undecided_packets;
        count += 1;
    }
    if count > 0 {
        let claim = format!("runs that the arbiter calls invalid, of {count}");
        checks.push(Check::new(claim, f64::from(invalid), [0.0, 0.0], ""));
        checks.push(Check::new("packets without a decision".to_owned(), undecided as f64, [0.0, 0.0], ""));
    }
    checks
}

fn figure_4(results: &Results, checks: &mut Vec<Check>) {
    for &load in results.options.loads.iter().filter(|&&load| load <= FIGURE_4 + 1e-9) {
        let runs = results.at(Network::DropTail, load).zip(results.at(Network::Kernel, load));
        let Some((emulated, kernel)) = runs else { continue };
        let mut compare = |name: &str, of: fn(&Run) -> Completions, bounds| {
            let [emulated, kernel] = [of(emulated), of(kernel)];
            if emulated.flows.min(kernel.flows) > 0 {
                let claim = format!("load {load}, {name} flows: DropTail over kernel");
                checks.push(Check::new(claim, emulated.mean / kernel.mean, bounds, ""));
            }
        };
        compare("small", |run| run.small, [0.92, 1.08]);
        compare("large", |run| run.large, [0.86, 1.14]);
    }
}

fn figure_7(results: &Results, checks: &mut Vec<Check>) {
    let schemes = [Network::DropTail, Network::Dctcp, Network::Hull, Network::PFabric];
    let at = |load| schemes.map(|scheme| results.at(scheme, load));
    let [Some(tail), Some(dctcp), Some(hull), Some(p_fabric)] = at(HIGHEST) else { return };
    let mut add = |claim: &str, value: f64, bounds| {
        checks.push(Check::new(format!("load {HIGHEST}, {claim}"), value, bounds, ""));
    };
    let others = [dctcp, hull, p_fabric].map(|run| run.small.mean);
    let worst = others.into_iter().fold(0.0, f64::max);
    add(
        "small flows, mean: DropTail over the worst of the others",
        tail.small.mean / worst,
        [1.0, f64::INFINITY],
    );
    let others = [tail, dctcp, hull].map(|run| run.small.p99);
    let best = others.into_iter().fold(f64::INFINITY, f64::min);
    add("small flows, p99: pFabric over the best of the others", p_fabric.small.p99 / best, [0.0, 1.0]);
    if let Some(low) = results.at(Network::PFabric, LOWEST) {
        add("small flows, p99 of pFabric over that at 0.1", p_fabric.small.p99 / low.small.p99, [0.0, 2.0]);
    }
    let good = tail.large.mean.max(dctcp.large.mean);
    let has_large = [tail, dctcp, hull, p_fabric].iter().all(|run| run.large.flows > 0);
    for run in [hull, p_fabric].into_iter().filter(|_| has_large) {
        let claim = format!("large flows, mean: {} over the worse of DCTCP and DropTail", run.network.name());
        add(&claim, run.large.mean / good, [1.0, f64::INFINITY]);
    }
}

fn idle_hosts(results: &Results, checks: &mut Vec<Check>) {
    for it in &results.unloaded {
        let name = it.network.name();
        if let Some(run) = results.at(it.network, LOWEST).filter(|run| run.small.flows > 0) {
            let claim = format!("{name}, load {LOWEST}: small flows, mean");
            checks.push(Check::new(claim, run.small.mean, [2.0, 3.0], ""));
        }
        if let Some(busy) = it.unloaded.pauses.first() {
            let ratio = 1.0 + it.unloaded.idle_ns() / busy.mean_ns;
            let claim = format!("{name}: one packet after the longest pause over one without");
            checks.push(Check::new(claim, ratio, [2.0, f64::INFINITY], ""));
        }
    }
}
