use proptest::prelude::*;
use thalweg_wire::BitRate;

use super::*;

const GIGABIT: BitRate = BitRate(1_000_000_000);

fn port(packets: Counter, bytes: u64, discards: u32) -> PortCounters {
    let (errors, discards) = (Some(Counter::bits32(0)), Some(Counter::bits32(discards)));
    PortCounters { packets, bytes: Counter::bits64(bytes), errors, discards }
}

fn reading(seconds: u64, packets: u64, discards: u32) -> InterfaceReading {
    InterfaceReading {
        time: Timestamp(1_000_000_000_000) + Nanos::from_secs(seconds),
        agent: None,
        time_error: Nanos::ZERO,
        name: "wan0".to_owned(),
        description: None,
        is_up: true,
        index: 3,
        speed: Some(GIGABIT),
        uptime_ticks: Some((seconds * 100) as u32),
        discontinuity_ticks: Some(0),
        input: port(Counter::bits64(0), 0, 0),
        output: port(Counter::bits64(packets), packets * 1_000, discards),
        primary: None,
        scavenger: None,
        scope: Scope::OneQueue,
    }
}

fn queue(sent: u64, dropped: u32) -> Option<QueueCounters> {
    Some(QueueCounters {
        sent_packets: Counter::bits64(sent),
        sent_bytes: None,
        dropped_packets: Counter::bits32(dropped),
        age: None,
    })
}

fn loss(interval: &Interval) -> (u64, u64) {
    let loss = interval.loss.unwrap();
    (loss.packets, loss.drops)
}

#[test]
fn the_first_reading_has_no_loss_and_the_second_has() {
    let mut differences = Differences::default();
    assert_eq!(differences.next(reading(10, 1_000, 5)).loss, Err(Unusable::First));
    let interval = differences.next(reading(20, 3_000, 8));
    assert_eq!((loss(&interval), interval.loss.unwrap().seconds), ((2_000, 3), 10.0));
    assert_eq!(interval.port.unwrap().1.bytes, 2_000_000);
    assert_eq!(differences.last().unwrap().index, 3);
}

#[test]
fn a_wrap_of_the_discards_is_counted_through() {
    let interval = between(&reading(10, 0, u32::MAX - 1), &reading(20, 1_000, 3));
    assert_eq!(loss(&interval), (1_000, 5));
}

#[test]
fn a_lower_counter_that_cannot_be_a_wrap_is_unusable() {
    // From 1,000,000,000 back to 0: 3.3e9 drops in 10 s do not fit.
    let interval = between(&reading(10, 0, 1_000_000_000), &reading(20, 1_000, 0));
    assert_eq!(interval.loss, Err(Unusable::WentBack));
    // 64 bits do not wrap.
    assert_eq!(between(&reading(10, 5_000, 0), &reading(20, 4_999, 0)).loss, Err(Unusable::WentBack));
}

#[test]
fn a_restart_is_detected_even_if_all_counters_are_higher() {
    let mut later = reading(20, 2_000, 2);
    later.uptime_ticks = Some(300);
    assert_eq!(between(&reading(10, 1_000, 1), &later).loss, Err(Unusable::Restarted));
}

#[test]
fn a_wrap_of_the_uptime_is_no_restart() {
    let (mut earlier, mut later) = (reading(10, 1_000, 1), reading(20, 2_000, 2));
    (earlier.uptime_ticks, later.uptime_ticks) = (Some(u32::MAX - 499), Some(500));
    assert_eq!(loss(&between(&earlier, &later)), (1_000, 1));
}

#[test]
fn an_interface_that_was_created_again_is_detected() {
    let mut later = reading(20, 2_000, 2);
    later.index = 4;
    assert_eq!(between(&reading(10, 1_000, 1), &later).loss, Err(Unusable::Reindexed));
    let later = InterfaceReading { description: Some("wan9".to_owned()), ..reading(20, 2_000, 2) };
    assert_eq!(between(&reading(10, 1_000, 1), &later).loss, Err(Unusable::Renamed));
    let mut later = reading(20, 2_000, 2);
    later.discontinuity_ticks = Some(1_500);
    assert_eq!(between(&reading(10, 1_000, 1), &later).loss, Err(Unusable::Reset));
}

