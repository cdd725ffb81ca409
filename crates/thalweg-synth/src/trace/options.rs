//! Options of a trace, validated before the first packet.

use thalweg_wire::capture_file::pcap::Precision;
use thalweg_wire::{BitRate, LinkType, Nanos, Timestamp};
use thiserror::Error;

use super::planted::Planting;

/// Packets per second and per flow of the CAIDA trace in section 3.4 of the dissertation: 38 M packets and 1.5 M flows
/// in a minute.
const CAIDA_PACKETS: u64 = 38_000_000;
const CAIDA_FLOWS: u64 = 1_500_000;
/// Packets per planted cheetah, and per near-miss: about 1,500 of each in 38 M, where the dissertation's monitor
/// reported 2,354 (Figure 3.6a). They make up about a sixth of the packets.
const PACKETS_PER_PLANTED: u64 = 25_000;
/// Maximum number of packets, so that a flow's number fits in 32 bits.
const MAX_PACKETS: u64 = u32::MAX as u64;
/// Maximum snap length: libpcap's own limit.
pub(super) const MAX_SNAP_LENGTH: u32 = 262_144;
/// Minimum R*T in bytes. Below it, a single full-sized packet exceeds a twentieth of the threshold, and background flows
/// cannot be kept below 0.85 R*T.
pub(super) const MIN_THRESHOLD: u64 = 32_768;
/// Maximum R: above it, planted segments would be less than a few nanoseconds apart.
const MAX_RATE: BitRate = BitRate(100_000_000_000);
/// Minimum duration of a trace with planted flows, in windows.
const MIN_PLANTED_DURATION: u64 = 10;
/// Maximum window length, so that the gaps of planted flows stay below [`MAX_GAP`].
const MAX_FLIGHT_DURATION: Nanos = Nanos::from_secs(3);
const MIN_FLIGHT_DURATION: Nanos = Nanos::from_millis(1);
/// pcap counts seconds in 32 bits.
const MAX_SECONDS: u64 = u32::MAX as u64;

/// Maximum time between two packets of a flow.
pub const MAX_GAP: Nanos = Nanos::from_secs(5);

/// Describes the trace of [`super::generate`].
#[derive(Clone, Debug, PartialEq)]
pub struct SynthOptions {
    /// Number of packets, 1 to 2^32 - 1. Default 1,000,000: 1.6 s of a busy 10 Gbit/s link, a file of 73 MB.
    pub packets: u64,
    /// Number of flows (both directions of a 5-tuple are one flow), including planted and flood flows, at most `packets`.
    /// Default: 1.5 M per 38 M packets as in the CAIDA trace (25.3 packets per flow), plus the flood.
    pub flows: Option<u64>,
    /// Time from the first packet to the last, exact to a few percent. It grows if the flows are too few to carry the
    /// packets below 0.8 R. Default: `packets` at 633,333 packets/s, the rate of the CAIDA trace, but at least 10 T so that
    /// planted flows fit.
    pub duration: Option<Nanos>,
    /// Random seed. The same options give the same bytes on every machine. Default 1.
    pub seed: u64,
    /// Maximum captured bytes per frame, 1 to 262,144. Default 64, as in CAIDA's traces: usual for headers, but truncates
    /// the TCP options of IPv6 packets.
    pub snap_length: u32,
    /// Share of flows over IPv6, 0 to 1. Default 0.03, typical of backbones of that time.
    pub ipv6_share: f64,
    /// Share of background flows over UDP, 0 to 1; the rest are TCP. Default 0.15.
    pub udp_share: f64,
    /// Shape of the Pareto distribution of packets per background flow, above 0 and at most 16; Zipf's exponent is its
    /// reciprocal. Default: fitted to the mean, about 0.9 for a minute.
    pub pareto_shape: Option<f64>,
    /// R, the rate above which a flow is a cheetah, at most 100 Gbit/s. Default 50 Mbit/s, the dissertation's choice for
    /// 10 Gbit/s links (section 3.3.2).
    pub rate_threshold: BitRate,
    /// T, the length of a window, 1 ms to 3 s; R*T is at least 32 KiB. Default 100 ms, as in section 3.4.
    pub flight_duration: Nanos,
    /// Planted cheetahs, of the four kinds of [`super::PlantedKind`] in turn. Default: one per 25,000 packets (without the
    /// flood), about as many as the dissertation found.
    pub cheetahs: Option<u64>,
    /// Planted near-misses, of three kinds in turn. Default: as `cheetahs`.
    pub near_misses: Option<u64>,
    /// Share of flood packets, 0 to 1: each is the only packet of a random 5-tuple. Default 0.
    pub flood_share: f64,
    /// Raw IP or Ethernet. Default raw IP, as in CAIDA's traces.
    pub link_type: LinkType,
    /// Timestamp of the start. Default 2014-06-19T13:00:00Z, the hour of a trace in the dissertation's section 3.3; the
    /// clock is never read.
    pub start: Timestamp,
    /// Precision of timestamps; the truth uses the times in the file. Default nanoseconds.
    pub precision: Precision,
}

