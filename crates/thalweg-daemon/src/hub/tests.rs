use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use thalweg_wire::Timestamp;

use super::*;
use crate::event::CollectorState;
use crate::event::EventKind;

fn event(number: u64) -> Event {
    Event {
        collector: "tor0".into(),
        switch: "tor0".into(),
        time: Timestamp(number),
        emitted: Timestamp(number),
        kind: EventKind::State(CollectorState::Running),
    }
}

/// Returns all items that can be read now: `5` for event 5, `-3` for three lost events.
fn read(subscriber: &mut Subscriber, hub: &Hub) -> Vec<i64> {
    std::iter::from_fn(|| subscriber.next_delivery(hub))
        .map(|delivery| match delivery {
            Delivery::Event(published) => {
                assert_eq!(published.event.time.0, published.id, "the number of another event");
                published.id as i64
            }
            Delivery::Lost { count, .. } => -(count as i64),
        })
        .collect()
}

#[test]
fn a_subscriber_reads_later_events_in_order_and_once() {
    let hub = Hub::new(8);
    hub.publish(event(1));
    let mut subscriber = hub.subscribe(None);
    assert!(read(&mut subscriber, &hub).is_empty());
    hub.publish(event(2));
    hub.publish(event(3));
    assert_eq!(read(&mut subscriber, &hub), [2, 3]);
    assert!(read(&mut subscriber, &hub).is_empty());
}

#[test]
fn a_subscriber_resumes_after_a_number() {
    let hub = Hub::new(8);
    (1..=5).for_each(|id| assert_eq!(hub.publish(event(id)), id));
    assert_eq!(read(&mut hub.subscribe(Some(2)), &hub), [3, 4, 5]);
    assert!(read(&mut hub.subscribe(Some(5)), &hub).is_empty());
    // A number that does not exist yet counts as the last.
    let mut ahead = hub.subscribe(Some(99));
    hub.publish(event(6));
    assert_eq!(read(&mut ahead, &hub), [6]);
}

#[test]
fn a_slow_subscriber_receives_a_lost_event_and_resumes_at_the_oldest() {
    let hub = Hub::new(4);
    let (mut slow, mut quick) = (hub.subscribe(None), hub.subscribe(None));
    for id in 1..=10 {
        hub.publish(event(id));
        assert_eq!(read(&mut quick, &hub), [id as i64]);
    }
    assert_eq!(read(&mut slow, &hub), [-6, 7, 8, 9, 10]);
    assert_eq!((slow.lost(), quick.lost(), hub.lost()), (6, 0, 6));
    assert_eq!((hub.oldest_id(), hub.last_id()), (7, 10));
}

#[test]
fn idle_subscribers_do_not_retain_events() {
    let hub = Hub::new(4);
    let mut subscribers: Vec<_> = (0..1_000).map(|_| hub.subscribe(None)).collect();
    let first = {
        hub.publish(event(1));
        let Some(Delivery::Event(first)) = hub.subscribe(Some(0)).next_delivery(&hub) else { panic!() };
        Arc::downgrade(&first)
    };
    assert!(first.upgrade().is_some());
    (2..=5).for_each(|id| {
        hub.publish(event(id));
    });
    assert!(first.upgrade().is_none(), "an event outlives its place in the ring");
    assert!(subscribers.iter_mut().all(|slow| read(slow, &hub) == [-1, 2, 3, 4, 5]));
    assert_eq!(hub.lost(), 1_000);
}

#[test]
fn concurrent_publishers_number_events_without_gaps() {
    const THREADS: u64 = 4;
    const EACH: u64 = 5_000;
    let hub = Arc::new(Hub::new(64));
    let is_over = AtomicBool::new(false);
    let (seen, lost) = std::thread::scope(|scope| {
        let mut subscriber = hub.subscribe(None);
        let (hub, is_over) = (&hub, &is_over);
        let reader = scope.spawn(move || {
            let (mut seen, mut lost, mut next) = (0, 0, 1);
            loop {
                let is_last_look = is_over.load(Ordering::SeqCst);
                while let Some(delivery) = subscriber.next_delivery(hub) {
                    match delivery {
                        Delivery::Event(published) => {
                            assert_eq!(published.id, next);
                            (seen, next) = (seen + 1, next + 1);
                        }
                        Delivery::Lost { count, last } => {
                            assert_eq!(next + count - 1, last);
                            (lost, next) = (lost + count, last + 1);
                        }
                    }
                }
                if is_last_look {
                    return (seen, lost);
                }
            }
        });
        let writers: Vec<_> =
            (0..THREADS).map(|_| scope.spawn(|| (0..EACH).for_each(|_| _ = hub.publish(event(0))))).collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        reader.join().unwrap()
    });
    assert_eq!(seen + lost, THREADS * EACH);
    assert_eq!(hub.lost(), lost);
}

#[test]
fn a_delayed_publisher_does_not_overwrite_a_newer_event() {
    let hub = Hub::new(2);
    let published = |id| Arc::new(Published { id, event: event(id), text: OnceLock::new() });
    hub.last_id.store(3, Ordering::SeqCst);
    hub.store(published(3));
    hub.store(published(1));
    hub.store(published(2));
    assert_eq!(read(&mut hub.subscribe(Some(0)), &hub), [-1, 2, 3]);
}

#[test]
fn a_sleeping_receiver_is_woken_once_and_others_are_not() {
    let hub = Hub::new(4);
    let mut bell = hub.wakeup_receiver().unwrap();
    let mut rung = || bell.read(&mut [0; 8]).unwrap_or(0);
    hub.publish(event(1));
    assert_eq!(rung(), 0, "nobody sleeps");
    assert!(!hub.prepare_sleep(0), "there is an event to read");
    assert!(hub.prepare_sleep(hub.store_count()));
    hub.publish(event(2));
    hub.publish(event(3));
    assert_eq!(rung(), 1);
    assert!(matches!(hub.wakeup_receiver(), Err(WakeupError::AlreadyTaken)));
}

#[test]
fn the_text_of_an_event_is_encoded_once() {
    let hub = Hub::new(4);
    hub.publish(event(1));
    let mut texts = Vec::new();
    for reader in 0..3 {
        let Some(Delivery::Event(published)) = hub.subscribe(Some(0)).next_delivery(&hub) else { panic!() };
        texts.push(published.text(|_| Bytes::from(format!("written by {reader}"))));
    }
    assert_eq!(texts, ["written by 0"; 3]);
}
