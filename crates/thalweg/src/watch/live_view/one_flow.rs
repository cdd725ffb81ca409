//! What can be done with one flow: its capture filter, and its packets as a file.

use thalweg_watch::flow_capture::{FlowCaptureRequest, FlowCaptureState, FlowCaptureStatus};

use super::view::{Action, LiveView};

impl LiveView {
    /// Shows or hides the capture filter of the pinned flow; copies it when it is shown.
    pub(super) fn toggle_filter(&mut self) -> Action {
        self.shows_filter = !self.shows_filter;
        match self.capture_filter().filter(|_| self.shows_filter) {
            Some(filter) => Action::Copy(filter),
            None => Action::None,
        }
    }

    /// Returns the capture filter of the pinned flow; `None` if it may be inside a tunnel.
    pub(super) fn capture_filter(&self) -> Option<String> {
        let shown = self.displayed();
        Some(shown.pinned.as_ref()?.key.capture_filter(shown.snapshot.tags?))
    }

    /// Starts to write the packets of the pinned flow to a file, or stops it.
    pub(super) fn toggle_capture(&mut self) -> Action {
        let Some(key) = self.displayed().pinned.as_ref().map(|pinned| pinned.key) else {
            return Action::None;
        };
        let is_stopped = self.running_capture().is_some_and(|capture| is_same(capture, &key));
        self.capture_number += 1;
        let number = self.capture_number;
        self.query.capture = (!is_stopped).then_some(FlowCaptureRequest { key, number });
        Action::Query(self.query.clone())
    }

    /// Returns the state of the file that is being written.
    pub(super) fn running_capture(&self) -> Option<&FlowCaptureStatus> {
        let capture = self.latest_snapshot().capture.as_ref();
        capture.filter(|capture| capture.state == FlowCaptureState::Running)
    }

    /// Returns the state of the latest file of the pinned flow.
    pub(super) fn pinned_capture(&self) -> Option<&FlowCaptureStatus> {
        let key = self.displayed().pinned.as_ref()?.key;
        self.latest_snapshot().capture.as_ref().filter(|capture| is_same(capture, &key))
    }
}

fn is_same(capture: &FlowCaptureStatus, key: &thalweg_wire::FlowKey) -> bool {
    capture.key.canonical().0 == key.canonical().0
}