impl Default for SynthOptions {
    fn default() -> Self {
        SynthOptions {
            packets: 1_000_000,
            flows: None,
            duration: None,
            seed: 1,
            snap_length: 64,
            ipv6_share: 0.03,
            udp_share: 0.15,
            pareto_shape: None,
            rate_threshold: BitRate(50_000_000),
            flight_duration: Nanos::from_millis(100),
            cheetahs: None,
            near_misses: None,
            flood_share: 0.0,
            link_type: LinkType::RawIp,
            start: Timestamp::new(1_403_182_800, 0),
            precision: Precision::Nanos,
        }
    }
}

/// Invalid options.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SynthOptionsError {
    /// The number of packets is out of range.
    #[error("invalid number of packets {packets}: expected 1 to {MAX_PACKETS}")]
    Packets {
        /// The requested number.
        packets: u64,
    },
    /// The snap length is out of range.
    #[error("invalid snap length {snap_length}: expected 1 to {MAX_SNAP_LENGTH} bytes")]
    SnapLength {
        /// The requested length.
        snap_length: u32,
    },
    /// A share is not between 0 and 1.
    #[error("invalid {name} {share}: expected 0 to 1")]
    Share {
        /// Name of the share.
        name: &'static str,
        /// Its value.
        share: f64,
    },
    /// The Pareto shape is out of range.
    #[error("invalid Pareto shape {shape}: expected above 0 and at most 16")]
    ParetoShape {
        /// The requested shape.
        shape: f64,
    },
    /// T is out of range.
    #[error(
        "invalid flight duration {flight_duration}: expected {MIN_FLIGHT_DURATION} to {MAX_FLIGHT_DURATION}"
    )]
    FlightDuration {
        /// The requested duration.
        flight_duration: Nanos,
    },
    /// R is too high.
    #[error("invalid rate threshold {rate_threshold}: expected at most {MAX_RATE}")]
    RateThreshold {
        /// The requested rate.
        rate_threshold: BitRate,
    },
    /// R*T is too low to ignore single packets.
    #[error(
        "{rate_threshold} for {flight_duration} is less than {MIN_THRESHOLD} bytes: raise the rate threshold or the flight duration"
    )]
    Threshold {
        /// R.
        rate_threshold: BitRate,
        /// T.
        flight_duration: Nanos,
    },
    /// The link type is not supported.
    #[error("unsupported link type {0}: expected raw IP or Ethernet")]
    LinkType(LinkType),
    /// The trace has no duration, or ends after the last second of a pcap file.
    #[error("invalid duration {duration} from {start}: expected more than zero and an end before 2106")]
    Time {
        /// Start.
        start: Timestamp,
        /// Duration.
        duration: Nanos,
    },
    /// The trace is too short for planted flows.
    #[error(
        "a duration of {duration} is too short for planted flows: expected at least {min}, or --cheetahs 0 --near-misses 0"
    )]
    TooShort {
        /// Duration.
        duration: Nanos,
        /// Minimum duration of planted flows.
        min: Nanos,
    },
    /// Too few flows for the planted and flood flows, or none left for the remaining packets.
    #[error(
        "{flows} flows are too few for {planted} planted flows, {flood_packets} flood packets and the background: \
         expected at least {min}. Raise --flows, or lower --cheetahs, --near-misses or --flood-share"
    )]
    TooFewFlows {
        /// The requested number.
        flows: u64,
        /// The number of planted flows.
        planted: u64,
        /// The number of flood packets, each of which is a flow.
        flood_packets: u64,
        /// The minimum.
        min: u64,
    },
    /// Too few packets for the flows and the planted flows.
    #[error(
        "{packets} packets are too few for {flows} flows, {planted} of them planted: expected at least {min}. \
         Raise --packets, or lower --flows, --cheetahs or --near-misses"
    )]
    TooFewPackets {
        /// The requested number.
        packets: u64,
        /// The number of flows.
        flows: u64,
        /// The number of planted flows.
        planted: u64,
        /// The minimum.
        min: u64,
    },
}

/// Options with all defaults applied: the numbers of packets and flows of each type.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) duration_ns: u64,
    pub(super) window_ns: u64,
    /// R*T in bytes.
    pub(super) threshold: u64,
    /// R in bit/s.
    pub(super) rate: u64,
    pub(super) flows: u64,
    /// Packets of the flood, each of which is a flow.
    pub(super) flood_packets: u64,
    pub(super) planting: Planting,
    /// Duration of the longest planted flow, at most [`super::planted::MAX_PLANTED_WINDOWS`].
    pub(super) longest_planted_ns: u64,
    pub(super) background_flows: u64,
    pub(super) background_packets: u64,
}

