//! Claims with bounds that were fixed before the first measurement, and the page of results.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::EmulationPeersOptions;
use super::measured::{self, Figures, HARD_LIMIT_MS, MAX_LATE_SHARE, MAX_RATE_ERROR, Measured};
use super::peer::Peer;
use crate::results::{Page, Table};
use crate::row;

/// The largest relative error of the rate of a run that kept up, in the claims.
const RATE_BOUND: f64 = 0.01;

/// The largest median round-trip time beyond the queue of a valid run of ours, in milliseconds.
const BEYOND_QUEUE_BOUND_MS: f64 = 1.0;

/// The goodput that HTB leaves when it counts 1,514 bytes of 1,538.
const HTB_RATIO: f64 = 1_538.0 / 1_514.0;

/// A claim.
struct Claim {
    text: &'static str,
    bounds: String,
    found: String,
    /// `None` if no run tests it.
    holds: Option<bool>,
}

/// Returns what the kernel supports of TCLink, in a sentence.
pub fn mininet_note(probed: &BTreeMap<String, String>) -> String {
    let of = |works: bool| {
        let names =
            probed.iter().filter(|(_, error)| error.is_empty() == works).map(|(name, _)| format!("`{name}`"));
        match names.collect::<Vec<_>>() {
            names if names.is_empty() => "nothing".to_owned(),
            names => names.join(", "),
        }
    };
    let errors = probed.values().find(|error| !error.is_empty());
    let error = errors.map_or_else(String::new, |error| format!(" (\"{error}\")"));
    format!(
        "Of the parameters of Mininet's TCLink, this kernel supports {}, and not {}{error}. TCLink goes on after an error. Where netem is \
         missing, the limit of the queue is a pfifo below the HTB class, set by tc.",
        of(true),
        of(false)
    )
}

/// Returns the page.
pub fn page(options: &EmulationPeersOptions, runs: &[Measured], notes: &[String]) -> Page {
    let list = |words: Vec<String>| words.join(",");
    let mut command = format!(
        "thalweg-bench emulation-peers --peers {} --rates {} --seconds {} --runs {} --hosts {}",
        list(options.peers.iter().map(|peer| peer.id().to_owned()).collect()),
        list(options.rates.iter().map(u32::to_string).collect()),
        options.seconds,
        options.runs,
        list(options.hosts.iter().map(u32::to_string).collect())
    );
    if !options.flows.is_empty() {
        let _ = write!(command, " --flows {}", list(options.flows.iter().map(u32::to_string).collect()));
    }
    let mut page = Page::new("Real-time emulation beside Mininet and ns-3", &command);
    page.paragraph(format!(
        "Several senders and a receiver at one switch, all links of the same rate, a DropTail queue of 1,024 packets at each port. TCP \
         connections to the receiver (iperf3, CUBIC) for {} s after 2 s of slow start, and a ping of one sender each 20 ms. Hosts are \
         network namespaces in all emulations, and share the processors with the emulation. A run is repeated if less than 80 % of the \
         processors are idle before or after it.",
        options.seconds
    ));
    for note in notes {
        page.paragraph(note);
    }
    page.section("Terms");
    page.table(&terms());
    page.section("Claims");
    page.paragraph("The bounds were fixed before the first measurement.");
    let mut table = Table::new(["claim", "bounds", "found", "holds"]);
    for Claim { text, bounds, found, holds } in claims(runs) {
        row!(
            table,
            text,
            bounds,
            found,
            holds.map_or("not tested", |holds| if holds { "yes" } else { "**no**" })
        );
    }
    page.table(&table);
    page.section("Highest rates");
    page.table(&highest(runs));
    for peer in Peer::ALL {
        let own: Vec<_> = runs.iter().filter(|run| run.peer == peer).collect();
        if !own.is_empty() {
            page.section(peer.name());
            page.paragraph(format!("Differs: {}.", peer.differs()));
            page.table(&measured::table(&own));
        }
    }
    page
}

fn terms() -> Table {
    let mut table = Table::new(["term", "meaning"]);
    row!(
        table,
        "of the link's",
        "goodput divided by what the link leaves for TCP payload: 1,448 of 1,538 bytes"
    );
    row!(
        table,
        "beyond the queue",
        "round-trip time without the time that the queue at the moment of the ping takes at the rate of the link, median"
    );
    row!(
        table,
        "late",
        "Thalweg: timeslots that started more than 50 us late, from start to end. ns-3: samples, each millisecond, at which the simulated \
         time was more than 50 us behind the clock, during the measurement. tc cannot know"
    );
    row!(
        table,
        "kept up",
        format!(
            "at most {:.1} % late, and an error of the rate of at most {:.0} %",
            100.0 * MAX_LATE_SHARE,
            100.0 * MAX_RATE_ERROR
        )
    );
    row!(
        table,
        "processors",
        "busy processors of the machine, iperf3 included; the process of the network (arbiter, simulator), which never sleeps while packets are on the \
         way; the endpoints. Mininet has none: the kernel emulates"
    );
    table
}

