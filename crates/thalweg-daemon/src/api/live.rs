//! The live stream of a dashboard: link loads, the state of the daemon, and events, over one connection.
//!
//! ```text
//! event: links            the names of the link directions, when they change
//! data: {"list":1,"links":["tor0:p0:in",...]}
//!
//! event: loads            ten times a second: utilisation in thousandths, all of them or those that changed
//! data: {"list":1,"time":"...","changed":[4,871,...]}
//!
//! event: status           once a second
//! data: {"time":"...","collectors":[...],"control":{...},...}
//!
//! id: 18f3a2c4d5e6f708-42
//! event: decision         events that change something, as in the stream of events
//! data: {...}
//! ```
//!
//! Only events have an `id`. A viewer that resumes gets the events that it missed, and current loads.

use hyper::body::Bytes;
use tokio::sync::watch;

use super::Api;
use super::events::{KEEP_ALIVE, KEEP_ALIVE_COMMENT, Subscription};
use crate::live::{FrameCursor, Viewer};
use thalweg_http::Admission;
use thalweg_http::reply::BodySender;

/// Sends messages to a viewer until it disconnects or its access ends. A slow viewer delays only this task.
pub(super) async fn stream(
    api: Api,
    mut subscription: Subscription,
    mut viewer: Viewer,
    mut admission: Admission,
    mut out: BodySender,
) {
    let mut event_count = api.event_count().subscribe();
    let mut cursor = FrameCursor::default();
    let mut first = subscription.position(&api);
    loop {
        // Before the reads, so that an event published during them is noticed.
        event_count.mark_unchanged();
        if !admission.is_valid() {
            return;
        }
        // Events first: they are urgent.
        loop {
            let Some(text) = first.take().or_else(|| subscription.next_text(&api)) else { break };
            if !admission.is_valid() || out.send_data(text).await.is_err() {
                return;
            }
        }
        for text in state_texts(&mut viewer, &mut cursor) {
            if out.send_data(text).await.is_err() {
                return;
            }
        }
        let wait = async {
            tokio::select! {
                changed = event_count.changed() => changed,
                changed = viewer.frames.changed() => unread(changed, &mut viewer.frames),
                changed = viewer.status.changed() => unread(changed, &mut viewer.status),
            }
        };
        let is_disconnected = match tokio::time::timeout(KEEP_ALIVE, wait).await {
            Ok(changed) => changed.is_err(),
            Err(_) => out.send_data(Bytes::from_static(KEEP_ALIVE_COMMENT)).await.is_err(),
        };
        if is_disconnected {
            return;
        }
    }
}

/// Returns what is new of loads and status.
fn state_texts(viewer: &mut Viewer, cursor: &mut FrameCursor) -> impl Iterator<Item = Bytes> + use<> {
    let has_frame = viewer.frames.has_changed().unwrap_or(false);
    let has_status = viewer.status.has_changed().unwrap_or(false);
    let loads = if has_frame { cursor.texts(&viewer.frames.borrow_and_update()) } else { [None, None] };
    let status = has_status.then(|| viewer.status.borrow_and_update().clone());
    loads.into_iter().flatten().chain(status.filter(|text| !text.is_empty()))
}

/// Marks a value that was awaited as not read yet.
fn unread<T>(
    changed: Result<(), watch::error::RecvError>,
    receiver: &mut watch::Receiver<T>,
) -> Result<(), watch::error::RecvError> {
    receiver.mark_changed();
    changed
}
