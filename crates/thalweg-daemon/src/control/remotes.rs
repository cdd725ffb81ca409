//! Other daemons, whose collectors send events over the HTTP API.
//!
//! A thread for each daemon subscribes to its events, and resumes after the last one when the connection was lost. Missed and
//! invalid events are counted as lost. New routes are sent to all daemons (`PUT /v1/topology`) when they are announced to the local
//! collectors. This requires a token with the scope `write`.

use std::sync::Arc;

use thalweg_api::client::{Client, ClientError, ClientOptions, Loss, StreamItem};
use thalweg_api::{self as json, BoundKind, Event, EventBody, LinkName};
use thalweg_measure::collector::{AddressChange, CongestionEvent, FlowRate, LinkReport};
use thalweg_network::NetworkState;
use thalweg_sketch::{Bound, Estimate};
use thalweg_wire::{BitRate, EthernetAddresses, FlowKey, MacAddress};

use crate::collectors::control_events::{ControlEvent, ControlEventSender};
use crate::lifecycle::Lifecycle;
use crate::{from_json, link_name};

/// All other daemons.
#[derive(Clone, Debug, Default)]
pub(super) struct Remotes {
    clients: Vec<Client>,
}

impl Remotes {
    /// Creates the clients: reads tokens and certificates, and sends no request.
    pub(super) fn new(options: &[ClientOptions]) -> Result<Remotes, ClientError> {
        Ok(Remotes { clients: options.iter().map(Client::new).collect::<Result<_, _>>()? })
    }

