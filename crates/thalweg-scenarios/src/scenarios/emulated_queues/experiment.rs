//! The emulated network of each scheme, as experiment files: for real hosts, and for emulated ones in virtual time.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use thalweg_wire::{BitRate, Nanos};

/// The hosts that send; h0 receives.
pub const SENDERS: u16 = 5;

/// The name of the port whose queue is measured.
const PORT: &str = "tor0 > h0";

/// A scheme of table 2, with the congestion control of its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// A buffer of 1,024 packets, CUBIC.
    DropTail,
    /// RED with thresholds of 150 and 300 packets, a probability of 0.1 and weight 5, CUBIC.
    Red,
    /// Marks above 65 packets, DCTCP.
    Dctcp,
}

impl Scheme {
    /// All schemes, in the order of the table.
    pub const ALL: [Scheme; 3] = [Scheme::DropTail, Scheme::Red, Scheme::Dctcp];

    /// Its name in text.
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::DropTail => "DropTail",
            Scheme::Red => "RED",
            Scheme::Dctcp => "DCTCP",
        }
    }

    /// The section of an experiment file.
    const fn section(self) -> &'static str {
        match self {
            Scheme::DropTail => "name = \"droptail\"\nbuffer = 1024\n",
            Scheme::Red => {
                "name = \"red\"\n[scheme.red]\nbuffer = 1024\nmin_threshold = 150\nmax_threshold = 300\nmax_probability = 0.1\nweight = 5\n"
            }
            Scheme::Dctcp => "name = \"dctcp\"\n[scheme.dctcp]\nbuffer = 1024\nthreshold = 65\n",
        }
    }
}

/// The network: a rack whose links have no delay, and the queue of the receiver's port every millisecond.
pub(super) fn network(scheme: Scheme, rate: BitRate, warm_up: Duration, duration: Duration) -> String {
    let [warm_up, duration] = [warm_up, warm_up + duration].map(|time| time.as_nanos());
    let (rate, endpoints, section) = (rate.0, SENDERS + 1, scheme.section());
    format!(
        "name = \"emulated-queues\"\nwarm_up = \"{warm_up}ns\"\nduration = \"{duration}ns\"\n\n\
         [topology]\nshape = \"rack\"\nendpoints = {endpoints}\nrate = \"{rate}bps\"\ndelay = \"0s\"\n\n\
         [scheme]\n{section}\n[measure]\nqueue_interval = \"1ms\"\nports = [\"{PORT}\"]\n"
    )
}

/// The same with emulated hosts, whose stacks delay each packet by `stack_delay`.
pub(super) fn with_hosts(network: &str, stack_delay: Nanos, seed: u64) -> String {
    let mut text = format!("seed = {seed}\n{network}");
    let _ = write!(
        text,
        "\n[transport]\nstack_delay = \"{}ns\"\n\n[[workload]]\npattern = \"persistent\"\nreceiver = \"h0\"\napart = \"1ms\"\n",
        stack_delay.0
    );
    text
}
