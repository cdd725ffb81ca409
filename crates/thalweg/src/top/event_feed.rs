//! The thread that receives events.

use crossbeam_channel::Sender;
use thalweg_api::client::{Client, Heard};

use super::model::Update;

/// Receives events until the view is closed.
pub(super) fn listen(client: &Client, updates: &Sender<Update>) {
    client.listen(|heard| updates.send(heard.into()).is_ok());
}

impl From<Heard> for Update {
    fn from(heard: Heard) -> Update {
        match heard {
            Heard::Event(event) => Update::Event(event),
            Heard::Lost(loss) => Update::Lost(loss),
            Heard::Subscribed => Update::Subscribed,
            Heard::Unsubscribed { error, retry_in } => {
                Update::Unsubscribed { error: error.to_string(), retry_in }
            }
        }
    }
}
