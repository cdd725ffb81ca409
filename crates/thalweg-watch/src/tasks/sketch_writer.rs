//! Saves the sketches of finished windows to files, for `thalweg sketch` and other programs.
//!
//! File names consist of window start and task, so they sort by time: `20261121T221620Z-heavy_0.1.tsk`,
//! `20261121T221620Z-hhh_1-src-24-64.tsk`. Files are written under a temporary name and renamed, so they are always complete.

use std::fs;
use std::path::{Path, PathBuf};

use thalweg_measure::tasks::{FlowBytes, KeptWindow, Plan, SketchRef};
use thalweg_sketch::TopK;
use thalweg_sketch::state::{AnyState, Linear, Meta, RowState};
use thalweg_wire::{Nanos, Timestamp};

use crate::error::WatchError;

/// Saves the sketches of windows.
#[derive(Debug)]
pub(crate) struct SketchWriter {
    folder: PathBuf,
}

impl SketchWriter {
    /// Creates the directory if it is missing, and checks that it is writable.
    ///
    /// # Errors
    /// If the directory cannot be created or written to.
    pub(crate) fn new(folder: &Path) -> Result<SketchWriter, WatchError> {
        let trial = folder.join("trial.unfinished");
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&trial, b""))
            .and_then(|()| fs::remove_file(&trial))
            .map_err(|error| WatchError::StatesFolder { folder: folder.to_owned(), error })?;
        Ok(SketchWriter { folder: folder.to_owned() })
    }

    /// Saves every sketch of a window.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(crate) fn save(&self, plan: &Plan, window: &KeptWindow) -> Result<(), WatchError> {
        for (planned, state) in plan.tasks().iter().zip(&window.states) {
            let spec = &planned.spec;
            let sketches = state.sketches(spec.key());
            let several = sketches.len() > 1;
            for (key, sketch) in sketches {
                let Some(state) = state_of(sketch) else { continue };
                let meta = Meta {
                    key_kind: key.to_string(),
                    label: spec.to_string(),
                    start_ns: window.start.0,
                    end_ns: window.end.0,
                };
                let level =
                    if several { format!("-{}", file_name_part(&key.to_string())) } else { String::new() };
                let name = format!(
                    "{}-{}{level}",
                    compact_time(window.start, plan.options().window),
                    file_name_part(&spec.to_string())
                );
                self.write(&name, &state.encode(&meta))?;
            }
        }
        Ok(())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), WatchError> {
        let file = self.folder.join(format!("{name}.tsk"));
        let unfinished = self.folder.join(format!("{name}.unfinished"));
        fs::write(&unfinished, bytes)
            .and_then(|()| fs::rename(&unfinished, &file))
            .inspect_err(|_| {
                // On a full disk the first part has been written. The error that is reported is the first.
                let _ = fs::remove_file(&unfinished);
            })
            .map_err(|error| WatchError::State { file, error })
    }
}

/// Converts a sketch to its saved form; `None` for kinds that cannot be saved.
fn state_of(sketch: SketchRef<'_>) -> Option<AnyState<FlowBytes>> {
    Some(match sketch {
        SketchRef::CountSketch32(sketch, top) => Linear::CountSketch(rows(sketch, top)).into(),
        SketchRef::CountSketch64(sketch, top) => Linear::CountSketch(rows(sketch, top)).into(),
        SketchRef::KAry32(sketch, top) => Linear::KAry(rows(sketch, top)).into(),
        SketchRef::KAry64(sketch, top) => Linear::KAry(rows(sketch, top)).into(),
        SketchRef::UnivMon32(univmon) => Linear::UnivMon(univmon.clone()).into(),
        SketchRef::HyperLogLog(counter) => counter.clone().into(),
        SketchRef::Spread(spread) => spread.clone().into(),
        _ => return None,
    })
}

fn rows<S: Clone>(sketch: &S, top: Option<&TopK<FlowBytes>>) -> RowState<S, FlowBytes> {
    RowState { sketch: sketch.clone(), top: top.cloned() }
}

/// Formats a time in RFC 3339 without separators, with a fraction if the window length needs one: `20261121T221620Z`,
/// `20261121T221620.500000000Z`.
fn compact_time(time: Timestamp, window: Nanos) -> String {
    let text = time.to_string().replace(['-', ':'], "");
    match window.0.is_multiple_of(1_000_000_000) {
        true => format!("{}Z", &text[..15]),
        false => text,
    }
}

/// Formats a task or key for a file name: `heavy:0.1%:src/24` becomes `heavy_0.1_src-24`.
fn file_name_part(text: &str) -> String {
    let safe = |character: char| match character {
        'a'..='z' | '0'..='9' | '.' | '+' => Some(character),
        '%' => None,
        '/' => Some('-'),
        _ => Some('_'),
    };
    text.chars().filter_map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        // A directory of this name: the bytes can be written, but the file cannot get its name.
        fs::create_dir(folder.path().join("a.tsk")).unwrap();
        SketchWriter::new(folder.path()).unwrap().write("a", b"sketch").unwrap_err();
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(left, ["a.tsk"]);
    }

    #[test]
    fn names_sort_by_time_and_need_no_shell_quoting() {
        let start = Timestamp::new(1_795_255_210, 0);
        assert_eq!(compact_time(start, Nanos::from_secs(10)), "20261121T100010Z");
        assert_eq!(compact_time(start, Nanos::from_millis(250)), "20261121T100010.000000000Z");
        assert_eq!(file_name_part("heavy:0.1%:src/24:bytes"), "heavy_0.1_src-24_bytes");
        assert_eq!(file_name_part("spread:dst>1000"), "spread_dst_1000");
        assert_eq!(file_name_part("distinct:dst+port"), "distinct_dst+port");
    }
}
