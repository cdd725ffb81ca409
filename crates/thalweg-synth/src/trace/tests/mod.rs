//! Compares the trace, as readers see it, with the options and the truth.

mod observation;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::process::Command;

use proptest::prelude::*;
use thalweg_wire::capture_file::pcap::Precision;
use thalweg_wire::{BitRate, FlowKey, IpVersion, LinkType, Nanos, Packet, Protocol, TcpFlags};

use self::observation::{Row, fnv1a, observe, published_algorithm, widest_window};
use super::{MAX_GAP, PlantedKind, SynthError, SynthOptions, SynthOptionsError, generate};

/// Options for 200,000 packets with every kind of planted flow, several times.
fn small() -> SynthOptions {
    SynthOptions { packets: 200_000, cheetahs: Some(16), near_misses: Some(12), ..SynthOptions::default() }
}

/// Options that cover all variants of traces.
fn variety() -> Vec<SynthOptions> {
    let two_seconds = Some(Nanos::from_secs(2));
    vec![
        small(),
        SynthOptions { seed: 2, precision: Precision::Micros, link_type: LinkType::Ethernet, ..small() },
        SynthOptions { seed: 3, flows: Some(60_000), duration: two_seconds, ..small() },
        SynthOptions { seed: 4, ipv6_share: 1.0, udp_share: 0.5, ..small() },
        SynthOptions { seed: 5, flood_share: 0.4, ..small() },
        // The minimum of R*T: segments of 128 bytes.
        SynthOptions {
            seed: 6,
            rate_threshold: BitRate(26_214_400),
            flight_duration: Nanos::from_millis(10),
            ..small()
        },
        // So few flows that many run at the full pace of 0.8 R.
        SynthOptions { seed: 7, flows: Some(200), ..small() },
        // Sparse: the calendar wraps many times.
        SynthOptions { packets: 3_000, duration: Some(Nanos::from_secs(900)), ..SynthOptions::default() },
    ]
}

fn threshold(options: &SynthOptions) -> u64 {
    options.rate_threshold.amount_in(options.flight_duration).0
}

#[test]
fn packets_flows_and_bytes_match_options_and_summary() {
    for options in variety() {
        let observed = observe(&options);
        assert_eq!(observed.packets.len() as u64, options.packets);
        assert_eq!(observed.summary.packets, options.packets);
        assert_eq!(observed.flows().len() as u64, observed.summary.flows);
        assert!(options.flows.is_none_or(|flows| flows == observed.summary.flows));
        let bytes = observed.packets.iter().map(|packet| u64::from(packet.ip_length)).sum::<u64>();
        assert_eq!(bytes, observed.summary.bytes);
        let v6 = observed.packets.iter().filter(|packet| packet.key.version() == IpVersion::V6).count();
        assert_eq!(v6 as u64, observed.summary.ipv6_packets);
        let (first, last) = (observed.packets[0].time, observed.packets[observed.packets.len() - 1].time);
        assert_eq!(observed.summary.duration, last - first);
    }
}

#[test]
fn minimal_traces_are_exact() {
    for (packets, flows) in [(1, 1), (2, 1), (2, 2), (3, 1), (4, 1), (5, 1), (6, 1), (100, 7), (100, 100)] {
        let options = SynthOptions { packets, flows: Some(flows), ..SynthOptions::default() };
        let observed = observe(&options);
        assert_eq!((observed.packets.len() as u64, observed.flows().len() as u64), (packets, flows));
    }
}

#[test]
fn times_never_decrease_and_gaps_are_bounded() {
    for options in variety() {
        let observed = observe(&options);
        assert!(observed.packets.is_sorted_by_key(|packet| packet.time));
        assert!(observed.packets[0].time >= options.start);
        for packets in observed.flows().values() {
            assert!(packets.windows(2).all(|pair| pair[1].time - pair[0].time < MAX_GAP));
        }
    }
}