/// Returns the figures of a peer's runs, with their rates.
fn figures(runs: &[Measured], peers: &[Peer], is_wanted: impl Fn(&Measured) -> bool) -> Vec<(u32, Figures)> {
    let is_wanted = |run: &&Measured| peers.contains(&run.peer) && !run.is_disturbed && is_wanted(run);
    let wanted = runs.iter().filter(is_wanted);
    wanted.filter_map(|run| Some((run.mbps, run.outcome.clone().ok()?))).collect()
}

/// A claim about the range of a figure.
fn range_claim(
    text: &'static str,
    (low, high): (f64, f64),
    of: &[(u32, Figures)],
    figure: impl Fn(&Figures) -> f64,
) -> Claim {
    let values: Vec<f64> = of.iter().map(|(_, figures)| figure(figures)).collect();
    let (min, max) = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), &value| (min.min(value), max.max(value)));
    let (found, holds) = match values.len() {
        0 => ("no such run".to_owned(), None),
        count => (format!("{min:.3} to {max:.3} in {count} runs"), Some(min >= low && max <= high)),
    };
    Claim { text, bounds: format!("{low:.3} to {high:.3}"), found, holds }
}

const OURS: [Peer; 3] = [Peer::Thalweg, Peer::ThalwegRealTime, Peer::ThalwegBatches];
const NS3: [Peer; 2] = [Peer::Ns3Csma, Peer::Ns3PointToPoint];

fn claims(runs: &[Measured]) -> Vec<Claim> {
    let near = |ratio: f64| (ratio - RATE_BOUND, ratio + RATE_BOUND);
    let kept_up = |run: &Measured| run.kept_up() == Some(true);
    let up_to = |mbps: u32| move |run: &Measured| run.mbps <= mbps;
    let ratio = |figures: &Figures| figures.goodput_ratio;
    let valid = figures(runs, &OURS, kept_up);
    let mut claims = vec![
        range_claim("Thalweg's goodput is that of the link in valid runs", near(1.0), &valid, ratio),
        range_claim(
            "Thalweg's round trip is the queue's time and little more in valid runs, ms",
            (0.0, BEYOND_QUEUE_BOUND_MS),
            &valid,
            |figures| figures.beyond_queue_ms,
        ),
    ];
    let lowest = figures(runs, &OURS, up_to(100));
    let lates: Vec<f64> = lowest.iter().filter_map(|(_, figures)| figures.late_share).collect();
    claims.push(Claim {
        text: "Thalweg is valid at 100 Mbit/s on two processors",
        bounds: format!("late at most {:.1} %", 100.0 * MAX_LATE_SHARE),
        found: lates.iter().map(|share| format!("{:.3} %", 100.0 * share)).collect::<Vec<_>>().join(", "),
        holds: (!lates.is_empty()).then(|| lates.iter().all(|share| *share <= MAX_LATE_SHARE)),
    });
    claims.push(range_claim(
        "Mininet's HTB carries more, because it does not count all framing, up to 1 Gbit/s",
        near(HTB_RATIO),
        &figures(runs, &[Peer::Mininet], up_to(1_000)),
        ratio,
    ));
    claims.push(range_claim(
        "HTB with the framing and without offloads has the rate of the link, up to 1 Gbit/s",
        near(1.0),
        &figures(runs, &[Peer::MininetWire], up_to(1_000)),
        ratio,
    ));
    claims.push(range_claim(
        "ns-3 has the rate of the link in runs that are not late, point-to-point",
        near(1.0),
        &figures(runs, &[Peer::Ns3PointToPoint], kept_up),
        ratio,
    ));
    let best = |peers: &[Peer]| {
        let is_good = |run: &&Measured| !run.is_disturbed && kept_up(run) && run.has_rate();
        let kept = runs.iter().filter(|run| peers.contains(&run.peer)).filter(is_good);
        kept.map(|run| run.mbps).max().unwrap_or(0)
    };
    let is_tested = |peers: &[Peer]| runs.iter().any(|run| peers.contains(&run.peer));
    let (ours, theirs) = (best(&OURS), best(&NS3));
    claims.push(Claim {
        text: "Thalweg keeps up at higher rates than ns-3",
        bounds: "more than ns-3's highest rate".to_owned(),
        found: format!("{ours} and {theirs} Mbit/s"),
        holds: (is_tested(&OURS) && is_tested(&NS3)).then_some(ours > theirs),
    });
    claims
}

