//! Faults one by one, with the default options.

use thalweg_realtime::protocol::{Arbiter, ArbiterOptions, EndpointOptions, Submission};
use thalweg_wire::emulation_protocol::{Flow, SchemeBytes};
use thalweg_wire::{Nanos, Timestamp};

use crate::wire::Conditions;
use crate::world::{Fate, World};

fn world(lost_per_mille: u64, has_secondary: bool, seed: u64) -> World {
    let conditions = Conditions {
        lost_per_mille,
        duplicated_per_mille: 0,
        damaged_per_mille: 0,
        delay_ns: 15_000,
        jitter_ns: 5_000,
    };
    let endpoint = EndpointOptions { has_secondary, ..EndpointOptions::default() };
    World::new(seed, conditions, endpoint, ArbiterOptions::default())
}

/// Submits a packet each 100 us.
fn send(world: &mut World, packets: u32) {
    for number in 0..packets {
        let custom = SchemeBytes::new(&number.to_be_bytes()).unwrap();
        let flow = Flow { source: 0, destination: 1, number: number % 4 };
        world.submit(Submission { flow, length: 1_500, traffic_class: 0, custom });
        world.run_until(world.now + Nanos::from_micros(100));
    }
}

/// Sent or dropped by an answer, dropped at the deadline.
fn ended(world: &World) -> (u64, u64) {
    let [sent, dropped, expired] = [Fate::Sent, Fate::Dropped, Fate::Expired].map(|fate| world.count(fate));
    assert_eq!(sent + dropped + expired, world.packets.len() as u64);
    (sent + dropped, expired)
}

/// SIGSTOP for 100 ms and for 10 s, with and without a secondary.
#[test]
fn an_arbiter_that_stops_delays_packets_until_their_deadline_and_continues() {
    for (time, has_secondary, expired) in [
        (Nanos::from_millis(100), false, 0..=0),
        (Nanos::from_millis(100), true, 0..=0),
        (Nanos::from_secs(10), false, 900..=1_100),
        (Nanos::from_secs(10), true, 0..=0),
    ] {
        let mut world = world(0, has_secondary, 3);
        send(&mut world, 100);
        world.pause(Arbiter::Primary, time);
        // Of 1,000 packets in 100 ms, all wait; with a secondary, only for its silence of 50 ms.
        send(&mut world, 1_000);
        world.run_until(world.now + time + Nanos::from_secs(1));
        send(&mut world, 100);
        world.run_until(world.now + Nanos::from_millis(50));
        let (answered, late) = ended(&world);
        assert!(
            expired.contains(&late) && answered + late == 1_200,
            "{time}, {has_secondary}: {late} expired"
        );
        assert_eq!(world.switches, u32::from(has_secondary), "{time}");
        assert_eq!(world.held_packets(), 0);
    }
}

/// The share of packets that wait for a retransmission, and how long, is that of the loss.
#[test]
fn one_and_ten_percent_of_lost_datagrams_delay_packets_and_lose_none() {
    for (lost_per_mille, slow) in [(0, 0..=0), (10, 30..=200), (100, 300..=1_000)] {
        let mut world = world(lost_per_mille, false, 5);
        world.emulation_ns = Some((20_000, 0));
        send(&mut world, 4_000);
        world.run_until(world.now + Nanos::from_secs(1));
        assert_eq!(ended(&world), (4_000, 0), "{lost_per_mille} of 1,000 lost");
        let late =
            |&&(id, released): &&(usize, Timestamp)| released - world.submitted[id] > Nanos::from_micros(200);
        let late = world.released.iter().filter(late).count();
        assert!(
            slow.contains(&late),
            "{lost_per_mille} of 1,000 lost: {late} of {} late",
            world.released.len()
        );
    }
}
