//! Reads capture files again for the packets of a flow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use thalweg_capture::{FileAccess, Spec, open};
use thalweg_wire::Source;

use super::Progress;
use super::output::{Output, spawn};
use super::recorder::FlowEncoder;

/// A flow to extract from files.
pub(super) struct Extraction {
    pub(super) encoder: FlowEncoder,
    pub(super) names: Vec<String>,
    pub(super) filter: Option<String>,
    pub(super) output: Output,
    pub(super) progress: Arc<Progress>,
    pub(super) stop: Arc<AtomicBool>,
}

impl Extraction {
    /// Extracts in a thread.
    pub(super) fn start(mut self) -> Result<JoinHandle<()>, String> {
        spawn(move || {
            for name in std::mem::take(&mut self.names) {
                if let Err(error) = self.file(&name) {
                    self.progress.fail(error);
                }
                if self.is_over() {
                    break;
                }
            }
            self.output.flush(&self.progress);
            self.progress.is_complete.store(true, Ordering::Relaxed);
        })
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.progress.is_over()
    }

    /// Extracts from one file. Everything before an error is written.
    fn file(&mut self, name: &str) -> Result<(), String> {
        let spec =
            Spec::File { path: name.into(), filter: self.filter.clone(), access: FileAccess::Buffered };
        let mut opened = open(&spec).map_err(|error| error.to_string())?;
        for source in &mut opened.sources {
            while let Some(batch) = source.next_batch().map_err(|error| error.to_string())? {
                let chunk = self.encoder.encode(&batch);
                if chunk.packets > 0 && !self.output.write(&chunk, &self.progress) || self.is_over() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
