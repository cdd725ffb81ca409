//! Other daemons, whose collectors tell over their HTTP API: what they tell becomes notices as if it were told here.
//!
//! A thread a daemon listens to its events, and goes on after the last one when the connection was lost. What it missed and
//! what it did not understand is counted as lost. New routes are pushed to all of them (`PUT /v1/topology`) when the collectors here
//! are told; which takes a token with the scope `write`.

use std::sync::Arc;

use thalweg_api::client::{Client, ClientError, ClientOptions, Heard, Loss};
use thalweg_api::{self as json, BoundKind, Event, EventBody, LinkName};
use thalweg_measure::collector::{AddressChange, FlowRate, LinkEvent, LinkReport};
use thalweg_network::NetworkState;
use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::{BitRate, EthernetAddresses, FlowKey, MacAddress, Timestamp};

use crate::collectors::notices::{Notice, NoticeSender};
use crate::from_json;
use crate::lifecycle::Lifecycle;

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Remotes {
    clients: Vec<Client>,
}

impl Remotes {
    /// Reads tokens and certificates; nobody is asked yet.
    pub(super) fn new(options: &[ClientOptions]) -> Result<Remotes, ClientError> {
        Ok(Remotes { clients: options.iter().map(Client::new).collect::<Result<_, _>>()? })
    }

    /// Whether there are any.
    pub(super) fn are_there(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Begins to listen. The threads end with the first word after the daemon stops; they hold nothing that needs to be put in
    /// order.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub(super) fn listen(&self, lifecycle: &Lifecycle, notice_sender: &NoticeSender) -> std::io::Result<()> {
        for client in &self.clients {
            let (client, lifecycle, notice_sender) =
                (client.clone(), lifecycle.clone(), notice_sender.clone());
            let mut clock = RemoteClock::default();
            let listen = move || {
                client.listen(|heard| {
                    hear(&client, heard, &notice_sender, &mut clock);
                    !lifecycle.is_stopping()
                });
            };
            std::thread::Builder::new().name("remote".to_owned()).spawn(listen)?;
        }
        Ok(())
    }

    /// Tells all of a network; nobody is waited for.
    pub(super) fn push(&self, state: &NetworkState) {
        let body: Arc<str> = state.to_json().into();
        for client in &self.clients {
            let (client, body) = (client.clone(), Arc::clone(&body));
            let push = move || match client.put("/v1/topology", &body) {
                Ok(_) => tracing::info!(daemon = client.base(), "routes sent"),
                Err(error) => tracing::warn!(daemon = client.base(), %error, "routes not sent"),
            };
            if let Err(error) = std::thread::Builder::new().name("push".to_owned()).spawn(push) {
                tracing::warn!(%error, "routes not sent");
            }
        }
    }
}

/// Whether a daemon's packets go by the clock of its machine is seen by its first event: then it is told later than it
/// happened.
#[derive(Debug, Default)]
struct RemoteClock {
    is_known: bool,
}

fn hear(client: &Client, heard: Heard, notice_sender: &NoticeSender, clock: &mut RemoteClock) {
    match heard {
        Heard::Subscribed => tracing::info!(daemon = client.base(), "subscribed"),
        Heard::Unsubscribed { error, retry_in } => {
            tracing::warn!(daemon = client.base(), %error, ?retry_in, "subscription failed");
        }
        Heard::Lost(loss) => {
            let count = match loss {
                Loss::TooSlow(count) | Loss::NotUnderstood(count) => count,
                Loss::OtherRun => 1,
            };
            notice_sender.lose(count);
        }
        Heard::Event(event) => {
            if !std::mem::replace(&mut clock.is_known, true) && event.emitted == event.moment {
                notice_sender.hear(Notice::PacketTime);
            }
            match notice(&event) {
                Ok(Some(notice)) => notice_sender.hear(notice),
                Ok(None) => {}
                Err(InvalidEvent) => notice_sender.lose(1),
            }
        }
    }
}

/// An event has the form of one, and says what makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InvalidEvent;

/// What an event is to the controller; `None` for nothing.
fn notice(event: &Event) -> Result<Option<Notice>, InvalidEvent> {
    let time = Timestamp(event.moment.time_ns);
    let notice = match &event.body {
        EventBody::Link {
            link,
            crossing,
            threshold,
            rule,
            capacity_bps,
            rate_bps,
            smoothed_bps,
            utilisation,
            version,
            flows,
            flows_left_out,
        } => {
            let name: LinkName = link.parse().map_err(|_| InvalidEvent)?;
            let flows: Vec<FlowRate> = flows.iter().map(flow_rate).collect::<Result<_, _>>()?;
            let report = LinkReport {
                side: from_json::side(&name),
                capacity: BitRate(*capacity_bps),
                rate: estimate(rate_bps),
                smoothed: *smoothed_bps,
                utilisation: *utilisation,
                flows: flows.len() as u32 + flows_left_out,
                changed: time,
            };
            let event_of_link = LinkEvent {
                crossing: from_json::crossing(*crossing),
                link: report,
                rule: *rule,
                threshold: *threshold,
                version: *version,
                time,
                flows,
                flows_left_out: *flows_left_out,
            };
            Notice::of_link(event.switch.as_str().into(), event_of_link)
        }
        EventBody::AddressChange { key, from, to, source, .. } => {
            let (key, source) = (flow_key(key)?, mac(source)?);
            let addresses = |destination| Ok(EthernetAddresses { destination: mac(destination)?, source });
            let change = AddressChange { key, from: addresses(from)?, to: addresses(to)?, time };
            Some(Notice::Address(event.switch.as_str().into(), change))
        }
        _ => None,
    };
    Ok(notice)
}

