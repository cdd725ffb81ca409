//! `[threshold]`: how the rate threshold follows the traffic.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use thalweg_config::{Document, Problem, Typed};
use thalweg_control::threshold::ThresholdOptions;
use thalweg_control::threshold::regulator::RegulatorOptions;
use thalweg_control::threshold::tag::Tolerance;
use thalweg_emulator::bottleneck::setup::SetupConfig;
use thalweg_wire::{BitRate, Bytes, Nanos};

use super::names::{FlowModelName, SimulateName};
use super::table::{Isolation, Threshold};
use super::{CollectorConfig, PollConfig};

/// Days that are kept.
const DAYS: u64 = 14;

/// Loss curves that are kept.
const CURVES: usize = 256;

/// Recordings that wait for their simulation.
const WAITING: usize = 6;

/// The lowest and the highest rate that are simulated, in percent of the link rate (dissertation, Table 4.1: 50 to 900 Mbit/s of
/// 1 Gbit/s).
const LOWEST_PERCENT: u64 = 5;
const HIGHEST_PERCENT: u64 = 90;

/// The default tolerance of mean rates, in percent of the link rate.
const TOLERANCE_PERCENT: u64 = 2;

/// The default step of R, in thousandths of the link rate.
const STEP_PERMILLE: u64 = 5;

/// Windows per period, at least: fewer give no burstiness.
const MIN_WINDOWS: u64 = 10;

/// The configuration of the adaptation.
#[derive(Clone, Debug, PartialEq)]
pub struct ThresholdConfig {
    /// The collector that is recorded.
    pub collector: String,
    /// The collectors to which R applies.
    pub applies_to: Vec<Arc<str>>,
    /// Decisions.
    pub options: ThresholdOptions,
    /// Recordings.
    pub recorder: RecorderOptions,
    /// Simulations.
    pub simulation: SimulationOptions,
    /// The poll whose losses lower R, and how, if any.
    pub regulator: Option<(String, RegulatorOptions)>,
}

/// Options of the recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Directory of the files.
    pub folder: PathBuf,
    /// T2.
    pub period: Nanos,
    /// T1.
    pub window: Nanos,
    /// Maximum size of a file.
    pub max_bytes: Bytes,
    /// Whether packets arrive in real time. Otherwise gaps between them are not steps of a clock.
    pub is_live: bool,
}

/// The flow that is replayed with the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowModel {
    /// The TCP of emulated hosts.
    Tcp,
    /// The dissertation's published program: one step per round trip.
    Rounds,
}

/// Options of simulations.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationOptions {
    /// The port, the rates and the round-trip times.
    pub setup: SetupConfig,
    /// T2.
    pub period: Nanos,
    /// The flow.
    pub flow: FlowModel,
    /// Whether a sample of the packets stands for all.
    pub is_quick: bool,
}

impl fmt::Display for SimulationOptions {
    /// What a curve depends on: the port, and the flow that decides.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SetupConfig { port_rate, buffer, round_trips, .. } = &self.setup;
        let longest = round_trips.iter().max().copied().unwrap_or_default();
        write!(formatter, "{} with {longest}, {} bit/s, {buffer} bytes", self.flow.name(), port_rate.0)
    }
}

impl FlowModel {
    /// Returns the name used in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            FlowModel::Tcp => "tcp",
            FlowModel::Rounds => "rounds",
        }
    }
}

