use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use thalweg_wire::{Nanos, Timestamp};

use super::*;
use crate::api::convert;
use crate::event::{CollectorState, Event as Published, EventKind};

fn event(collector: &str, kind: EventKind) -> Published {
    let time = Timestamp(1);
    crate::event::Event { collector: collector.into(), switch: "tor0".into(), time, emitted: time, kind }
}

fn link(is_up: bool) -> Published {
    event("control", EventKind::Link { name: "leaf0:p2 - spine0:p0".to_owned(), is_up })
}

fn config(webhook: &str) -> AlertConfig {
    AlertConfig {
        name: "links".to_owned(),
        types: Some(vec!["link".to_owned()]),
        link: None,
        collector: None,
        webhook: webhook.parse().unwrap(),
        token_file: None,
        min_interval: Nanos::from_millis(1),
    }
}

/// Answers requests with these statuses in turn, and returns their heads and bodies.
fn webhook(listener: &TcpListener, statuses: &[u16]) -> Vec<(String, Value)> {
    let answer = |status: &u16| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = String::new();
        let mut bytes = [0; 4_096];
        loop {
            let length = stream.read(&mut bytes).unwrap();
            text.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str(body)
            {
                let head = head.to_owned();
                write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                    .unwrap();
                return (head, body);
            }
        }
    };
    statuses.iter().map(answer).collect()
}

#[test]
fn events_are_sent_again_until_the_webhook_takes_them() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let alert = Alert::new(config(&url), Some(Secret::new("a secret")));
    let hub = Hub::new(8);
    let subscriber = hub.subscribe(Some(0));
    hub.publish(event("tor0", EventKind::State(CollectorState::Running)));
    hub.publish(link(false));
    let is_over = AtomicBool::new(false);
    let requests = std::thread::scope(|scope| {
        scope.spawn(|| {
            run_alert(&alert, &hub, subscriber, convert::event, || is_over.load(Ordering::Relaxed))
        });
        let requests = webhook(&listener, &[503, 204]);
        while alert.counts().sent == 0 {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
        requests
    });
    for (head, body) in &requests {
        assert!(head.starts_with("POST /hook ") && head.contains("authorization: Bearer a secret"), "{head}");
        assert_eq!((&body["alert"], &body["omitted_events"]), (&"links".into(), &0.into()));
        assert_eq!(body["events"].as_array().unwrap().len(), 1, "of its type: {body}");
        assert_eq!(body["events"][0]["link"], "leaf0:p2 - spine0:p0");
    }
    assert_eq!(alert.counts(), AlertCounts { sent: 1, lost: 0, failures: 1 });
}

#[test]
fn what_is_left_at_the_end_is_counted() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let alert = Alert::new(config(&format!("http://{nobody}/")), None);
    let hub = Hub::new(8);
    let subscriber = hub.subscribe(Some(0));
    for _ in 0..20 {
        hub.publish(link(true));
    }
    run_alert(&alert, &hub, subscriber, convert::event, || true);
    assert_eq!(alert.counts(), AlertCounts { sent: 0, lost: 20, failures: 1 }, "12 of them were overwritten");
}

#[test]
fn events_are_sent_at_once_then_together_and_a_webhook_that_fails_is_asked_more_seldom() {
    let at = |seconds: u64| Timestamp(seconds * 1_000_000_000);
    let hub = Hub::new(1);
    let mut subscriber = hub.subscribe(Some(0));
    hub.publish(link(true));
    let Some(Delivery::Event(published)) = subscriber.next_delivery(&hub) else { panic!("it is there") };
    let event = || convert::event(&published);
    let mut pending = Pending::new(Nanos::from_secs(60));
    assert!(!pending.is_due(at(1)));
    pending.add(event());
    assert!(pending.is_due(at(1)));
    pending.sent(at(1));
    (0..=MAX_EVENTS).for_each(|_| pending.add(event()));
    pending.add_missing(3);
    assert_eq!((pending.events().len(), pending.omitted()), (MAX_EVENTS, 4));
    assert!(!pending.is_due(at(60)) && pending.is_due(at(61)));
    let mut now = 61;
    for pause in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
        pending.failed(at(now));
        assert!(!pending.is_due(at(now + pause - 1)) && pending.is_due(at(now + pause)), "{pause}");
        now += pause;
    }
    pending.sent(at(now));
    assert!(pending.is_empty() && pending.omitted() == 0);
}

#[test]
fn events_are_selected_by_type_link_and_collector() {
    let hub = Hub::new(2);
    let mut subscriber = hub.subscribe(Some(0));
    hub.publish(link(true));
    let Some(Delivery::Event(published)) = subscriber.next_delivery(&hub) else { panic!("it is there") };
    let selects = |change: &dyn Fn(&mut AlertConfig)| {
        let mut config = config("http://localhost/");
        change(&mut config);
        super::selected(&config, &published, convert::event).is_some()
    };
    assert!(selects(&|_| ()) && selects(&|config| config.types = None));
    assert!(!selects(&|config| config.types = Some(vec!["decision".to_owned()])));
    assert!(selects(&|config| config.link = Some("leaf0:p2 - spine0:p0".to_owned())));
    assert!(!selects(&|config| config.link = Some("tor0:p3:out".to_owned())));
    assert!(!selects(&|config| config.collector = Some("tor0".to_owned())));
}
