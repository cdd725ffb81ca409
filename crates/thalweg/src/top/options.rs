//! Options of `thalweg top`.

use thalweg_api::client::ClientOptions;
use thalweg_measure::filter::FlowFilter;

/// Options of `thalweg top`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopOptions {
    /// API client.
    pub client: ClientOptions,
    /// Output format.
    pub show: Show,
    /// Which flows to show.
    pub filter: FlowFilter,
    /// Whether the live view uses the mouse.
    pub mouse: bool,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Full-screen live view.
    LiveView,
    /// A table of links.
    Once,
    /// The links as the JSON response of the API.
    Json,
}
