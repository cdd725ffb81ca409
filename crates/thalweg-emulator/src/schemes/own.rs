//! Schemes of other programs: a router type that this crate does not know, behind one virtual call for each network.
//!
//! The network is compiled in the program that has the scheme, so there are no virtual calls for each packet. Networks whose
//! shards have endpoints of their own ([`EndpointRun`](crate::endpoints::EndpointRun)) are made for the
//! [list of schemes](super::list) only.

use std::fmt::Debug;
use std::sync::Arc;

use crate::core::blueprint::{Blueprint, BlueprintError};
use crate::core::emulation::Emulation;
use crate::core::sharded::ShardedEmulation;
use crate::fabric::Network;
use crate::router::{Router, RouterPorts, Routing};

/// A scheme with its settings.
pub trait OwnScheme: Debug + Send + Sync + 'static {
    /// The type of its routers.
    type Router: Router + 'static;

    /// The name in experiment files and results.
    fn name(&self) -> &'static str;

    /// The largest number of packets queued at one port.
    fn room(&self) -> u64;

    /// Whether it marks packets (ECN).
    fn marks(&self) -> bool {
        false
    }

    /// Creates a router.
    fn router(&self, routing: Routing, ports: RouterPorts<'_>) -> Self::Router;
}

/// The same without the type.
trait Erased: Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn room(&self) -> u64;
    fn marks(&self) -> bool;
    fn build(&self, cores: usize, blueprint: &Blueprint<'_>) -> Result<Box<dyn Network>, BlueprintError>;
}

impl<S: OwnScheme> Erased for S {
    fn name(&self) -> &'static str {
        OwnScheme::name(self)
    }

    fn room(&self) -> u64 {
        OwnScheme::room(self)
    }

    fn marks(&self) -> bool {
        OwnScheme::marks(self)
    }

    fn build(&self, cores: usize, blueprint: &Blueprint<'_>) -> Result<Box<dyn Network>, BlueprintError> {
        let make = |routing, ports: RouterPorts<'_>| self.router(routing, ports);
        match cores {
            0 | 1 => Ok(Box::new(Emulation::new(blueprint, make)?)),
            cores => Ok(Box::new(ShardedEmulation::new(blueprint, cores, make)?)),
        }
    }
}

/// A scheme of another program; equal to itself and its copies only.
#[derive(Clone, Debug)]
pub struct Own(Arc<dyn Erased>);

impl Own {
    /// Wraps a scheme.
    pub fn new(scheme: impl OwnScheme) -> Own {
        Own(Arc::new(scheme))
    }

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Returns the largest number of packets queued at one port.
    pub fn room(&self) -> u64 {
        self.0.room()
    }

    /// Whether it marks packets.
    pub fn marks(&self) -> bool {
        self.0.marks()
    }

    /// Builds a network whose routers all run it.
    pub(crate) fn build(
        &self,
        cores: usize,
        blueprint: &Blueprint<'_>,
    ) -> Result<Box<dyn Network>, BlueprintError> {
        self.0.build(cores, blueprint)
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Own) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