/// Reads the section. Returns `None` if there is no adaptation, or on a problem.
pub(super) fn read(
    document: &Document,
    collectors: &[Arc<CollectorConfig>],
    polls: &[PollConfig],
    problems: &mut Vec<Problem>,
) -> Option<ThresholdConfig> {
    let entry = document.one::<Threshold>();
    let before = problems.len();
    let Some(name) = &entry.collector else {
        let keys = [Threshold::folder, Threshold::acceptable_loss, Threshold::applies_to];
        if let Some(key) = keys.into_iter().find(|key| entry.is_set(key)) {
            problems
                .push(entry.refuse(key, "requires collector: the one that receives all packets of the link"));
        }
        return None;
    };
    let link_rate = entry.link_rate.or(document.one::<Isolation>().link_rate);
    if let Some(reason) = entry.link_rate.and_then(super::wrong_rate) {
        problems.push(entry.refuse(Threshold::link_rate, reason));
    }
    let recorded = check_collectors(&entry, name, link_rate, collectors, problems);
    for (key, is_missing, what) in [
        (Threshold::folder, entry.folder.is_none(), "a directory for state and recordings"),
        (Threshold::acceptable_loss, entry.acceptable_loss.is_none(), "a share of packets, such as 1e-5"),
        (Threshold::link_rate, link_rate.is_none(), "the rate of the link, here or in [isolation]"),
    ] {
        if is_missing {
            problems.push(entry.refuse(key, format!("required: {what}")));
        }
    }
    if entry.period.0 < MIN_WINDOWS * entry.burst_window.0 {
        let reason = format!("must be at most a tenth of period, {}", entry.period);
        problems.push(entry.refuse(Threshold::burst_window, reason));
    }
    let round_trips = round_trips(&entry, problems);
    let poll = poll(&entry, polls, problems);
    let (recorded, link_rate) = (recorded?, link_rate?);
    let rates = rates(link_rate, entry.rates as u64);
    let regulator = poll.map(|poll| {
        let options = RegulatorOptions {
            acceptable_loss: entry.acceptable_loss.unwrap_or_default(),
            step: entry.step.unwrap_or(BitRate((link_rate.0 * STEP_PERMILLE / 1_000).max(1))),
            floor: rates.first().copied().unwrap_or(link_rate),
            ceiling: link_rate,
            intervals: poll.average,
            ..RegulatorOptions::default()
        };
        if let Err(error) = options.check() {
            problems.push(entry.refuse(Threshold::acceptable_loss, error.to_string()));
        }
        (poll.name.clone(), options)
    });
    let config = ThresholdConfig {
        collector: name.clone(),
        applies_to: match &entry.applies_to {
            Some(names) => names.iter().map(|name| name.as_str().into()).collect(),
            None => vec![name.as_str().into()],
        },
        options: ThresholdOptions {
            link_rate,
            acceptable_loss: entry.acceptable_loss?,
            tolerance: Tolerance {
                rate: entry.rate_tolerance.unwrap_or(BitRate(link_rate.0 * TOLERANCE_PERCENT / 100)),
                burstiness: entry.burstiness_tolerance,
            },
            fallback: recorded.threshold?.rate_threshold,
            lowest: *rates.first()?,
            alpha: entry.alpha,
            days: DAYS,
            curves: CURVES,
            waiting: WAITING,
        },
        recorder: RecorderOptions {
            folder: document.folder.join(entry.folder.as_ref()?),
            period: entry.period,
            window: entry.burst_window,
            max_bytes: entry.max_recording,
            is_live: recorded.source.is_live(),
        },
        simulation: SimulationOptions {
            setup: SetupConfig {
                port_rate: link_rate,
                buffer: entry.buffer.0,
                rates,
                round_trips,
                window: entry.burst_window,
            },
            period: entry.period,
            flow: match entry.flow {
                FlowModelName::Tcp => FlowModel::Tcp,
                FlowModelName::Rounds => FlowModel::Rounds,
            },
            is_quick: entry.simulate == SimulateName::Quick,
        },
        regulator,
    };
    (problems.len() == before).then_some(config)
}

/// Returns the collector that is recorded.
fn check_collectors<'a>(
    entry: &Typed<'_, Threshold>,
    name: &str,
    link_rate: Option<BitRate>,
    collectors: &'a [Arc<CollectorConfig>],
    problems: &mut Vec<Problem>,
) -> Option<&'a CollectorConfig> {
    let find = |name: &str| collectors.iter().find(|collector| *collector.name == *name);
    let recorded = find(name);
    match recorded {
        // With problems of its own, it is missing here.
        None if problems.is_empty() => {
            problems.push(entry.refuse(Threshold::collector, format!("unknown collector {name}")));
        }
        Some(collector)
            if collector.monitor.map(|port| port.rate)
                < link_rate.filter(|_| collector.monitor.is_some()) =>
        {
            let reason = format!(
                "the monitor port of collector {name} is slower than link_rate: the adaptation needs all packets of the link"
            );
            problems.push(entry.refuse(Threshold::collector, reason));
        }
        _ => {}
    }
    for name in entry.applies_to.iter().flatten().chain(std::iter::once(&name.to_owned())) {
        match find(name) {
            None if problems.is_empty() => {
                problems.push(entry.refuse(Threshold::applies_to, format!("unknown collector {name}")));
            }
            Some(collector) if collector.threshold.is_none() => {
                let reason = format!("collector {name} has cheetahs = false, and so no rate threshold");
                problems.push(entry.refuse(Threshold::applies_to, reason));
            }
            _ => {}
        }
    }
    recorded.map(|collector| &**collector)
}

/// Returns the poll whose losses lower R, if any.
fn poll<'a>(
    entry: &Typed<'_, Threshold>,
    polls: &'a [PollConfig],
    problems: &mut Vec<Problem>,
) -> Option<&'a PollConfig> {
    let Some(name) = &entry.poll else {
        if entry.is_set(Threshold::step) {
            problems.push(entry.refuse(Threshold::step, "requires poll"));
        }
        return None;
    };
    let poll = polls.iter().find(|poll| poll.name == *name);
    if poll.is_none() && problems.is_empty() {
        problems.push(entry.refuse(Threshold::poll, format!("unknown poll {name}")));
    }
    poll
}

fn round_trips(entry: &Typed<'_, Threshold>, problems: &mut Vec<Problem>) -> Vec<Nanos> {
    let mut times = Vec::new();
    for text in &entry.round_trips {
        match text.parse::<Nanos>() {
            Ok(time) if time > Nanos::ZERO && time <= Nanos::from_secs(10) => times.push(time),
            _ => {
                let reason =
                    format!("invalid time {text:?}: expected one above 0 and up to 10s, such as \"100ms\"");
                problems.push(entry.refuse(Threshold::round_trips, reason));
            }
        }
    }
    times.sort_unstable();
    times.dedup();
    if times.is_empty() && entry.round_trips.is_empty() {
        problems.push(entry.refuse(Threshold::round_trips, "expected one or more"));
    }
    times
}