#[test]
fn a_trace_has_the_requested_duration() {
    for (options, seconds) in [(small(), 1.0), (SynthOptions::default(), 1.58), (variety()[2].clone(), 2.0)] {
        let lasted = observe(&options).summary.duration.as_secs_f64();
        assert!((lasted / seconds - 1.0).abs() < 0.06, "{lasted} s instead of {seconds} s");
    }
}

#[test]
fn the_rate_is_even_except_at_both_ends() {
    let options = SynthOptions { cheetahs: Some(0), near_misses: Some(0), ..SynthOptions::default() };
    let observed = observe(&options);
    let tenth = Nanos::from_millis(158);
    let mut counts = [0u32; 12];
    for packet in &observed.packets {
        counts[(packet.time.since(options.start).0 / tenth.0) as usize] += 1;
    }
    assert!(counts[1..9].iter().all(|count| (90_000..120_000).contains(count)), "{counts:?}");
}

#[test]
fn the_truth_matches_an_oracle() {
    for options in variety() {
        let (observed, threshold) = (observe(&options), threshold(&options));
        let mut rows: HashMap<FlowKey, Row> = observed.rows().into_iter().map(|row| (row.key, row)).collect();
        let cheetahs = rows.values().filter(|row| row.cheetah).count() as u64;
        assert_eq!(observed.summary.cheetahs, cheetahs);
        assert_eq!(observed.summary.near_misses, rows.len() as u64 - cheetahs);
        for (key, direction) in observed.directions() {
            let (most, crossed) = widest_window(&direction, options.flight_duration.0, threshold);
            let Some(row) = rows.remove(&key) else {
                assert!(most <= threshold / 2, "{key} moved {most} bytes in a window without a row");
                continue;
            };
            let (first, last) = (direction[0].0, direction[direction.len() - 1].0);
            assert_eq!((row.first, row.last, row.packets), (first, last, direction.len() as u64));
            assert_eq!(row.bytes, direction.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>());
            assert_eq!((row.max_window_bytes, row.cheetah), (most, most > threshold), "{row:?}");
            assert_eq!(row.crossed, crossed);
        }
        assert!(rows.is_empty(), "rows without packets: {rows:?}");
    }
}

#[test]
fn flows_are_numbered_by_first_packet() {
    let observed = observe(&SynthOptions { flood_share: 0.1, ..small() });
    let mut numbers = HashMap::new();
    for packet in &observed.packets {
        let next = numbers.len() as u64 + 1;
        numbers.entry(packet.key.canonical().0).or_insert(next);
    }
    for row in observed.rows() {
        assert_eq!(row.flow, numbers[&row.key.canonical().0], "{row:?}");
    }
}

#[test]
fn both_directions_of_background_stay_below_the_threshold() {
    for options in variety() {
        let (observed, threshold) = (observe(&options), threshold(&options));
        let planted: HashSet<FlowKey> = observed
            .rows()
            .into_iter()
            .filter(|row| !["background", "acknowledgements"].contains(&row.kind.as_str()))
            .map(|row| row.key.canonical().0)
            .collect();
        assert_eq!(
            planted.len() as u64,
            options.cheetahs.unwrap_or(0) + options.near_misses.unwrap_or(0),
            "one row per planted flow"
        );
        for (key, packets) in observed.flows() {
            let both = packets.iter().map(|packet| (packet.time, packet.ip_length)).collect();
            let (most, _) = widest_window(&both, options.flight_duration.0, threshold);
            assert!(planted.contains(&key) || most * 100 < threshold * 85, "{key}: {most}");
        }
    }
}

