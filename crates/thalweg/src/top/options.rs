//! Whom to ask, and how to show what it says.

use thalweg_api::client::ClientOptions;
use thalweg_measure::filter::FlowFilter;

/// What `thalweg top` is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopOptions {
    /// Whom to ask.
    pub client: ClientOptions,
    /// How to show it.
    pub show: Show,
    /// Which flows to show.
    pub filter: FlowFilter,
}

/// How to show what the daemon says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Live, on the whole screen.
    LiveView,
    /// The links once, as a table.
    Once,
    /// The links once, as the API says them.
    Json,
}
