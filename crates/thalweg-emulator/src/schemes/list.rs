//! All schemes by name, with their settings.

use crate::queues::bank::MAX_QUEUES;

use super::dctcp::DctcpConfig;
use super::drop_tail::DropTailConfig;
use super::drr::DrrConfig;
use super::error::SchemeError;
use super::fq_codel::FqCodelConfig;
use super::hull::HullConfig;
use super::own::Own;
use super::p_fabric::PFabricConfig;
use super::pie::PieConfig;
use super::priority::PriorityConfig;
use super::red::RedConfig;
use super::scavenger::ScavengerConfig;

/// The name of a scheme and its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name in experiment files.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The first publication.
    pub source: &'static str,
}

const fn listed(name: &'static str, summary: &'static str, source: &'static str) -> Listed {
    Listed { name, summary, source }
}

/// All schemes.
pub const SCHEMES: [Listed; 11] = [
    listed(
        "droptail",
        "first in, first out; drops arrivals at a full queue",
        "Flexplane, NSDI 2017, section 4",
    ),
    listed("red", "drops early, as the average queue grows", "Floyd and Jacobson, ToN 1993"),
    listed("red_ecn", "as red, but marks ECN-capable packets", "Floyd and Jacobson, ToN 1993; RFC 3168"),
    listed("dctcp", "marks arrivals while the queue exceeds a threshold", "Alizadeh et al., SIGCOMM 2010"),
    listed("priority", "strict priority over 64 queues by DSCP, 0 first", "Flexplane, NSDI 2017, figure 5"),
    listed(
        "scavenger",
        "a primary queue, and one for DSCP 1 that has what is left",
        "UVa dissertation 2018, sections 3.5.1 and 4.3.1",
    ),
    listed("drr", "deficit round robin over 64 queues by flow", "Shreedhar and Varghese, SIGCOMM 1995"),
    listed("hull", "marks by phantom queues that drain slower than the link", "Alizadeh et al., NSDI 2012"),
    listed("pfabric", "small buffers; shortest remaining flow first", "Alizadeh et al., SIGCOMM 2013"),
    listed("pie", "drops or marks to keep the queueing delay near a target", "RFC 8033"),
    listed("fq_codel", "fair queueing by flow, with CoDel in each queue", "RFC 8290, RFC 8289"),
];

/// A scheme with its settings.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Scheme {
    /// See [`drop_tail`](super::drop_tail).
    DropTail(DropTailConfig),
    /// See [`red`](super::red).
    Red(RedConfig),
    /// See [`dctcp`](super::dctcp).
    Dctcp(DctcpConfig),
    /// See [`priority`](super::priority).
    Priority(PriorityConfig),
    /// See [`scavenger`](super::scavenger).
    Scavenger(ScavengerConfig),
    /// See [`drr`](super::drr).
    Drr(DrrConfig),
    /// See [`hull`](super::hull).
    Hull(HullConfig),
    /// See [`p_fabric`](super::p_fabric).
    PFabric(PFabricConfig),
    /// See [`pie`](super::pie).
    Pie(PieConfig),
    /// See [`fq_codel`](super::fq_codel).
    FqCodel(FqCodelConfig),
    /// A scheme of another program: see [`own`](super::own).
    Own(Own),
}

impl Scheme {
    /// The scheme `name` of [`SCHEMES`] with its default settings.
    pub fn default_of(name: &str) -> Option<Scheme> {
        Some(match name {
            "droptail" => Scheme::DropTail(DropTailConfig::default()),
            "red" => Scheme::Red(RedConfig::default()),
            "red_ecn" => Scheme::Red(RedConfig { ecn: true, ..RedConfig::default() }),
            "dctcp" => Scheme::Dctcp(DctcpConfig::default()),
            "priority" => Scheme::Priority(PriorityConfig::default()),
            "scavenger" => Scheme::Scavenger(ScavengerConfig::default()),
            "drr" => Scheme::Drr(DrrConfig::default()),
            "hull" => Scheme::Hull(HullConfig::default()),
            "pfabric" => Scheme::PFabric(PFabricConfig::default()),
            "pie" => Scheme::Pie(PieConfig::default()),
            "fq_codel" => Scheme::FqCodel(FqCodelConfig::default()),
            _ => return None,
        })
    }

    /// The name in [`SCHEMES`], or that of another program's scheme.
    pub fn name(&self) -> &'static str {
        match self {
            Scheme::DropTail(_) => "droptail",
            Scheme::Red(RedConfig { ecn: false, .. }) => "red",
            Scheme::Red(RedConfig { ecn: true, .. }) => "red_ecn",
            Scheme::Dctcp(_) => "dctcp",
            Scheme::Priority(_) => "priority",
            Scheme::Scavenger(_) => "scavenger",
            Scheme::Drr(_) => "drr",
            Scheme::Hull(_) => "hull",
            Scheme::PFabric(_) => "pfabric",
            Scheme::Pie(_) => "pie",
            Scheme::FqCodel(_) => "fq_codel",
            Scheme::Own(own) => own.name(),
        }
    }

    /// Whether flows can be [redirected](crate::redirection) to a scavenger queue.
    pub const fn has_scavenger_queue(&self) -> bool {
        matches!(self, Scheme::Scavenger(_))
    }

    /// Whether a port has several queues, whose [classes](crate::router::classes) can be counted.
    pub const fn has_classes(&self) -> bool {
        matches!(self, Scheme::Priority(_) | Scheme::Scavenger(_) | Scheme::Drr(_) | Scheme::FqCodel(_))
    }

    /// The largest number of packets queued at one port.
    pub fn room(&self) -> u64 {
        let (queues, buffer) = match self {
            Scheme::DropTail(config) => (1, config.buffer),
            Scheme::Red(config) => (1, config.buffer),
            Scheme::Dctcp(config) => (1, config.buffer),
            Scheme::Priority(config) => (MAX_QUEUES, config.buffer),
            Scheme::Scavenger(config) => (2, config.packets()),
            Scheme::Drr(config) => (MAX_QUEUES, config.buffer),
            Scheme::Hull(config) => (1, config.buffer),
            Scheme::PFabric(config) => (1, config.buffer),
            Scheme::Pie(config) => (1, config.buffer),
            Scheme::FqCodel(config) => (1, config.buffer),
            Scheme::Own(own) => return own.room(),
        };
        queues as u64 * buffer as u64
    }

    /// Checks all settings.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), SchemeError> {
        match self {
            Scheme::DropTail(config) => config.validate(),
            Scheme::Red(config) => config.validate(),
            Scheme::Dctcp(config) => config.validate(),
            Scheme::Priority(config) => config.validate(),
            Scheme::Scavenger(config) => config.validate(),
            Scheme::Drr(config) => config.validate(),
            Scheme::Hull(config) => config.validate(),
            Scheme::PFabric(config) => config.validate(),
            Scheme::Pie(config) => config.validate(),
            Scheme::FqCodel(config) => config.validate(),
            Scheme::Own(_) => Ok(()),
        }
    }
}