#[test]
fn every_planted_kind_has_its_ratio_to_the_threshold() {
    let mut kinds = HashSet::new();
    for options in variety() {
        let threshold = threshold(&options) as f64;
        for row in observe(&options).rows() {
            let ratio = row.max_window_bytes as f64 / threshold;
            let range = match row.kind.as_str() {
                "steady-cheetah" => 1.01..1.11,
                "fast-cheetah" => 1.98..20.1,
                "straddling-burst" => 1.08..1.61,
                "slow-start" => 1.15..3.01,
                "steady-near-miss" => 0.89..0.96,
                "line-rate-burst" => 0.89..0.91,
                "two-bursts" => 0.58..0.61,
                "background" => 0.5..0.85,
                // Acknowledgements of the fastest flows with the shortest segments.
                _ => 0.5..8.0,
            };
            assert!(range.contains(&ratio), "{} at {ratio}", row.kind);
            kinds.insert(row.kind);
        }
    }
    let names = PlantedKind::CHEETAHS.iter().chain(&PlantedKind::NEAR_MISSES).map(|kind| kind.name());
    assert!(names.chain(["background"]).all(|name| kinds.contains(name)), "{kinds:?}");
}

#[test]
fn the_published_algorithm_misses_straddling_bursts_only() {
    let options = small();
    let observed = observe(&options);
    let directions = observed.directions();
    let mut straddling = 0;
    for row in observed.rows() {
        for min_length in [0, 600, 800] {
            let (t_ns, rate) = (options.flight_duration.0, options.rate_threshold.0);
            let found = published_algorithm(&directions[&row.key], t_ns, rate, min_length);
            match row.kind.as_str() {
                "straddling-burst" => assert!(!found && row.cheetah, "L = {min_length}: {row:?}"),
                "steady-cheetah" | "fast-cheetah" => assert!(found, "L = {min_length}: {row:?}"),
                _ => assert!(!found || row.cheetah, "L = {min_length}: {row:?}"),
            }
        }
        straddling += u64::from(row.kind == "straddling-burst");
    }
    assert_eq!(straddling, 4);
}

/// Checks that each packet of a connection starts where its side's previous one ended.
fn check_sequence_numbers(packets: &[Packet]) {
    let mut next: HashMap<FlowKey, u32> = HashMap::new();
    let mut fins = 0;
    for (index, packet) in packets.iter().enumerate() {
        let flags = packet.tcp_flags;
        assert_eq!(flags.contains(TcpFlags::SYN), index == 0 || (index == 1 && packets.len() > 2));
        assert!(!flags.contains(TcpFlags::RST) || index + 1 == packets.len(), "a packet after RST");
        let expected = *next.entry(packet.key).or_insert(packet.tcp_sequence);
        assert_eq!(packet.tcp_sequence, expected, "{} packet {index}", packet.key);
        let phantom = flags.contains(TcpFlags::SYN) as u32 + flags.contains(TcpFlags::FIN) as u32;
        next.insert(packet.key, expected.wrapping_add(packet.payload_length + phantom));
        fins += flags.contains(TcpFlags::FIN) as usize;
    }
    if packets.len() >= 5 {
        let last_two = &packets[packets.len() - 2..];
        assert!(fins == 2 && last_two.iter().all(|packet| packet.tcp_flags.contains(TcpFlags::FIN)));
        assert_ne!(last_two[0].key, last_two[1].key);
    }
}

#[test]
fn sequence_numbers_advance_by_the_sent_bytes() {
    let observed = observe(&small());
    let flows = observed.flows();
    let connections = flows.values().filter(|packets| packets[0].key.protocol == Protocol::TCP);
    assert!(connections.map(|packets| check_sequence_numbers(packets)).count() > 5_000);
}

/// Returns the captured bytes of each frame of a trace.
fn frames(trace: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    let mut rest = &trace[24..];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        frames.push(&rest[16..16 + length]);
        rest = &rest[16 + length..];
    }
    frames
}

/// Returns the sum of RFC 1071, word by word.
fn ones_complement_sum(bytes: &[u8]) -> u32 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b)));
    words.fold(0, |sum, word| {
        let sum = sum + word;
        (sum & 0xFFFF) + (sum >> 16)
    })
}

