//! Builds a network for a scheme: the one place that selects the router type.

use crate::core::blueprint::{Blueprint, BlueprintError};
use crate::core::emulation::Emulation;
use crate::core::sharded::ShardedEmulation;
use crate::fabric::Network;
use crate::router::classes::{Fixed, counted};
use crate::router::{Router, RouterPorts, Routing};
use crate::schemes::dctcp::dctcp;
use crate::schemes::drop_tail::drop_tail;
use crate::schemes::drr::drr;
use crate::schemes::flow_hash::FlowHash;
use crate::schemes::fq_codel::fq_codel;
use crate::schemes::hull::hull;
use crate::schemes::list::Scheme;
use crate::schemes::own::Own;
use crate::schemes::p_fabric::p_fabric;
use crate::schemes::pie::pie;
use crate::schemes::priority::{ByDscp, priority};
use crate::schemes::red::red;
use crate::schemes::scavenger::{ByQueue, scavenger};

/// An action on routers of any scheme. It is compiled separately for each scheme.
pub trait ForScheme {
    /// The result.
    type Output;

    /// Runs the action. `make` builds a router from its routing and its ports.
    fn with<R: Router + 'static>(self, make: impl Fn(Routing, RouterPorts<'_>) -> R + Sync) -> Self::Output;
}

impl Scheme {
    /// Runs `action` with the router type of this scheme.
    ///
    /// # Errors
    /// Returns the scheme of another program, whose router type is not known here.
    pub fn apply<F: ForScheme>(&self, action: F) -> Result<F::Output, &Own> {
        Ok(match self {
            Scheme::DropTail(config) => action.with(|routing, shape| drop_tail(routing, shape, config)),
            Scheme::Red(config) => action.with(|routing, shape| red(routing, shape, config)),
            Scheme::Dctcp(config) => action.with(|routing, shape| dctcp(routing, shape, config)),
            Scheme::Priority(config) => action.with(|routing, shape| priority(routing, shape, config)),
            Scheme::Scavenger(config) => action.with(|routing, shape| scavenger(routing, shape, config)),
            Scheme::Drr(config) => action.with(|routing, shape| drr(routing, shape, config)),
            Scheme::Hull(config) => action.with(|routing, shape| hull(routing, shape, config)),
            Scheme::PFabric(config) => action.with(|routing, shape| p_fabric(routing, shape, config)),
            Scheme::Pie(config) => action.with(|routing, shape| pie(routing, shape, config)),
            Scheme::FqCodel(config) => action.with(|routing, shape| fq_codel(routing, shape, config)),
            Scheme::Own(own) => return Err(own),
        })
    }

    /// As [`apply`](Scheme::apply), with a router type that counts [by class](crate::router::classes) if the scheme has classes.
    ///
    /// # Errors
    /// As [`apply`](Scheme::apply).
    pub fn apply_counted<F: ForScheme>(&self, action: F) -> Result<F::Output, &Own> {
        Ok(match self {
            Scheme::Priority(config) => {
                let class = Fixed(ByDscp { queues: config.queues });
                action.with(|routing, shape| counted(priority(routing, shape, config), class, shape.ports()))
            }
            Scheme::Scavenger(config) => action
                .with(|routing, shape| counted(scavenger(routing, shape, config), ByQueue, shape.ports())),
            Scheme::Drr(config) => {
                let class = Fixed(FlowHash::over(u32::from(config.queues)));
                action.with(|routing, shape| counted(drr(routing, shape, config), class, shape.ports()))
            }
            Scheme::FqCodel(config) => {
                let class = Fixed(FlowHash::over(config.flows));
                action.with(|routing, shape| counted(fq_codel(routing, shape, config), class, shape.ports()))
            }
            _ => return self.apply(action),
        })
    }
}

/// Builds a network whose routers all run `scheme`, on one core.
///
/// # Errors
/// See [`BlueprintError`].
pub fn build(scheme: &Scheme, blueprint: &Blueprint<'_>) -> Result<Box<dyn Network>, BlueprintError> {
    build_on(1, scheme, blueprint)
}

/// Builds a network whose routers all run `scheme`, on up to this many cores. Several cores make
/// [`advance_open_loop`](Network::advance_open_loop) faster, and each [`advance`](crate::Fabric::advance) slower.
///
/// # Errors
/// See [`BlueprintError`].
pub fn build_on(
    cores: usize,
    scheme: &Scheme,
    blueprint: &Blueprint<'_>,
) -> Result<Box<dyn Network>, BlueprintError> {
    struct Build<'a>(&'a Blueprint<'a>, usize);

    impl ForScheme for Build<'_> {
        type Output = Result<Box<dyn Network>, BlueprintError>;

        fn with<R: Router + 'static>(
            self,
            make: impl Fn(Routing, RouterPorts<'_>) -> R + Sync,
        ) -> Self::Output {
            match self.1 {
                0 | 1 => Ok(Box::new(Emulation::new(self.0, make)?)),
                cores => Ok(Box::new(ShardedEmulation::new(self.0, cores, make)?)),
            }
        }
    }

    check_queues(scheme, blueprint)?;
    let build = Build(blueprint, cores);
    let built = if blueprint.counts_classes { scheme.apply_counted(build) } else { scheme.apply(build) };
    built.unwrap_or_else(|own| own.build(cores, blueprint))
}

/// Checks that a network with this scheme can be built, without building it.
///
/// # Errors
/// See [`BlueprintError`].
pub fn check(scheme: &Scheme, blueprint: &Blueprint<'_>) -> Result<(), BlueprintError> {
    check_queues(scheme, blueprint)?;
    blueprint.check()
}

fn check_queues(scheme: &Scheme, blueprint: &Blueprint<'_>) -> Result<(), BlueprintError> {
    let ports: usize = blueprint.topology.router_ids().map(|router| blueprint.topology.ports(router)).sum();
    let packets = scheme.room().saturating_mul(ports as u64);
    match packets > MAX_WAITING {
        true => Err(BlueprintError::Queues { ports, room: scheme.room(), packets }),
        false => Ok(()),
    }
}

/// The largest number of packets that may be queued in a network: 8 GiB of memory in the worst case.
const MAX_WAITING: u64 = 1 << 29;