/// Returns `count` rates, evenly spaced.
fn rates(link_rate: BitRate, count: u64) -> Vec<BitRate> {
    let (lowest, highest) = (link_rate.0 * LOWEST_PERCENT / 100, link_rate.0 * HIGHEST_PERCENT / 100);
    (0..count).map(|step| BitRate(lowest + (highest - lowest) * step / (count - 1))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn parse(lines: &str) -> Result<Option<ThresholdConfig>, String> {
        let text = format!(
            "[[collector]]\nname = \"a\"\ninterface = \"eth1\"\nrate_threshold = \"80mbps\"\n\
             [[collector]]\nname = \"b\"\ninterface = \"eth2\"\nmonitor_rate = \"900mbps\"\nmonitor_buffer = \"1MB\"\n\
             [[collector]]\nname = \"c\"\ninterface = \"eth3\"\ncheetahs = false\n[threshold]\n{lines}"
        );
        let config = Config::parse(&text, "t.toml", Path::new("/etc"));
        config.map(|config| config.threshold).map_err(|error| error.to_string())
    }

    const NEEDED: &str = "collector = \"a\"\nfolder = \"state\"\nacceptable_loss = 1e-5\n";

    #[test]
    fn a_section_is_read() {
        assert_eq!(parse("").unwrap(), None);
        let rest = "link_rate = \"1gbps\"\nsimulate = \"quick\"\napplies_to = [\"b\"]\n";
        let config = parse(&[NEEDED, rest].concat()).unwrap().unwrap();
        assert_eq!((&*config.collector, &*config.applies_to[0]), ("a", "b"));
        assert_eq!(config.options.fallback, BitRate(80_000_000));
        assert_eq!(config.options.tolerance.rate, BitRate(20_000_000));
        let rates: Vec<u64> = config.simulation.setup.rates.iter().map(|rate| rate.0 / 1_000_000).collect();
        assert_eq!(rates, (1..=18).map(|step| 50 * step).collect::<Vec<_>>());
        assert_eq!(config.simulation.setup.round_trips, [10, 100].map(Nanos::from_millis));
        assert_eq!(config.recorder.folder, Path::new("/etc/state"));
        assert!(config.simulation.is_quick && config.recorder.is_live && config.regulator.is_none());
        let poll = "poll = \"wan\"\n[[poll]]\nname = \"wan\"\nsource = \"qdisc\"\ninterface = \"eth1\"\naverage = 4\n";
        let (name, options) = parse(&[NEEDED, rest, poll].concat()).unwrap().unwrap().regulator.unwrap();
        assert_eq!((&*name, options.step, options.intervals), ("wan", BitRate(5_000_000), 4));
        assert_eq!((options.floor, options.acceptable_loss), (BitRate(50_000_000), 1e-5));
        assert_eq!(config.simulation.to_string(), "tcp with 100 ms, 1000000000 bit/s, 5000000 bytes");
    }

    #[test]
    fn problems_name_the_line_and_the_remedy() {
        let rate = "link_rate = \"1gbps\"\n";
        for (lines, expected) in [
            ("folder = \"state\"".to_owned(), "t.toml:15: folder: requires collector"),
            ([NEEDED].concat(), "link_rate: required: the rate of the link, here or in [isolation]"),
            ("collector = \"a\"".to_owned(), "folder: required"),
            (["collector = \"a\"\nfolder = \"x\"\n", rate].concat(), "acceptable_loss: required"),
            ([NEEDED, rate].concat().replace("\"a\"", "\"d\""), "collector: unknown collector d"),
            (
                [NEEDED, rate].concat().replace("\"a\"", "\"b\""),
                "the monitor port of collector b is slower than link_rate",
            ),
            ([NEEDED, rate].concat().replace("\"a\"", "\"c\""), "collector c has cheetahs = false"),
            ([NEEDED, rate, "applies_to = \"d\""].concat(), "applies_to: unknown collector d"),
            (
                [NEEDED, rate, "burst_window = \"10min\""].concat(),
                "burst_window: must be at most a tenth of period, 3600 s",
            ),
            ([NEEDED, rate, "poll = \"wan\""].concat(), "poll: unknown poll wan"),
            (
                [NEEDED, "link_rate = \"1bps\""].concat(),
                "t.toml:18: link_rate: 1 bit/s is not the rate of a link: expected 8.00 kbit/s to",
            ),
            ([NEEDED, rate, "step = \"1mbps\""].concat(), "step: requires poll"),
            ([NEEDED, rate, "round_trips = \"10\""].concat(), "round_trips: invalid time \"10\""),
        ] {
            let error = parse(&lines).unwrap_err();
            assert!(error.contains(expected), "{lines}: {error}");
        }
    }
}
