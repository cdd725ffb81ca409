//! `udp`: a flow that nobody acknowledges stays where it was sent.
//!
//! A host asks for its neighbour's address itself when it has heard nothing from it for some seconds, and the answer has the
//! base address: without more, a UDP flow would be back on its old path after 5 s or so. So the controller tells the
//! host again, every 2 s. Here one UDP flow is sent to another address, and every packet that its switch mirrors says
//! whether it is still there.

use std::time::Duration;

use thalweg_lab::headroom::Begun;
use thalweg_lab::{Headroom, Plan};
use thalweg_network::routing::TreeOptions;
use thalweg_wire::{BitRate, Nanos};

use super::{Setting, collide};
use crate::closed_loop::ClosedLoop;
use crate::configuration::{By, Decider, Files, Steering};
use crate::error::ScenarioError;
use crate::session::{Session, Spare, trees};
use crate::traffic::{self, Load, Server, Transfer};

/// Share of the link that the flow sends at.
const SHARE: f64 = 0.5;

/// Before it is sent another way, and after the servers were started.
const BEFORE: Duration = Duration::from_millis(500);

/// What came of it.
#[derive(Clone, Debug)]
pub struct Results {
    /// Of the links.
    pub rate: BitRate,
    /// Who sent to whom.
    pub flow: String,
    /// How long it was watched after it was sent another way.
    pub watched: Duration,
    /// From the ARP request to its first packet on the new path; `None` if it never took it.
    pub effect: Option<Nanos>,
    /// Packets that were seen on the new path.
    pub on_new_path: u64,
    /// Packets that were seen on the old one again, after the first on the new one.
    pub fallen_back: u64,
    /// How often the host was told again.
    pub refreshed: u64,
    /// Datagrams that the receiver missed, as a share.
    pub lost: f64,
    /// Of the whole time.
    pub headroom: Headroom,
}

/// It is only pinned.
fn steering(seed: u64, rate: BitRate) -> Steering {
    let trees = TreeOptions { addresses: collide::ADDRESSES, seed };
    Steering { decider: Decider::Static, by: By::Arp, trees, rate }
}

/// What a user would write to steer it so.
///
/// # Errors
/// If there can be no such lab.
pub fn files(setting: &Setting<'_>) -> Result<Files, ScenarioError> {
    let plan = Plan::leaf_spine(setting.rate).map_err(thalweg_lab::LabError::from)?;
    let plan = Plan { prefix: setting.prefix.clone(), ..plan };
    let seed = collide::choose(&plan.topology)?.seed;
    Files::new(&plan, &steering(seed, setting.rate))
}

/// Runs it for `time`, whole seconds.
///
/// # Errors
/// If the lab cannot be had, or iperf3 fails.
pub fn run(time: Duration, setting: &mut Setting<'_>) -> Result<Results, ScenarioError> {
    traffic::check()?;
    let plan = Plan::leaf_spine(setting.rate).map_err(thalweg_lab::LabError::from)?;
    let plan = Plan { prefix: setting.prefix.clone(), ..plan };
    let collision = collide::choose(&plan.topology)?;
    let pair = collision.pairs[0];
    let tables = trees(&plan.topology, collide::ADDRESSES, collision.seed);
    let session = Session::up(plan, tables, setting.rate, &setting.stop)?;
    let steering = steering(collision.seed, setting.rate);
    let mut watched = ClosedLoop::start(&session.lab, &session.state, &steering)?;
    let _server = Server::start(&session.lab, pair, 0)?;
    session.wait(BEFORE)?;

    let (begun, mut spare) = (Begun::now()?, Spare::default());
    let load = Load::Udp(BitRate((SHARE * setting.rate.0 as f64) as u64), time + Duration::from_secs(1));
    let transfer = Transfer::start(&session.lab, pair, 0, load)?;
    session.wait(BEFORE)?;
    watched.take_trace();
    watched.pin(pair, 1)?;
    (setting.hear)(&format!("{} is on its new path", pair.name(session.lab.topology())));
    // What is still in queues goes the old way, and is no falling back.
    session.wait(BEFORE)?;
    let moving = watched.take_trace();
    let transferred = transfer.finish(|| session.is_stopped())?;
    let trace = watched.take_trace();
    spare.add(&begun)?;
    let told = moving.told.iter().find(|told| told.pair == pair);
    let moved = moving.moved.iter().find(|moved| moved.pair == pair && moved.address == 1);
    let flow = pair.name(session.lab.topology()).to_string();
    let sent = |address| trace.sent.get(&(pair, address)).copied().unwrap_or(0);
    Ok(Results {
        rate: setting.rate,
        flow,
        watched: time,
        effect: told.zip(moved).map(|(told, moved)| moved.time.since(told.sent)),
        on_new_path: sent(1),
        fallen_back: sent(0),
        refreshed: watched.end().refreshed,
        lost: transferred.lost,
        headroom: spare.all(),
    })
}
