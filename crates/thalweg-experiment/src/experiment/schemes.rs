//! The section `[scheme]` with the schemes of the emulator.

use thalweg_config::kind::{Amount, Boolean, Delay, Noted, Number, Share, Time, Whole};
use thalweg_config::{keys, section};
use thalweg_emulator::schemes::SCHEMES;
use thalweg_wire::{Bytes, Nanos};

const MAX_BUFFER: u64 = 1 << 20;
const BUFFER: Noted<Whole> = Noted(Whole(1, MAX_BUFFER), " packets");
const QUEUES: Whole = Whole(1, 64);
const PROBABILITY: Number = Number(0.0, 1.0);
const POSITIVE: Number = Number(0.0, f64::INFINITY);

keys! {
    /// Schemes with one queue per port.
    pub struct PortBuffer {
        /// Buffer of a port in packets. The default is that of Flexplane, section 5.1.
        buffer: u32 [BUFFER] default "1024",
    }
}

keys! {
    /// Schemes with several queues per port.
    pub struct QueueBuffer {
        /// Capacity of each queue of a port in packets. The default is that of Flexplane, section 5.1.
        buffer: u32 [BUFFER] default "1024",
    }
}

keys! {
    /// pFabric.
    pub struct PFabricBuffer {
        /// Buffer of a port in packets: about twice the bandwidth-delay product (pFabric, section 4.2).
        buffer: u32 [Noted(Whole(1, 4_096), " packets")] default "36",
    }
}

keys! {
    /// FQ-CoDel's buffer.
    pub struct FqCodelBuffer {
        /// Limit of a port in packets, over all its queues (RFC 8290, section 5.2.3).
        buffer: u32 [Noted(Whole(1, 32_768), " packets")] default "10240",
    }
}

keys! {
    /// Random early detection.
    pub struct Red {
        /// Average queue length in packets below which nothing is dropped (Flexplane, section 5.1).
        min_threshold: u32 [Whole(0, MAX_BUFFER)] default "150",
        /// Average queue length in packets from which everything is dropped (Flexplane, section 5.1).
        max_threshold: u32 [Whole(1, MAX_BUFFER)] default "300",
        /// Probability of a drop or mark just below the upper threshold (Flexplane, section 5.1).
        max_probability: f64 [PROBABILITY] default "0.1",
        /// Weight of the average as a negative power of two: 5 is 1/32 (Flexplane, section 5.1).
        weight: u8 [Whole(0, 16)] default "5",
        /// Whether the probability increases to 1 between the upper threshold and twice that.
        gentle: bool [Boolean] default "false",
    }
}

keys! {
    /// DCTCP.
    pub struct Dctcp {
        /// K: queue length in packets from which arrivals are marked; 65 is for 10 Gbit/s (DCTCP, section 3.4).
        threshold: u32 [Whole(0, MAX_BUFFER)] default "65",
    }
}

keys! {
    /// HULL.
    pub struct Hull {
        /// Length of a phantom queue above which packets are marked (Flexplane, section 5.2, for 10 Gbit/s; HULL has 1
        /// kB at 1 Gbit/s).
        threshold: Bytes [Amount] default "15000B",
        /// Fraction of the link's rate at which phantom queues drain (HULL, section 6).
        gamma: f64 [PROBABILITY] default "0.95",
    }
}

keys! {
    /// Strict priority.
    pub struct PriorityQueues {
        /// Queues per port; DSCP 0 is the most urgent (Flexplane, section 4).
        queues: u8 [QUEUES] default "64",
    }
}

keys! {
    /// A primary and a scavenger queue.
    pub struct ScavengerQueues {
        /// Buffer of the primary queue of a port, framing included (UVa dissertation 2018, table 4.1).
        primary_buffer: Bytes [Amount] default "5MB",
        /// Buffer of the scavenger queue of a port, for packets with DSCP 1 (RFC 8622) and for isolated flows.
        scavenger_buffer: Bytes [Amount] default "5MB",
        /// Share of the link that the scavenger queue gets while both queues are backlogged; 0 is strict priority.
        scavenger_share: f64 [Share] default "0",
    }
}

