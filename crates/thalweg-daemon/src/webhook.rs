//! POST requests to webhooks.

use std::time::Duration;

use thalweg_wire::web_url::hide_secrets_within;
use thalweg_wire::{Secret, WebUrl};
use ureq::Agent;

/// Sends JSON to webhooks. Redirects are not followed.
#[derive(Debug)]
pub(crate) struct WebhookClient {
    agent: Agent,
}

impl WebhookClient {
    /// A client that has no connection yet, with a timeout of whole requests.
    pub(crate) fn new(timeout: Duration) -> WebhookClient {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(timeout))
            .build();
        WebhookClient { agent: config.new_agent() }
    }

    /// Sends JSON, with a token for the header `Authorization: Bearer`. A status of 200 to 299 is success.
    ///
    /// # Errors
    /// A message without secrets, if the webhook does not answer in time, or refuses.
    pub(crate) fn post(&self, url: &WebUrl, token: Option<&Secret>, json: &str) -> Result<(), String> {
        let request = self.agent.post(url.expose()).content_type("application/json");
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {}", token.expose())),
            None => request,
        };
        let response = request.send(json);
        let status = response.map_err(|error| hide_secrets_within(&error.to_string()))?.status();
        match status.is_success() {
            true => Ok(()),
            false => Err(format!("status {status}")),
        }
    }
}