impl SynthOptions {
    /// Checks all options.
    ///
    /// # Errors
    /// Names the first option that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), SynthOptionsError> {
        self.plan().map(drop)
    }

    /// Validates the options and computes their defaults.
    pub(super) fn plan(&self) -> Result<Plan, SynthOptionsError> {
        self.check_ranges()?;
        let packets = self.packets;
        let threshold = self.rate_threshold.amount_in(self.flight_duration).0;
        let flood_packets = (packets as f64 * self.flood_share) as u64;
        let calm_packets = packets - flood_packets;
        let planted = calm_packets / PACKETS_PER_PLANTED;
        let planting = Planting {
            seed: self.seed,
            cheetahs: self.cheetahs.unwrap_or(planted),
            near_misses: self.near_misses.unwrap_or(planted),
            window_ns: self.flight_duration.0,
            threshold,
        };
        let duration = self.duration(&planting)?;
        let flows = self.flows.unwrap_or_else(|| {
            (flood_packets + scale(calm_packets, CAIDA_FLOWS, CAIDA_PACKETS).max(1)).min(packets)
        });
        // Check bounds first: each planted flow has packets, and drawing all of them takes time.
        let planted_flows = planting.cheetahs.saturating_add(planting.near_misses);
        let too_few_packets = |min| SynthOptionsError::TooFewPackets {
            packets,
            flows: flows.max(planted_flows),
            planted: planted_flows,
            min,
        };
        let min = flood_packets.saturating_add(planted_flows);
        if min > packets {
            return Err(too_few_packets(min));
        }
        let (planted_packets, longest_planted_ns) = planting.totals();
        let other_packets = flood_packets.saturating_add(planted_packets);
        if other_packets > packets {
            return Err(too_few_packets(other_packets));
        }
        let background_packets = packets - other_packets;
        let min = flood_packets + planted_flows + u64::from(background_packets > 0);
        if flows < min {
            let planted = planted_flows;
            return Err(SynthOptionsError::TooFewFlows { flows, planted, flood_packets, min });
        }
        let background_flows = flows - flood_packets - planted_flows;
        if background_flows > background_packets {
            return Err(too_few_packets(other_packets.saturating_add(background_flows)));
        }
        Ok(Plan {
            duration_ns: duration.0,
            window_ns: self.flight_duration.0,
            threshold,
            rate: self.rate_threshold.0,
            flows,
            flood_packets,
            planting,
            longest_planted_ns,
            background_flows,
            background_packets,
        })
    }

    fn check_ranges(&self) -> Result<(), SynthOptionsError> {
        if !(1..=MAX_PACKETS).contains(&self.packets) {
            return Err(SynthOptionsError::Packets { packets: self.packets });
        }
        if !(1..=MAX_SNAP_LENGTH).contains(&self.snap_length) {
            return Err(SynthOptionsError::SnapLength { snap_length: self.snap_length });
        }
        let shares = [
            ("IPv6 share", self.ipv6_share),
            ("UDP share", self.udp_share),
            ("flood share", self.flood_share),
        ];
        if let Some(&(name, share)) = shares.iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            return Err(SynthOptionsError::Share { name, share });
        }
        if let Some(shape) = self.pareto_shape
            && !(shape > 0.0 && shape <= 16.0)
        {
            return Err(SynthOptionsError::ParetoShape { shape });
        }
        let flight_duration = self.flight_duration;
        if !(MIN_FLIGHT_DURATION..=MAX_FLIGHT_DURATION).contains(&flight_duration) {
            return Err(SynthOptionsError::FlightDuration { flight_duration });
        }
        let rate_threshold = self.rate_threshold;
        if rate_threshold > MAX_RATE {
            return Err(SynthOptionsError::RateThreshold { rate_threshold });
        }
        if rate_threshold.amount_in(flight_duration).0 < MIN_THRESHOLD {
            return Err(SynthOptionsError::Threshold { rate_threshold, flight_duration });
        }
        match self.link_type {
            LinkType::RawIp | LinkType::Ethernet => Ok(()),
            other => Err(SynthOptionsError::LinkType(other)),
        }
    }

    fn duration(&self, planting: &Planting) -> Result<Nanos, SynthOptionsError> {
        let min = Nanos(MIN_PLANTED_DURATION * self.flight_duration.0);
        let at_caida_rate = Nanos(scale(self.packets, Nanos::from_secs(60).0, CAIDA_PACKETS));
        let duration = self.duration.unwrap_or(at_caida_rate.max(min));
        if planting.cheetahs.max(planting.near_misses) > 0 && duration < min {
            return Err(SynthOptionsError::TooShort { duration, min });
        }
        let end = self.start + duration;
        if duration == Nanos::ZERO || end.seconds() >= MAX_SECONDS {
            return Err(SynthOptionsError::Time { start: self.start, duration });
        }
        Ok(duration)
    }
}

/// Returns `amount * numerator / denominator`, rounded down.
fn scale(amount: u64, numerator: u64, denominator: u64) -> u64 {
    (u128::from(amount) * u128::from(numerator) / u128::from(denominator)) as u64
}
