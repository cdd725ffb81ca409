//! Interface counters.

use thalweg_api::{
    AverageLoss, CounterScope, InterfaceCounters, InterfaceCounts, InterfaceInterval, PolledInterface,
    PolledQueue, PortTraffic,
};
use thalweg_poll::{InterfaceReading, Interval, PortCounters, QueueCounters, Scope};

use crate::polls::Poll;

/// Converts a poll.
pub fn polled_interface(poll: &Poll) -> PolledInterface {
    let report = poll.latest();
    PolledInterface {
        name: poll.name().to_owned(),
        source: poll.description().to_owned(),
        interface: poll.interface().to_owned(),
        polled: report.time.map(Into::into),
        error: report.error,
        counters: report.reading.as_ref().map(counters),
        interval: report.interval.as_ref().map(interval),
        average: report.average.map(|sum| AverageLoss {
            intervals: report.averaged,
            seconds: sum.seconds,
            packets: sum.packets,
            drops: sum.drops,
            loss: sum.rate(),
        }),
        counts: InterfaceCounts {
            succeeded: report.counts.succeeded,
            failed: report.counts.failed.values().sum(),
            unusable: report.counts.unusable.values().sum(),
            rows_lost: report.counts.rows_lost,
        },
    }
}

fn counters(reading: &InterfaceReading) -> InterfaceCounters {
    InterfaceCounters {
        index: reading.index,
        up: reading.is_up,
        speed_bps: reading.speed.map(|speed| speed.0),
        packet_bits: reading.output.packets.width.bits(),
        scope: scope(reading.scope),
        input: port(&reading.input),
        output: port(&reading.output),
        primary: reading.primary.as_ref().map(queue),
        scavenger: reading.scavenger.as_ref().map(queue),
    }
}

fn scope(scope: Scope) -> CounterScope {
    match scope {
        Scope::PrimaryQueue => CounterScope::PrimaryQueue,
        Scope::PortLessScavenger => CounterScope::PortLessScavenger,
        Scope::OneQueue => CounterScope::OneQueue,
        Scope::AllQueues => CounterScope::AllQueues,
    }
}

fn port(counters: &PortCounters) -> PortTraffic {
    PortTraffic {
        packets: counters.packets.value,
        bytes: counters.bytes.value,
        errors: counters.errors.map(|errors| errors.value),
        discards: counters.discards.map(|discards| discards.value),
    }
}

fn queue(counters: &QueueCounters) -> PolledQueue {
    PolledQueue { sent_packets: counters.sent_packets.value, dropped_packets: counters.dropped_packets.value }
}

fn interval(interval: &Interval) -> InterfaceInterval {
    let seconds = interval.end.since(interval.start).as_secs_f64();
    let port = interval.port.ok();
    let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
    InterfaceInterval {
        seconds,
        unusable: interval.loss.err().map(|reason| reason.name().to_owned()),
        packets: interval.loss.ok().map(|loss| loss.packets),
        drops: interval.loss.ok().map(|loss| loss.drops),
        input_bps: port.map(|(input, _)| rate(input.bytes)),
        output_bps: port.map(|(_, output)| rate(output.bytes)),
        port_drops: port.and_then(|(_, output)| output.discards),
        scavenger_drops: interval.scavenger.map(|loss| loss.drops),
    }
}
