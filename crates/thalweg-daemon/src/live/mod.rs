//! What a dashboard watches: link loads ten times a second, the state of the daemon once a second, and the past ten minutes of links
//! and flows.
//!
//! ```text
//!   collectors ──► thread ──► frame ──► stream of each viewer
//!                    └──────► history ──► requests
//! ```
//!
//! **Cost.** One thread reads the links of all collectors, whatever the number of viewers: ten times a second while somebody watches,
//! otherwise once. A frame is encoded at most twice, as changes and whole, and all viewers send the same bytes. A viewer that is too
//! slow for a frame gets the next one whole. Flows are read once a second while somebody watches.
//!
//! **Memory**: 2.4 KB per link direction and per flow in the history, of at most [`MAX_LINKS`] link directions and [`MAX_FLOWS`] flows.
//!
//! | file | contents |
//! |---|---|
//! | `frame` | loads of all links at one time, and its texts |
//! | `sampler` | reads collectors into frames |
//! | `history` | the past ten minutes |
//! | `thread` | the thread |

mod frame;
mod history;
mod sampler;
mod thread;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hyper::body::Bytes;
use tokio::sync::watch;

pub use frame::{Frame, FrameCursor};
pub use history::{History, MAX_FLOWS, MAX_LINKS};
pub use thread::run_live;

/// The latest frame and status, and the past. Clones share it.
#[derive(Clone, Debug)]
pub struct Live(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    frames: watch::Sender<Arc<Frame>>,
    /// The latest status as text of the stream; empty before the first.
    status: watch::Sender<Bytes>,
    history: Mutex<History>,
}

/// A viewer of the live stream. Dropping it ends the view.
#[derive(Debug)]
pub struct Viewer {
    /// Receives frames.
    pub frames: watch::Receiver<Arc<Frame>>,
    /// Receives status texts.
    pub status: watch::Receiver<Bytes>,
}

impl Default for Live {
    fn default() -> Self {
        Live(Arc::new(Shared {
            frames: watch::Sender::new(Arc::default()),
            status: watch::Sender::new(Bytes::new()),
            history: Mutex::default(),
        }))
    }
}

impl Live {
    /// Adds a viewer.
    pub fn watch(&self) -> Viewer {
        let is_watched = self.is_watched();
        let (mut frames, mut status) = (self.0.frames.subscribe(), self.0.status.subscribe());
        if is_watched {
            // Those that are there are recent.
            frames.mark_changed();
            status.mark_changed();
        }
        Viewer { frames, status }
    }

    /// Whether somebody watches.
    pub fn is_watched(&self) -> bool {
        self.0.frames.receiver_count() > 0
    }

    /// Returns the past.
    pub fn history(&self) -> MutexGuard<'_, History> {
        // A panic leaves whole values.
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
