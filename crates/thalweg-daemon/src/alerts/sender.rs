//! Requests of alerts.

use std::time::Duration;

use serde::Serialize;
use thalweg_api::Event;
use thalweg_wire::Secret;
use thalweg_wire::web_url::hide_secrets_within;
use ureq::Agent;

use super::pending::Pending;
use crate::config::AlertConfig;

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
    agent: Agent,
}

impl<'a> Sender<'a> {
    /// A sender that has no connection yet.
    pub(super) fn new(config: &'a AlertConfig, token: Option<&'a Secret>) -> Sender<'a> {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(TIMEOUT))
            .build()
            .new_agent();
        Sender { config, token, agent }
    }

    /// Sends events. A status of 200 to 299 is success.
    ///
    /// # Errors
    /// A message without secrets, if the webhook does not answer in time, or refuses.
    pub(super) fn send(&self, pending: &Pending) -> Result<(), String> {
        let AlertConfig { name, webhook, .. } = self.config;
        let body = Body { alert: name, events: pending.events(), omitted_events: pending.omitted() };
        let body = serde_json::to_string(&body).map_err(|error| error.to_string())?;
        let request = self.agent.post(webhook.expose()).content_type("application/json");
        let request = match self.token {
            Some(token) => request.header("authorization", format!("Bearer {}", token.expose())),
            None => request,
        };
        let response = request.send(body);
        let status = response.map_err(|error| hide_secrets_within(&error.to_string()))?.status();
        match status.is_success() {
            true => Ok(()),
            false => Err(format!("status {status}")),
        }
    }
}
