//! The thread that receives events.

use crossbeam_channel::Sender;
use thalweg_api::client::{Client, StreamItem};

use super::model::Update;

/// Receives events until the view is closed.
pub(super) fn subscribe(client: &Client, updates: &Sender<Update>) {
    client.subscribe(|item| updates.send(item.into()).is_ok());
}

impl From<StreamItem> for Update {
    fn from(item: StreamItem) -> Update {
        match item {
            StreamItem::Event(event) => Update::Event(event),
            StreamItem::Lost(loss) => Update::Lost(loss),
            StreamItem::Connected => Update::Subscribed,
            StreamItem::Disconnected { error, retry_in } => {
                Update::Unsubscribed { error: error.to_string(), retry_in }
            }
        }
    }
}