keys! {
    /// Deficit round robin.
    pub struct DrrQueues {
        /// Queues per port; flows are assigned by a hash (Flexplane, section 4).
        queues: u8 [QUEUES] default "64",
        /// Bytes per turn, framing included: at least the longest packet.
        quantum: Bytes [Amount] default "1538B",
    }
}

keys! {
    /// FQ-CoDel.
    pub struct FqCodel {
        /// Bytes per turn, framing included: a full-size packet (RFC 8290, section 5.2.4).
        quantum: Bytes [Amount] default "1538B",
        /// Flow queues per port (RFC 8290, section 5.2.5).
        flows: u32 [Whole(1, 65_536)] default "1024",
        /// Acceptable queueing delay (RFC 8290, section 5.2.2).
        target: Nanos [Time] or "5ms up to 100Mbit/s, shorter on faster endpoint links, 50us from 10Gbit/s on",
        /// Time in which at least one packet must have waited for less than the target: about the longest round trip
        /// (RFC 8290, section 5.2.1).
        interval: Nanos [Time] or "100ms up to 100Mbit/s, shorter on faster links, 1ms from 10Gbit/s on",
        /// Whether ECN-capable packets are marked instead of dropped (RFC 8290, section 5.2.6).
        ecn: bool [Boolean] default "true",
    }
}

keys! {
    /// PIE.
    pub struct Pie {
        /// Target queueing delay, QDELAY_REF (RFC 8033, section 4.2).
        target: Nanos [Time] or "15ms up to 66Mbit/s, shorter on faster endpoint links, 100us from 10Gbit/s on",
        /// Time between updates, T_UPDATE (RFC 8033, section 4.2).
        update: Nanos [Time] or "15ms up to 66Mbit/s, shorter on faster links, 100us from 10Gbit/s on",
        /// Gain on the distance from the target, per second (RFC 8033, section 4.2).
        alpha: f64 [POSITIVE] or "0.125 up to 66Mbit/s, larger on faster links, 18.75 from 10Gbit/s on",
        /// Gain on the change of the delay, per second (RFC 8033, section 4.2).
        beta: f64 [POSITIVE] or "1.25 up to 66Mbit/s, larger on faster links, 187.5 from 10Gbit/s on",
        /// Length of a burst that passes without drops, MAX_BURST (RFC 8033, section 4.4).
        max_burst: Nanos [Delay] or "150ms up to 66Mbit/s, shorter on faster links, 1ms from 10Gbit/s on",
        /// Whether ECN-capable packets are marked instead of dropped.
        ecn: bool [Boolean] default "false",
        /// Drop probability above which packets are dropped even with ECN, mark_ecnth (RFC 8033, section 5.1).
        ecn_threshold: f64 [Share] default "0.1",
    }
}

section! {
    /// Queue management of all routers. Keys for a scheme that a sweep selects go into a section of their own, as
    /// [scheme.hull].
    pub enum BuiltInScheme in BUILT_IN_SCHEME = "scheme" {
        /// The scheme of all routers.
        select name [scheme_summary] default "droptail",
        groups { PortBuffer, QueueBuffer, PFabricBuffer, FqCodelBuffer, Red, Dctcp, Hull, PriorityQueues, ScavengerQueues, DrrQueues, FqCodel, Pie }
        DropTail = "droptail" (PortBuffer),
        Red = "red" (PortBuffer, Red),
        RedEcn = "red_ecn" (PortBuffer, Red),
        Dctcp = "dctcp" (PortBuffer, Dctcp),
        Priority = "priority" (QueueBuffer, PriorityQueues),
        Scavenger = "scavenger" (ScavengerQueues),
        Drr = "drr" (QueueBuffer, DrrQueues),
        Hull = "hull" (PortBuffer, Hull),
        PFabric = "pfabric" (PFabricBuffer),
        Pie = "pie" (PortBuffer, Pie),
        FqCodel = "fq_codel" (FqCodelBuffer, FqCodel),
    }
}

pub(super) fn scheme_summary(name: &str) -> &'static str {
    SCHEMES.iter().find(|scheme| scheme.name == name).map_or("", |scheme| scheme.summary)
}