#[test]
fn checksums_and_acknowledgements_of_whole_packets_are_correct() {
    let options = SynthOptions { packets: 20_000, snap_length: 2_000, ipv6_share: 0.3, ..small() };
    let options = SynthOptions { cheetahs: Some(2), near_misses: Some(2), ..options };
    let observed = observe(&options);
    let mut sent_by: HashMap<FlowKey, u32> = HashMap::new();
    for (frame, packet) in frames(&observed.trace).into_iter().zip(&observed.packets) {
        let (ip_header, addresses) =
            if frame[0] >> 4 == 4 { (20, &frame[12..20]) } else { (40, &frame[8..40]) };
        if ip_header == 20 {
            assert_eq!(ones_complement_sum(&frame[..20]), 0xFFFF);
        }
        let transport = &frame[ip_header..];
        let pseudo_header = ones_complement_sum(addresses)
            + transport.len() as u32
            + u32::from(packet.key.protocol.0)
            + ones_complement_sum(transport);
        assert_eq!((pseudo_header & 0xFFFF) + (pseudo_header >> 16), 0xFFFF, "{}", packet.key);
        if packet.key.protocol != Protocol::TCP {
            continue;
        }
        let acknowledgment = u32::from_be_bytes(transport[8..12].try_into().unwrap());
        let expected = match packet.tcp_flags.contains(TcpFlags::ACK) {
            true => sent_by[&packet.key.reversed()],
            false => 0,
        };
        assert_eq!(acknowledgment, expected, "{}", packet.key);
        let phantom = packet.tcp_flags.intersects(TcpFlags::SYN | TcpFlags::FIN);
        let end = packet.tcp_sequence.wrapping_add(packet.payload_length + u32::from(phantom));
        sent_by.insert(packet.key, end);
    }
}

#[test]
fn packet_lengths_resemble_caidas() {
    let observed = observe(&SynthOptions::default());
    let share = |range: std::ops::RangeInclusive<u32>| {
        let count = observed.packets.iter().filter(|packet| range.contains(&packet.ip_length)).count();
        count as f64 / observed.packets.len() as f64
    };
    assert!(share(0..=100) > 0.35, "{}", share(0..=100));
    assert!(share(1_400..=1_500) > 0.35, "{}", share(1_400..=1_500));
    assert!(share(101..=1_399) > 0.08, "{}", share(101..=1_399));
    assert_eq!(share(1_501..=u32::MAX), 0.0);
    // 28 GB in 38 M packets are 737 bytes each.
    let mean = observed.summary.bytes / observed.summary.packets;
    assert!((650..850).contains(&mean), "{mean}");
    let v6 = observed.summary.ipv6_packets as f64 / observed.summary.packets as f64;
    assert!((0.01..0.06).contains(&v6), "{v6}");
}

#[test]
fn a_flood_has_as_many_flows_as_packets() {
    let observed = observe(&SynthOptions { flood_share: 0.5, ..small() });
    let single = observed.flows().values().filter(|packets| packets.len() == 1).count();
    assert!(single >= 100_000, "{single}");
    assert_eq!(observed.summary.cheetahs, 16, "planted cheetahs are active in it");
    let all_flood = SynthOptions { packets: 5_000, flood_share: 1.0, ..SynthOptions::default() };
    assert_eq!(observe(&all_flood).flows().len(), 5_000);
}

#[test]
fn the_snap_length_only_truncates_frames() {
    let options = |snap_length| SynthOptions { packets: 5_000, snap_length, ..SynthOptions::default() };
    let whole = observe(&options(2_000));
    let cut = observe(&options(64));
    assert_eq!(whole.packets.len(), cut.packets.len());
    for (whole, cut) in frames(&whole.trace).into_iter().zip(frames(&cut.trace)) {
        assert_eq!(cut, &whole[..whole.len().min(64)]);
    }
}