fn flow_rate(flow: &json::FlowRate) -> Result<FlowRate, InvalidEvent> {
    Ok(FlowRate {
        key: flow_key(&flow.key)?,
        ethernet: EthernetAddresses {
            destination: mac(&flow.destination_mac)?,
            source: mac(&flow.source_mac)?,
        },
        rate: estimate(&flow.rate_bps),
        basis: from_json::basis(flow.basis),
        span: (Timestamp(flow.span.start.time_ns), Timestamp(flow.span.end.time_ns)),
    })
}

fn estimate(rate: &json::Rate) -> Estimate {
    let bound = match (rate.bound, rate.lower, rate.confidence) {
        (BoundKind::Interval | BoundKind::LowerBound, Some(lower), Some(confidence)) => {
            Bound::Interval { lower, upper: rate.upper.unwrap_or(f64::INFINITY), confidence }
        }
        (BoundKind::NotConverged, ..) => Bound::NotConverged,
        _ => Bound::Unknown,
    };
    Estimate { value: rate.value, bound }
}

fn mac(text: &str) -> Result<MacAddress, InvalidEvent> {
    text.parse().map_err(|_| InvalidEvent)
}

fn flow_key(text: &str) -> Result<FlowKey, InvalidEvent> {
    text.parse().map_err(|_| InvalidEvent)
}

#[cfg(test)]
mod tests {
    use thalweg_measure::collector::{Crossing, LinkDirection, PortDirection};
    use thalweg_measure::rates::Basis;
    use thalweg_network::PortIndex;

    use super::*;
    use crate::api::convert;
    use crate::event::EventKind;
    use crate::hub::{Delivery, Hub};

    /// What a daemon would tell, over JSON and back.
    fn told_and_heard(kind: EventKind) -> Result<Option<Notice>, InvalidEvent> {
        let event = crate::event::Event {
            collector: "leaf0".into(),
            switch: "leaf0".into(),
            time: Timestamp(5),
            emitted: Timestamp(9),
            kind,
        };
        let hub = Hub::default();
        let mut subscriber = hub.subscribe(None);
        hub.publish(event);
        let Some(Delivery::Event(published)) = subscriber.next_delivery(&hub) else { panic!("it was told") };
        let told = serde_json::to_string(&convert::event(&published)).unwrap();
        notice(&serde_json::from_str(&told).unwrap())
    }

    fn link_event(crossing: Crossing, upper: f64) -> LinkEvent {
        let flow = FlowRate {
            key: "tcp 10.0.0.1:1 > 10.0.0.2:2".parse().unwrap(),
            ethernet: EthernetAddresses {
                destination: MacAddress([2, 0, 0, 0, 0, 1]),
                source: MacAddress([2, 0, 0, 0, 0, 2]),
            },
            rate: Estimate::within(4e9, 3e9, upper, 0.95),
            basis: Basis::SamplingRatio,
            span: (Timestamp(1), Timestamp(4)),
        };
        let link = LinkReport {
            side: LinkDirection { port: PortIndex(3), direction: PortDirection::Output },
            capacity: BitRate(10_000_000_000),
            rate: Estimate { value: 9.1e9, bound: Bound::Unknown },
            smoothed: 9e9,
            utilisation: 0.9,
            flows: 3,
            changed: Timestamp(5),
        };
        let (rule, threshold, version, flows_left_out) = (1, 0.85, 7, 2);
        let (time, flows) = (Timestamp(5), vec![flow]);
        LinkEvent { crossing, link, rule, threshold, version, time, flows, flows_left_out }
    }

    #[test]
    fn what_a_collector_tells_far_away_is_what_it_would_tell_here() {
        for upper in [5e9, f64::INFINITY] {
            let event = link_event(Crossing::Remains, upper);
            match told_and_heard(EventKind::Link(event.clone())).unwrap() {
                Some(Notice::Link(switch, heard)) => assert_eq!((&*switch, heard), ("leaf0", event)),
                other => panic!("{other:?}"),
            }
        }
        let recovered = EventKind::Link(link_event(Crossing::Downwards, 5e9));
        assert!(told_and_heard(recovered).unwrap().is_none(), "which is nothing to the controller");
        let FlowRate { key, ethernet, .. } = link_event(Crossing::Upwards, 5e9).flows[0];
        let to = EthernetAddresses { destination: MacAddress([2, 0, 0, 0, 1, 1]), ..ethernet };
        let change = AddressChange { key, from: ethernet, to, time: Timestamp(5) };
        match told_and_heard(EventKind::AddressChange(change)).unwrap() {
            Some(Notice::Address(switch, heard)) => assert_eq!((&*switch, heard), ("leaf0", change)),
            other => panic!("{other:?}"),
        }
    }
}
