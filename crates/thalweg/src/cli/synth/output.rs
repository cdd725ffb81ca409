//! Output files that get their names when they are complete, and what a signal does to them.
//!
//! Planning a large trace takes minutes in which nothing is written, so a signal (Ctrl-C, SIGTERM) is handled by a thread: it removes
//! unfinished files, says which outputs are missing or incomplete, and ends the process.

use std::fs::{self, File};
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::STANDARD_OUTPUT;
use crate::console;

/// Interval of checks for a signal.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The outputs that are being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Unfinished(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Files under their temporary names, and their names.
    files: Vec<(PathBuf, PathBuf)>,
    /// Other outputs: what an interrupted run leaves of them.
    remarks: Vec<String>,
}

impl Unfinished {
    /// Handles signals from now on.
    ///
    /// # Errors
    /// If handlers or the thread cannot be installed.
    pub(super) fn on_signals() -> anyhow::Result<Unfinished> {
        let (unfinished, received) = (Unfinished::default(), Arc::new(AtomicUsize::new(0)));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_usize(signal, Arc::clone(&received), signal as usize)
                .context("cannot install signal handlers")?;
        }
        let of_thread = unfinished.clone();
        let watch = move || {
            loop {
                match received.load(Ordering::Relaxed) {
                    0 => thread::sleep(POLL_INTERVAL),
                    signal => of_thread.exit(signal as i32),
                }
            }
        };
        thread::Builder::new().name("signals".to_owned()).spawn(watch).context("cannot start a thread")?;
        Ok(unfinished)
    }

    /// Adds what an interrupted run leaves of an output that is not a file of one name.
    pub(super) fn remark(&self, remark: String) {
        self.lock().remarks.push(remark);
    }

    /// Removes unfinished files, and ends the process as the signal would have.
    fn exit(&self, signal: i32) {
        // Nothing is renamed any more.
        let mut state = self.lock();
        console::warn(format_args!("interrupted{}", state.discard()));
        std::process::exit(128 + signal);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Removes unfinished files. Returns what is left, for a message.
    fn discard(&mut self) -> String {
        let mut text = String::new();
        for (unfinished, path) in self.files.drain(..) {
            text += &match fs::remove_file(&unfinished) {
                Ok(()) => format!("; {} was not written", path.display()),
                Err(_) => format!("; {} is incomplete", unfinished.display()),
            };
        }
        self.remarks.iter().fold(text, |text, remark| text + "; " + remark)
    }
}

/// An output that is being written.
#[derive(Debug)]
pub(super) struct Output {
    target: Target,
    unfinished: Unfinished,
}

#[derive(Debug)]
enum Target {
    Stdout(Stdout),
    /// A device or a pipe.
    Special(File),
    /// A file under a temporary name.
    File(File, PathBuf),
}

impl Output {
    /// Starts the file `path`; `-` is standard output.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub(super) fn create(path: &Path, unfinished: &Unfinished) -> anyhow::Result<Output> {
        let output = |target| Output { target, unfinished: unfinished.clone() };
        if path == Path::new(STANDARD_OUTPUT) {
            unfinished.remark("standard output is incomplete".to_owned());
            return Ok(output(Target::Stdout(io::stdout())));
        }
        let create =
            |at: &Path| File::create(at).with_context(|| format!("cannot create {}", path.display()));
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            unfinished.remark(format!("{} is incomplete", path.display()));
            return Ok(output(Target::Special(create(path)?)));
        }
        // A symbolic link stays one.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let temporary = path.with_added_extension("unfinished");
        let mut state = unfinished.lock();
        let file = create(&temporary)?;
        state.files.push((temporary.clone(), path));
        Ok(output(Target::File(file, temporary)))
    }

    /// Gives a complete file its name.
    ///
    /// # Errors
    /// If that fails.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        let Target::File(_, temporary) = &self.target else { return Ok(()) };
        let mut state = self.unfinished.lock();
        match state.files.iter().position(|(file, _)| file == temporary) {
            Some(at) => {
                let (temporary, path) = state.files.remove(at);
                fs::rename(temporary, path)
            }
            None => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Stdout(out) => out.write(bytes),
            Target::Special(file) | Target::File(file, _) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Stdout(out) => out.flush(),
            Target::Special(file) | Target::File(file, _) => file.flush(),
        }
    }
}

impl Drop for Output {
    /// Removes a file that is not complete.
    fn drop(&mut self) {
        let Target::File(_, temporary) = &self.target else { return };
        let mut state = self.unfinished.lock();
        if let Some(at) = state.files.iter().position(|(file, _)| file == temporary) {
            // The error that led here is the one to report.
            let _ = fs::remove_file(state.files.remove(at).0);
        }
    }
}

/// Writes a whole file with `write`.
///
/// # Errors
/// If the file cannot be created or written.
pub(super) fn write_file(
    path: &Path,
    unfinished: &Unfinished,
    write: impl FnOnce(&mut BufWriter<Output>) -> io::Result<()>,
) -> anyhow::Result<()> {
    let mut out = BufWriter::new(Output::create(path, unfinished)?);
    let written = write(&mut out);
    let finished = written.and_then(|()| out.into_inner().map_err(io::IntoInnerError::into_error));
    finished.and_then(Output::finish).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.pcap");
        fs::write(&path, "old").unwrap();
        let mut output = Output::create(&path, &Unfinished::default()).unwrap();
        output.write_all(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        output.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["trace.pcap"]);
    }

    #[test]
    fn a_file_that_cannot_be_completed_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = Output::create(&folder.path().join("trace.pcap"), &Unfinished::default()).unwrap();
        output.write_all(b"begin").unwrap();
        drop(output);
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn an_interruption_names_all_outputs() {
        let (folder, unfinished) = (tempfile::tempdir().unwrap(), Unfinished::default());
        let done = Output::create(&folder.path().join("truth.csv"), &unfinished).unwrap();
        let _open = Output::create(&folder.path().join("trace.pcap"), &unfinished).unwrap();
        done.finish().unwrap();
        unfinished.remark("the rest was not sent".to_owned());
        let text = unfinished.lock().discard();
        assert!(text.ends_with("trace.pcap was not written; the rest was not sent"), "{text}");
        assert!(!text.contains("truth.csv"), "{text}");
        assert_eq!(names(folder.path()), ["truth.csv"]);
    }

    #[test]
    fn devices_and_links_stay_what_they_are() {
        let unfinished = Unfinished::default();
        let mut null = Output::create(Path::new("/dev/null"), &unfinished).unwrap();
        null.write_all(b"x").unwrap();
        null.finish().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut output = Output::create(&link, &unfinished).unwrap();
        output.write_all(b"new").unwrap();
        output.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    }
}
