//! Alerts: events that are sent to a webhook.
//!
//! ```text
//!   hub ──► thread of each alert ──► pending ──► POST ──► webhook
//! ```
//!
//! The first event is sent at once. Those that follow within [`AlertConfig::min_interval`] are sent together when it is over. A failed request is
//! repeated, ever more slowly, with what has been added meanwhile. So a webhook that is away for an hour gets the events afterwards, as
//! many as [`MAX_EVENTS`]; the others are counted, there and in the metrics.
//!
//! | file | contents |
//! |---|---|
//! | `pending` | the events that wait, and when they are due |
//! | `sender` | requests |

mod pending;
mod sender;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use thalweg_api::{Event, EventBody};
use thalweg_linux::clock;
use thalweg_wire::Secret;

use crate::config::AlertConfig;
use crate::hub::{Delivery, Hub, Published, Subscriber};
use pending::Pending;
use sender::Sender;

/// The maximum number of events of a request. It has the first ones, and the number of the others.
pub const MAX_EVENTS: usize = 100;

/// The pause between two looks for events, in which the hub keeps them.
const PAUSE: Duration = Duration::from_millis(100);

/// An alert of a running daemon.
#[derive(Debug)]
pub struct Alert {
    config: AlertConfig,
    token: Option<Secret>,
    counters: Counters,
}

/// What an alert has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlertCounts {
    /// Events that were sent.
    pub sent: u64,
    /// Events that were not sent: more than a request has, overwritten before they were read, or left at the stop.
    pub lost: u64,
    /// Requests that failed. They are repeated.
    pub failures: u64,
}

#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    lost: AtomicU64,
    failures: AtomicU64,
}

/// Returns an event if an alert selects it. Those of other types are not converted.
fn selected(
    config: &AlertConfig,
    published: &Published,
    convert: impl Fn(&Published) -> Event,
) -> Option<Event> {
    let kind = published.event.kind.type_name();
    let is_of_type = config.types.as_ref().is_none_or(|types| types.iter().any(|wanted| wanted == kind));
    let event = is_of_type.then(|| convert(published))?;
    let is_selected = config.collector.as_ref().is_none_or(|wanted| *wanted == event.collector)
        && config.link.as_deref().is_none_or(|wanted| link_of(&event.body) == Some(wanted));
    is_selected.then_some(event)
}

/// Returns the name of the link that an event names, if any.
fn link_of(body: &EventBody) -> Option<&str> {
    match body {
        EventBody::Congestion { link, .. } | EventBody::Link { link, .. } => Some(link),
        EventBody::Decision { link, .. } => link.as_deref(),
        _ => None,
    }
}

impl Alert {
    /// An alert that has sent nothing yet, with the token of its file.
    pub fn new(config: AlertConfig, token: Option<Secret>) -> Alert {
        Alert { config, token, counters: Counters::default() }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Returns its configuration.
    pub fn config(&self) -> &AlertConfig {
        &self.config
    }

    /// Returns what it has counted.
    pub fn counts(&self) -> AlertCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { sent, lost, failures } = &self.counters;
        AlertCounts { sent: read(sent), lost: read(lost), failures: read(failures) }
    }
}

/// Sends the events of an alert until `is_over`, then tries once to send those that are left. `convert` returns an event as the API has it.
pub(crate) fn run_alert(
    alert: &Alert,
    hub: &Hub,
    mut subscriber: Subscriber,
    convert: impl Fn(&Published) -> Event,
    is_over: impl Fn() -> bool,
) {
    let Alert { config, token, counters } = alert;
    let sender = Sender::new(config, token.as_ref());
    let mut pending = Pending::new(config.min_interval);
    loop {
        // Before the hub is read, so that the last events are read.
        let is_last = is_over();
        let now = clock::monotonic();
        while let Some(delivery) = subscriber.next_delivery(hub) {
            match delivery {
                Delivery::Lost { count, .. } => pending.add_missing(count),
                Delivery::Event(published) => {
                    if let Some(event) = selected(config, &published, &convert) {
                        pending.add(event);
                    }
                }
            }
        }
        if pending.is_due(now) || is_last && !pending.is_empty() {
            match sender.send(&pending) {
                Ok(()) => {
                    counters.sent.fetch_add(pending.events().len() as u64, Ordering::Relaxed);
                    counters.lost.fetch_add(pending.omitted(), Ordering::Relaxed);
                    pending.sent(clock::monotonic());
                }
                Err(error) => {
                    counters.failures.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(alert = config.name, %error, "an alert was not delivered");
                    pending.failed(clock::monotonic());
                }
            }
        }
        if is_last {
            counters.lost.fetch_add(pending.events().len() as u64 + pending.omitted(), Ordering::Relaxed);
            return;
        }
        thread::sleep(PAUSE);
    }
}