/// Returns the highest rate of each peer by several judgements. A rate counts if all lower ones that were measured, and all of its runs,
/// are good.
fn highest(runs: &[Measured]) -> Table {
    let mut table = Table::new([
        "emulation",
        "not late (its own sign), Mbit/s",
        "rate within 2 %, Mbit/s",
        "both, Mbit/s",
        "never 100 ms behind, Mbit/s",
        "its own sign",
    ]);
    for peer in Peer::ALL {
        let own: Vec<_> = runs.iter().filter(|run| run.peer == peer && !run.is_disturbed).collect();
        if own.is_empty() {
            continue;
        }
        let up_to = |is_good: &dyn Fn(&Measured) -> bool| {
            let bad = own.iter().filter(|run| !is_good(run)).map(|run| run.mbps).min().unwrap_or(u32::MAX);
            let good = own.iter().map(|run| run.mbps).filter(|mbps| *mbps < bad).max();
            good.map_or_else(|| "none".to_owned(), |mbps| mbps.to_string())
        };
        let has_sign = peer.own_sign() != "none";
        let with_sign = |text: String| if has_sign { text } else { "-".to_owned() };
        let on_time = |run: &Measured| run.kept_up() != Some(false);
        let below_limit = |run: &Measured| matches!(&run.outcome, Ok(figures) if figures.worst_ms.is_none_or(|worst| worst < HARD_LIMIT_MS));
        row!(
            table,
            peer.name(),
            with_sign(up_to(&on_time)),
            up_to(&Measured::has_rate),
            up_to(&|run| on_time(run) && run.has_rate()),
            with_sign(up_to(&below_limit)),
            peer.own_sign()
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::processors::ProcessorUse;
    use super::*;

    fn run(peer: Peer, mbps: u32, ratio: f64, late_share: Option<f64>) -> Measured {
        let figures = Figures {
            goodput_mbps: f64::from(mbps) * ratio,
            goodput_ratio: ratio,
            fairness: 1.0,
            retransmits: 0,
            queue: [900.0, 950.0, 1_000.0],
            samples: 10,
            round_trip_ms: [12.0, 13.0],
            beyond_queue_ms: 0.2,
            late_share,
            worst_ms: late_share.map(|_| 0.2),
            dropped: 0,
            processors: ProcessorUse::default(),
            packets: None,
        };
        Measured {
            peer,
            mbps,
            hosts: 6,
            flows: 5,
            run: 0,
            is_disturbed: false,
            repetitions: 0,
            outcome: Ok(figures),
        }
    }

    fn holds(runs: &[Measured], text: &str) -> Option<bool> {
        claims(runs).into_iter().find(|claim| claim.text.contains(text)).unwrap().holds
    }

    #[test]
    fn claims_hold_within_their_bounds_and_fail_outside() {
        let runs = [
            run(Peer::Thalweg, 100, 1.0, Some(0.0005)),
            run(Peer::Thalweg, 200, 0.5, Some(0.2)),
            run(Peer::Mininet, 100, 1.016, None),
            run(Peer::MininetWire, 1_000, 0.98, None),
        ];
        // The invalid run does not count.
        assert_eq!(holds(&runs, "Thalweg's goodput"), Some(true));
        assert_eq!(holds(&runs, "Mininet's HTB"), Some(true));
        assert_eq!(holds(&runs, "HTB with the framing"), Some(false));
        assert_eq!(holds(&runs, "ns-3 has the rate"), None);
        assert_eq!(holds(&runs, "higher rates than ns-3"), None);
        let late = [run(Peer::Thalweg, 100, 1.0, Some(0.0011)), run(Peer::Ns3Csma, 100, 1.0, Some(0.0))];
        assert_eq!(holds(&late, "valid at 100 Mbit/s"), Some(false));
        assert_eq!(holds(&late, "higher rates than ns-3"), Some(false));
    }

    #[test]
    fn a_rate_above_a_bad_one_is_not_the_highest() {
        let rates = [(100, 0.0), (200, 0.5), (300, 0.0)];
        let runs = rates.map(|(mbps, late)| run(Peer::Thalweg, mbps, 1.0, Some(late)));
        let table = highest(&runs).markdown();
        assert!(table.contains("| thalweg | 100 | 300 | 100 | 300 | late timeslots |"), "{table}");
    }

    #[test]
    fn the_note_says_what_the_kernel_lacks() {
        let probed = [("bw, HTB", ""), ("delay", "Error: unknown.")]
            .map(|(name, error)| (name.to_owned(), error.to_owned()));
        let note = mininet_note(&probed.into());
        assert!(note.contains("supports `bw, HTB`, and not `delay` (\"Error: unknown.\")"), "{note}");
    }
}
