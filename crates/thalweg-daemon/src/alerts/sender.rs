//! Requests of alerts.

use std::time::Duration;

use serde::Serialize;
use thalweg_api::Event;
use thalweg_wire::Secret;

use super::pending::Pending;
use crate::config::AlertConfig;
use crate::webhook::WebhookClient;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The body of a request.
#[derive(Serialize)]
struct Body<'a> {
    alert: &'a str,
    events: &'a [Event],
    omitted_events: u64,
}

/// Sends the events of an alert.
pub(super) struct Sender<'a> {
    config: &'a AlertConfig,
    token: Option<&'a Secret>,
    client: WebhookClient,
}

impl<'a> Sender<'a> {
    /// A sender that has no connection yet.
    pub(super) fn new(config: &'a AlertConfig, token: Option<&'a Secret>) -> Sender<'a> {
        Sender { config, token, client: WebhookClient::new(TIMEOUT) }
    }

    /// Sends events. A status of 200 to 299 is success.
    ///
    /// # Errors
    /// A message without secrets, if the webhook does not answer in time, or refuses.
    pub(super) fn send(&self, pending: &Pending) -> Result<(), String> {
        let AlertConfig { name, webhook, .. } = self.config;
        let body = Body { alert: name, events: pending.events(), omitted_events: pending.omitted() };
        let body = serde_json::to_string(&body).map_err(|error| error.to_string())?;
        self.client.post(webhook, self.token, &body)
    }
}