#[test]
fn padding_of_short_ethernet_frames_is_not_counted() {
    let options = SynthOptions { packets: 5_000, snap_length: 128, ..SynthOptions::default() };
    let raw = observe(&options);
    let ethernet = observe(&SynthOptions { link_type: LinkType::Ethernet, ..options });
    let without_addresses =
        ethernet.packets.iter().map(|&packet| Packet { ethernet: Default::default(), ..packet });
    assert!(raw.packets.iter().copied().eq(without_addresses));
    assert_eq!(raw.summary, ethernet.summary);
}

/// The hashes are the same on every machine. They may only change with an intended change of the output.
#[test]
fn the_same_seed_gives_the_same_bytes() {
    let options = SynthOptions { packets: 30_000, cheetahs: Some(4), near_misses: Some(3), ..small() };
    let observed = observe(&options);
    assert_eq!(fnv1a(&observed.trace), 5_034_294_381_072_592_864, "the trace");
    assert_eq!(fnv1a(observed.truth.as_bytes()), 14_103_346_497_408_146_954, "the truth");
    let other = observe(&SynthOptions { seed: 2, ..options });
    assert_ne!(observed.trace, other.trace);
}

#[test]
fn progress_is_reported_during_and_at_the_end() {
    let mut calls = Vec::new();
    generate(&small(), &mut io::sink(), &mut io::sink(), &mut |packets| calls.push(packets)).unwrap();
    assert_eq!(calls, [65_536, 131_072, 196_608, 200_000]);
}