#[test]
fn a_lost_poll_makes_the_interval_longer() {
    let interval = between(&reading(10, 1_000, 1), &reading(40, 4_000, 4));
    assert_eq!((loss(&interval), interval.loss.unwrap().seconds), ((3_000, 3), 30.0));
}

#[test]
fn narrow_byte_counters_that_may_have_wrapped_twice_are_unusable() {
    let narrow = |seconds, bytes| {
        let mut reading = reading(seconds, 0, 0);
        reading.output.bytes = Counter::bits32(bytes);
        reading
    };
    // At 1 Gbit/s, 32 bits of bytes wrap every 34 s.
    let interval = between(&narrow(10, u32::MAX), &narrow(20, 999));
    assert_eq!(interval.port.unwrap().1.bytes, 1_000);
    assert_eq!(between(&narrow(10, u32::MAX), &narrow(90, 999)).loss, Err(Unusable::BadTime));
}

#[test]
fn drops_of_the_scavenger_queue_do_not_count() {
    let with = |mut reading: InterfaceReading, scope, primary, scavenger| {
        (reading.scope, reading.primary, reading.scavenger) = (scope, primary, scavenger);
        reading
    };
    let queues = |seconds, packets, drops, primary, scavenger| {
        with(reading(seconds, packets, drops), Scope::PrimaryQueue, primary, scavenger)
    };
    let interval = between(
        &queues(10, 0, 0, queue(0, 0), queue(0, 0)),
        &queues(20, 900, 105, queue(795, 5), queue(100, 100)),
    );
    assert_eq!((loss(&interval), interval.scavenger.unwrap().drops), ((800, 5), 100));
    let less = |seconds, packets, drops, scavenger| {
        with(reading(seconds, packets, drops), Scope::PortLessScavenger, None, scavenger)
    };
    let interval = between(&less(10, 0, 0, queue(0, 0)), &less(20, 1_000, 105, queue(100, 100)));
    assert_eq!(loss(&interval), (800, 5));
}

#[test]
fn a_sum_of_queues_is_no_loss_of_the_primary_queue() {
    let sum = |seconds, packets, drops| InterfaceReading {
        scope: Scope::AllQueues,
        ..reading(seconds, packets, drops)
    };
    let interval = between(&sum(10, 0, 0), &sum(20, 1_000, 100));
    assert_eq!(interval.loss, Err(Unusable::SumOfQueues));
    // The port is still known.
    assert_eq!(interval.port.unwrap().1.discards, Some(100));
}

proptest! {
    /// Whatever happens between two readings of a running agent, a usable interval has the true differences.
    #[test]
    fn usable_intervals_are_exact(
        start in any::<u32>(),
        uptime in any::<u32>(),
        polls in proptest::collection::vec((1_u64..60, 0_u64..1_000_000, 0_u64..100_000, any::<bool>()), 1..40),
    ) {
        let (mut time, mut packets, mut drops) = (0, 0, u64::from(start));
        let mut differences = Differences::default();
        let at = |time: u64, packets, drops: u64| {
            let mut reading = reading(time, packets, drops as u32);
            reading.uptime_ticks = Some(uptime.wrapping_add((time * 100) as u32));
            reading
        };
        differences.next(at(0, 0, drops));
        let (mut expected_packets, mut expected_drops, mut expected_seconds) = (0, 0, 0);
        for (seconds, more_packets, more_drops, is_answered) in polls {
            time += seconds;
            packets += more_packets + more_drops;
            drops += more_drops;
            expected_packets += more_packets + more_drops;
            expected_drops += more_drops;
            expected_seconds += seconds;
            if is_answered {
                let interval = differences.next(at(time, packets, drops));
                let loss = interval.loss.unwrap();
                prop_assert_eq!((loss.packets, loss.drops), (expected_packets, expected_drops));
                prop_assert_eq!(loss.seconds, expected_seconds as f64);
                (expected_packets, expected_drops, expected_seconds) = (0, 0, 0);
            }
        }
    }

    /// A restart is never taken for traffic.
    #[test]
    fn restarts_are_always_detected(
        uptime in 2_000_u32..u32::MAX - 100_000,
        seconds in 1_u64..300,
        since_restart in 0_u64..300,
        counters in any::<(u64, u64, u32, u32)>(),
    ) {
        let since_restart = since_restart.min(seconds);
        let mut earlier = reading(0, counters.0 / 2_000, counters.2);
        let mut later = reading(seconds, counters.1 / 2_000, counters.3);
        earlier.uptime_ticks = Some(uptime);
        later.uptime_ticks = Some((since_restart * 100) as u32);
        prop_assume!(u64::from(uptime) > since_restart * 100);
        prop_assert_eq!(between(&earlier, &later).loss, Err(Unusable::Restarted));
    }

    #[test]
    fn any_two_readings_are_compared_without_panic(
        a in any::<(u64, u64, u32, u32)>(), b in any::<(u64, u64, u32, u32)>(), times in any::<(u64, u64)>(),
    ) {
        let of = |(packets, bytes, discards, uptime): (u64, u64, u32, u32), time| {
            let mut reading = reading(0, 0, discards);
            reading.output = port(Counter::bits64(packets), bytes, discards);
            (reading.uptime_ticks, reading.time) = (Some(uptime), Timestamp(time));
            reading
        };
        let interval = between(&of(a, times.0), &of(b, times.1));
        if let Ok(loss) = interval.loss {
            prop_assert!(loss.drops <= loss.packets);
        }
    }
}