    /// Whether other daemons are configured.
    pub(super) fn are_configured(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Subscribes to all daemons. The threads end with the first event after the daemon stops; they need no cleanup.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub(super) fn subscribe(
        &self,
        lifecycle: &Lifecycle,
        event_sender: &ControlEventSender,
    ) -> std::io::Result<()> {
        for client in &self.clients {
            let (client, lifecycle, event_sender) = (client.clone(), lifecycle.clone(), event_sender.clone());
            let mut clock = RemoteClock::default();
            let subscribe = move || {
                client.subscribe(|item| {
                    handle(&client, item, &event_sender, &mut clock);
                    !lifecycle.is_stopping()
                });
            };
            std::thread::Builder::new().name("remote".to_owned()).spawn(subscribe)?;
        }
        Ok(())
    }

    /// Sends a network to all daemons. Does not wait.
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

/// Detects by the first event whether a daemon's packets have its machine's clock: `emitted` is then later than the packet time.
#[derive(Debug, Default)]
struct RemoteClock {
    is_known: bool,
}

fn handle(client: &Client, item: StreamItem, event_sender: &ControlEventSender, clock: &mut RemoteClock) {
    match item {
        StreamItem::Connected => tracing::info!(daemon = client.base(), "subscribed"),
        StreamItem::Disconnected { error, retry_in } => {
            tracing::warn!(daemon = client.base(), %error, ?retry_in, "subscription failed");
        }
        StreamItem::Lost(loss) => {
            let count = match loss {
                Loss::Overwritten(count) | Loss::Invalid(count) => count,
                Loss::Restarted => 1,
            };
            event_sender.note_lost(count);
        }
        StreamItem::Event(event) => {
            if !std::mem::replace(&mut clock.is_known, true) && event.emitted == event.time {
                event_sender.send(ControlEvent::PacketTime);
            }
            match control_event(&event) {
                Ok(Some(control_event)) => event_sender.send(control_event),
                Ok(None) => {}
                Err(InvalidEvent) => event_sender.note_lost(1),
            }
        }
    }
}

/// An event is well-formed but has invalid values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InvalidEvent;

/// Converts an event for the controller; `None` if it is not relevant.
fn control_event(event: &Event) -> Result<Option<ControlEvent>, InvalidEvent> {
    let time = event.time.0;
    let control_event = match &event.body {
        EventBody::Congestion {
            link,
            change,
            threshold,
            rule,
            capacity_bps,
            rate,
            smoothed_bps,
            utilisation,
            topology_version,
            flows,
            omitted_flows,
        } => {
            let name: LinkName = link.parse().map_err(|_| InvalidEvent)?;
            let flows: Vec<FlowRate> = flows.iter().map(flow_rate).collect::<Result<_, _>>()?;
            let report = LinkReport {
                side: link_name::side(&name),
                capacity: BitRate(*capacity_bps),
                rate: estimate(rate)?,
                smoothed: *smoothed_bps,
                peak: *smoothed_bps,
                utilisation: *utilisation,
                flows: flows.len() as u32 + omitted_flows,
                changed: time,
            };
            let event_of_link = CongestionEvent {
                change: from_json::congestion_change(*change),
                link: report,
                rule: *rule,
                threshold: *threshold,
                version: *topology_version,
                time,
                flows,
                flows_left_out: *omitted_flows,
            };
            ControlEvent::congestion(event.switch.as_str().into(), event_of_link)
        }
        EventBody::AddressChange { key, previous_dst_mac, dst_mac, src_mac, .. } => {
            let (key, source) = (flow_key(key)?, mac(src_mac)?);
            let addresses = |destination| Ok(EthernetAddresses { destination: mac(destination)?, source });
            let (from, to) = (addresses(previous_dst_mac)?, addresses(dst_mac)?);
            let change = AddressChange { key, from, to, time };
            Some(ControlEvent::Address(event.switch.as_str().into(), change))
        }
        _ => None,
    };
    Ok(control_event)
}

fn flow_rate(flow: &json::FlowRate) -> Result<FlowRate, InvalidEvent> {
    Ok(FlowRate {
        key: flow_key(&flow.key)?,
        ethernet: EthernetAddresses { destination: mac(&flow.dst_mac)?, source: mac(&flow.src_mac)? },
        rate: estimate(&flow.rate)?,
        basis: from_json::basis(flow.basis),
        span: (flow.span.start.0, flow.span.end.0),
    })
}

fn estimate(rate: &json::Rate) -> Result<Estimate, InvalidEvent> {
    let bound = match (rate.bounds, rate.rate_lower_bps, rate.confidence) {
        (BoundKind::Interval | BoundKind::LowerBound, Some(lower), Some(confidence)) => {
            Bound::Interval { lower, upper: rate.rate_upper_bps.unwrap_or(f64::INFINITY), confidence }
        }
        (BoundKind::NotConverged, ..) => Bound::NotConverged,
        _ => Bound::Unknown,
    };
    let value = match (rate.rate_bps, bound) {
        (Some(value), _) => value,
        // Only the bounds are known.
        (None, Bound::Interval { lower, upper, .. }) if upper.is_finite() => (lower * upper).sqrt(),
        (None, Bound::Interval { lower, .. }) => lower,
        (None, _) => return Err(InvalidEvent),
    };
    Ok(Estimate { value, bound })
}

fn mac(text: &str) -> Result<MacAddress, InvalidEvent> {
    text.parse().map_err(|_| InvalidEvent)
}

fn flow_key(text: &str) -> Result<FlowKey, InvalidEvent> {
    text.parse().map_err(|_| InvalidEvent)
}

#[cfg(test)]
mod tests {
    use thalweg_measure::collector::{CongestionChange, LinkDirection, PortDirection};
    use thalweg_measure::rates::Basis;
    use thalweg_network::PortIndex;
    use thalweg_wire::{Protocol, Timestamp};

    use super::*;
    use crate::api::convert;
    use crate::event::EventKind;
    use crate::hub::{Delivery, Hub};

    /// Converts an event to JSON and back.
    fn round_trip(kind: EventKind) -> Result<Option<ControlEvent>, InvalidEvent> {
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
        let Some(Delivery::Event(published)) = subscriber.next_delivery(&hub) else { panic!("no event") };
        let round_tripped = serde_json::to_string(&convert::event(&published)).unwrap();
        control_event(&serde_json::from_str(&round_tripped).unwrap())
    }

    fn congestion_event(change: CongestionChange, upper: f64) -> CongestionEvent {
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
            peak: 9e9,
            utilisation: 0.9,
            flows: 3,
            changed: Timestamp(5),
        };
        let (rule, threshold, version, flows_left_out) = (1, 0.85, 7, 2);
        let (time, flows) = (Timestamp(5), vec![flow]);
        CongestionEvent { change, link, rule, threshold, version, time, flows, flows_left_out }
    }

    #[test]
    fn remote_events_equal_local_ones() {
        for upper in [5e9, f64::INFINITY] {
            let event = congestion_event(CongestionChange::Repeated, upper);
            match round_trip(EventKind::Congestion(event.clone())).unwrap() {
                Some(ControlEvent::Congestion(switch, item)) => {
                    assert_eq!((&*switch, item), ("leaf0", event))
                }
                other => panic!("{other:?}"),
            }
        }
        for (upper, value) in [(3e10, 9.486_8e9), (f64::INFINITY, 3e9)] {
            let mut event = congestion_event(CongestionChange::Began, upper);
            event.flows[0].key.protocol = Protocol::UDP;
            let Ok(Some(ControlEvent::Congestion(_, item))) = round_trip(EventKind::Congestion(event)) else {
                panic!("a rate of which only the bounds are known")
            };
            assert!((item.flows[0].rate.value / value - 1.0).abs() < 1e-4, "{item:?}");
        }
        let recovered = EventKind::Congestion(congestion_event(CongestionChange::Cleared, 5e9));
        assert!(round_trip(recovered).unwrap().is_none(), "not relevant for the controller");
        let FlowRate { key, ethernet, .. } = congestion_event(CongestionChange::Began, 5e9).flows[0];
        let to = EthernetAddresses { destination: MacAddress([2, 0, 0, 0, 1, 1]), ..ethernet };
        let change = AddressChange { key, from: ethernet, to, time: Timestamp(5) };
        match round_trip(EventKind::AddressChange(change)).unwrap() {
            Some(ControlEvent::Address(switch, item)) => assert_eq!((&*switch, item), ("leaf0", change)),
            other => panic!("{other:?}"),
        }
    }
}