#[test]
fn contradictory_options_are_rejected_before_writing() {
    use SynthOptionsError as E;
    let default = SynthOptions::default;
    let rejected = |options: SynthOptions| {
        let mut trace = Vec::new();
        let result = generate(&options, &mut trace, &mut io::sink(), &mut |_| {});
        assert!(trace.is_empty());
        match result {
            Err(SynthError::Options(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    let is = |options, expected: fn(&E) -> bool| {
        let error = rejected(options);
        assert!(expected(&error), "{error}");
    };
    is(SynthOptions { packets: 0, ..default() }, |e| matches!(e, E::Packets { .. }));
    is(SynthOptions { packets: 1 << 32, ..default() }, |e| matches!(e, E::Packets { .. }));
    is(SynthOptions { snap_length: 0, ..default() }, |e| matches!(e, E::SnapLength { .. }));
    is(SynthOptions { ipv6_share: 1.1, ..default() }, |e| matches!(e, E::Share { name: "IPv6 share", .. }));
    is(SynthOptions { udp_share: f64::NAN, ..default() }, |e| matches!(e, E::Share { .. }));
    is(SynthOptions { flood_share: -0.1, ..default() }, |e| matches!(e, E::Share { .. }));
    is(SynthOptions { pareto_shape: Some(0.0), ..default() }, |e| matches!(e, E::ParetoShape { .. }));
    is(SynthOptions { flight_duration: Nanos(1), ..default() }, |e| matches!(e, E::FlightDuration { .. }));
    is(SynthOptions { rate_threshold: BitRate(1_000), ..default() }, |e| matches!(e, E::Threshold { .. }));
    let too_fast = BitRate(100_000_000_001);
    is(SynthOptions { rate_threshold: too_fast, ..default() }, |e| matches!(e, E::RateThreshold { .. }));
    is(SynthOptions { link_type: LinkType::Null, ..default() }, |e| matches!(e, E::LinkType(_)));
    let forever = Some(Nanos(u64::MAX));
    is(SynthOptions { duration: forever, ..default() }, |e| matches!(e, E::Time { .. }));
    let short = Some(Nanos::from_millis(500));
    is(SynthOptions { duration: short, ..default() }, |e| matches!(e, E::TooShort { .. }));
    is(SynthOptions { flows: Some(79), ..default() }, |e| matches!(e, E::TooFewFlows { min: 81, .. }));
    is(SynthOptions { flows: Some(1_000_001), ..default() }, |e| matches!(e, E::TooFewPackets { .. }));
    is(SynthOptions { cheetahs: Some(u64::MAX), ..default() }, |e| matches!(e, E::TooFewPackets { .. }));
    is(SynthOptions { cheetahs: Some(5_000), ..default() }, |e| matches!(e, E::TooFewPackets { .. }));
}

fn any_options() -> impl Strategy<Value = SynthOptions> {
    let counts = (1..20_000u64, prop::option::of(1..2_000u64), 0..4u64, 0..4u64);
    let rates = (32_768..1_000_000u64, 1_000_000..1_000_000_000u64, prop::option::of(1..30_000_000_000u64));
    let shares = (0.0..1.0, 0.0..1.0, prop::option::of(0.1..16.0));
    (counts, rates, shares, any::<u64>(), any::<bool>()).prop_map(
        |(counts, rates, shares, seed, is_micros)| SynthOptions {
            packets: counts.0,
            flows: counts.1,
            cheetahs: Some(counts.2),
            near_misses: Some(counts.3),
            rate_threshold: BitRate(rates.0 * 8_000_000_000 / rates.1 + 1),
            flight_duration: Nanos(rates.1),
            duration: rates.2.map(Nanos),
            flood_share: shares.0 * 0.2,
            udp_share: shares.1,
            pareto_shape: shares.2,
            seed,
            precision: if is_micros { Precision::Micros } else { Precision::Nanos },
            ..SynthOptions::default()
        },
    )
}

proptest! {
    /// The generator's own assertions hold as well: exact numbers, near-misses below R*T, cheetahs above.
    #[test]
    fn any_options_give_an_exact_trace_or_an_options_error(options in any_options()) {
        match generate(&options, &mut io::sink(), &mut io::sink(), &mut |_| {}) {
            Ok(summary) => {
                prop_assert_eq!(summary.packets, options.packets);
                prop_assert!(summary.cheetahs >= options.cheetahs.unwrap());
            }
            Err(error) => prop_assert!(matches!(error, SynthError::Options(_)), "{}", error),
        }
    }
}

#[test]
fn a_full_disk_is_an_error_naming_the_file() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let trace = generate(&small(), &mut Full, &mut io::sink(), &mut |_| {});
    assert!(matches!(trace, Err(SynthError::Trace(_))));
    let truth = generate(&small(), &mut io::sink(), &mut Full, &mut |_| {});
    assert!(matches!(truth, Err(SynthError::Truth(_))));
}

/// Skipped with a message where the program is not installed.
#[test]
fn tcpdump_and_capinfos_read_the_trace() {
    let options = SynthOptions { packets: 5_000, snap_length: 2_000, ..SynthOptions::default() };
    let file = tempfile::NamedTempFile::new().unwrap();
    generate(&options, &mut file.as_file(), &mut io::sink(), &mut |_| {}).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).arg(file.path()).output();
        match output {
            Ok(output) => Some(String::from_utf8(output.stdout).unwrap()),
            Err(_) => {
                skip(format_args!("{program} is not installed"));
                None
            }
        }
    };
    if let Some(text) = run("capinfos", &["-Mc"]) {
        assert!(text.lines().any(|line| line.starts_with("Number of packets") && line.ends_with(" 5000")));
    }
    if let Some(text) = run("tcpdump", &["-nvvr"]) {
        let correct = text.matches("(correct)").count() + text.matches("[udp sum ok]").count();
        assert!(correct >= 4_900, "{correct} right checksums");
        assert!(!text.contains("incorrect") && !text.contains("bad cksum") && !text.contains("bad udp"));
    }
}

/// Reports a skipped test on standard error directly, since the test runner hides `eprintln!`.
fn skip(reason: impl std::fmt::Display) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ =
        std::io::Write::write_all(&mut std::io::stderr(), format!("skipped: {name}: {reason}\n").as_bytes());
}
