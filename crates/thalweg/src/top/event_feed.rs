//! The thread that listens for events.

use crossbeam_channel::Sender;
use thalweg_api::client::{Client, Heard};

use super::model::News;

/// Listens until nobody wants to know any more.
pub(super) fn listen(client: &Client, news: &Sender<News>) {
    client.listen(|heard| news.send(heard.into()).is_ok());
}

impl From<Heard> for News {
    fn from(heard: Heard) -> News {
        match heard {
            Heard::Event(event) => News::Event(event),
            Heard::Lost(loss) => News::Lost(loss),
            Heard::Subscribed => News::Subscribed,
            Heard::Unsubscribed { error, retry_in } => {
                News::Unsubscribed { error: error.to_string(), retry_in }
            }
        }
    }
}