/// A reading of a primary queue whose counters are sent in 64 bits.
fn of_queue(seconds: u64, sent: u64, dropped: u64, age: Option<u64>) -> InterfaceReading {
    let primary = QueueCounters {
        sent_packets: Counter::up_to_64(sent),
        sent_bytes: None,
        dropped_packets: Counter::up_to_64(dropped),
        age: age.map(Nanos::from_secs),
    };
    InterfaceReading { primary: Some(primary), scope: Scope::PrimaryQueue, ..reading(seconds, 0, 0) }
}

#[test]
fn a_counter_of_32_bits_that_is_sent_in_64_wraps() {
    const WRAP: u64 = 1 << 32;
    let between = |from, to| between(&of_queue(10, from, 0, None), &of_queue(20, to, 0, None)).loss;
    assert_eq!(between(WRAP - 10, 90).map(|loss| loss.packets), Ok(100));
    assert_eq!(between(WRAP - 10, WRAP + 90).map(|loss| loss.packets), Ok(100), "it has 64 bits");
    assert_eq!(between(WRAP + 10, 90), Err(Unusable::WentBack), "it had more than 32 bits");
    assert_eq!(between(1_000_000, 90), Err(Unusable::WentBack), "more than the link carries");
}

#[test]
fn a_queue_that_is_younger_than_expected_was_created_again() {
    let between = |from, to| between(&of_queue(10, 5, 0, from), &of_queue(40, 9, 0, to)).loss;
    let packets = |from, to| between(from, to).map(|loss| loss.packets);
    assert_eq!(packets(Some(100), Some(130)), Ok(4));
    assert_eq!(packets(Some(100), Some(129)), Ok(4), "a switch may report whole seconds");
    assert_eq!(packets(Some(100), Some(7)), Err(Unusable::Reset));
    assert_eq!(packets(Some(1), Some(20)), Err(Unusable::Reset), "older than before, but too young");
    assert_eq!((packets(None, Some(7)), packets(Some(100), None)), (Ok(4), Ok(4)), "unknown");
}

#[test]
fn drops_that_are_not_counted_give_no_loss() {
    let uncounted = |seconds| {
        let mut it = reading(seconds, seconds * 100, 0);
        it.output.discards = None;
        it
    };
    let interval = between(&uncounted(10), &uncounted(20));
    assert_eq!(interval.loss, Err(Unusable::NotCounted));
    assert_eq!(interval.port.map(|(_, output)| (output.packets, output.discards)), Ok((1_000, None)));
    assert_eq!(between(&uncounted(10), &reading(20, 9_000, 0)).loss, Err(Unusable::ScopeChanged));
}
