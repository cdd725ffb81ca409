//! Short runs of the ns-3 programs. No test checks a time.

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use thalweg_bench::emulator::ns3::{Crosscheck, Mode, Programs, Scenario, Span};

/// Returns the programs, built once for all tests, or prints past the test runner's capture why `test` is skipped.
fn programs(test: &str) -> Option<&'static Programs> {
    static PROGRAMS: OnceLock<Option<Programs>> = OnceLock::new();
    let programs = PROGRAMS.get_or_init(|| {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/ns3");
        // Kept for the next run of the tests.
        let build = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ns3");
        match Programs::build(&sources, &build) {
            Ok(programs) => Some(programs),
            Err(error) if error.to_string().starts_with("not installed") => None,
            Err(error) => panic!("{error:#}"),
        }
    });
    if programs.is_none() {
        let line = format!("skipped: {test}: no ns-3 (Debian package libns3-dev)\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    programs.as_ref()
}

#[test]
fn ns3_delivers_the_offered_load() {
    let Some(programs) = programs("ns3_delivers_the_offered_load") else { return };
    for mode in Mode::ALL {
        let star = programs.star(mode, 8, 0.8, 0.005, 1).unwrap();
        // 1538 bytes at 10 Gbit/s; 26,000 arrivals vary by 0.6 %, so that 4 % is more than six deviations.
        let offered = 8.0 * 0.8 * 0.005 / 1_230.4e-9;
        assert!((star.sent as f64 / offered - 1.0).abs() < 0.04, "{offered}: {star:?}");
        let in_flight = star.sent - star.delivered - star.dropped;
        assert!(star.dropped == 0 && in_flight < 200, "{star:?}");
    }
}

#[test]
fn ns3_keeps_dctcp_at_its_threshold_reproducibly() {
    let Some(programs) = programs("ns3_keeps_dctcp_at_its_threshold_reproducibly") else {
        return;
    };
    let run = || programs.crosscheck(Scenario::Dctcp, Span { seconds: 0.03, warm_up: 0.015 }, 1).unwrap();
    let (first, again) = (run(), run());
    // A full link: 1448 bytes of payload in 1538.
    assert!((first.total_goodput_bps() / (10e9 * 1448.0 / 1538.0) - 1.0).abs() < 0.01, "{first:?}");
    assert!((40..=80).contains(&first.queue.median) && first.marks > 0 && first.drops == 0, "{first:?}");
    assert_eq!(Crosscheck { wall_s: first.wall_s, cpu_s: first.cpu_s, ..again }, first);
}
