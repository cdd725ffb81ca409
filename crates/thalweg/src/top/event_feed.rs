//! The thread that subscribes to events.

use crossbeam_channel::Sender;
use thalweg_api::client::{Client, StreamItem};

use super::model::News;

/// Subscribes until the view is gone.
pub(super) fn subscribe(client: &Client, news: &Sender<News>) {
    client.subscribe(|item| news.send(item.into()).is_ok());
}

impl From<StreamItem> for News {
    fn from(item: StreamItem) -> News {
        match item {
            StreamItem::Event(event) => News::Event(event),
            StreamItem::Lost(loss) => News::Lost(loss),
            StreamItem::Connected => News::Subscribed,
            StreamItem::Disconnected { error, retry_in } => {
                News::Unsubscribed { error: error.to_string(), retry_in }
            }
        }
    }
}
