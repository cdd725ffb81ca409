//! The log: lines on standard error, as text or as JSON.
//!
//! Each callsite has a rate limit. Suppressed lines are counted, and reported once per second in one line. Thus hostile packets
//! cannot fill the disk or slow down a collector thread.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;
use tracing::callsite::Identifier;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt};
use tracing_subscriber::{Layer, Registry};

use thalweg_linux::clock::realtime;

/// Target of reports about suppressed lines, which have no rate limit.
const SUPPRESSION_TARGET: &str = "thalweg::log";

/// Options of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Lowest level to log.
    pub level: LogLevel,
    /// Format of lines.
    pub format: LogFormat,
    /// Maximum lines per second of one callsite.
    pub lines_per_second: u32,
}

/// Severity of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum LogLevel {
    /// Permanent failures.
    Error,
    /// Failures that are retried, and losses.
    Warn,
    /// Starts, stops and reroutes.
    #[default]
    Info,
    /// Details for debugging.
    Debug,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// An unknown log level or format.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("expected {0}")]
pub struct ParseLogOptionError(&'static str);

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions { level: LogLevel::default(), format: LogFormat::default(), lines_per_second: 10 }
    }
}

impl FromStr for LogLevel {
    type Err = ParseLogOptionError;

    fn from_str(text: &str) -> Result<Self, ParseLogOptionError> {
        match text {
            "error" => Ok(LogLevel::Error),
            "warn" => Ok(LogLevel::Warn),
            "info" => Ok(LogLevel::Info),
            "debug" => Ok(LogLevel::Debug),
            _ => Err(ParseLogOptionError("error, warn, info or debug")),
        }
    }
}

impl FromStr for LogFormat {
    type Err = ParseLogOptionError;

    fn from_str(text: &str) -> Result<Self, ParseLogOptionError> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(ParseLogOptionError("text or json")),
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        })
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            LogFormat::Text => "text",
            LogFormat::Json => "json",
        })
    }
}

impl LogLevel {
    const fn filter(self) -> LevelFilter {
        match self {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
        }
    }

    const fn from_number(number: u8) -> LogLevel {
        match number {
            0 => LogLevel::Error,
            1 => LogLevel::Warn,
            2 => LogLevel::Info,
            _ => LogLevel::Debug,
        }
    }
}

/// The daemon's log. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Log(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    level: AtomicU8,
    /// Suppressed lines.
    suppressed: AtomicU64,
    start: Instant,
    callsites: Mutex<Callsites>,
}

/// The process has a log already.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the log is already installed")]
pub struct LogError;

impl Log {
    /// Installs the log of this process, on standard error.
    ///
    /// # Errors
    /// If a log is already installed.
    pub fn install(options: &LogOptions) -> Result<Log, LogError> {
        let log = Log::new(options);
        let subscriber = log.subscriber(options.format, io::stderr);
        tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError)?;
        Ok(log)
    }

    fn new(options: &LogOptions) -> Log {
        Log(Arc::new(Shared {
            level: AtomicU8::new(options.level as u8),
            suppressed: AtomicU64::new(0),
            start: Instant::now(),
            callsites: Mutex::new(Callsites::new(options.lines_per_second)),
        }))
    }

    fn subscriber<W>(&self, format: LogFormat, writer: W) -> impl Subscriber + Send + Sync + use<W>
    where
        W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
    {
        let layer =
            tracing_subscriber::fmt::layer().with_ansi(false).with_timer(WallClock).with_writer(writer);
        let layer = match format {
            LogFormat::Text => layer.boxed(),
            LogFormat::Json => layer.json().flatten_event(true).with_span_list(false).boxed(),
        };
        Registry::default().with(layer.with_filter(LogFilter(self.clone())))
    }

    /// Sets the lowest level to log.
    pub fn set_level(&self, level: LogLevel) {
        self.0.level.store(level as u8, Ordering::Relaxed);
        tracing::callsite::rebuild_interest_cache();
    }

    /// Returns the lowest level to log.
    pub fn level(&self) -> LogLevel {
        LogLevel::from_number(self.0.level.load(Ordering::Relaxed))
    }

    /// Returns the number of suppressed lines.
    pub fn suppressed(&self) -> u64 {
        self.0.suppressed.load(Ordering::Relaxed)
    }

    /// Logs the number of suppressed lines of each callsite. Call it about once per second.
    pub fn report_suppressed(&self) {
        let suppressed = self.callsites().take_suppressed(self.0.start.elapsed());
        for (callsite, lines) in suppressed {
            tracing::warn!(target: SUPPRESSION_TARGET, callsite, lines, "log lines suppressed");
        }
    }

    fn callsites(&self) -> MutexGuard<'_, Callsites> {
        self.0.callsites.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Filters lines by level and rate limit.
#[derive(Clone, Debug)]
struct LogFilter(Log);

impl<S> Filter<S> for LogFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        *metadata.level() <= self.0.level().filter()
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if metadata.target() == SUPPRESSION_TARGET {
            return true;
        }
        let passes = self.0.callsites().admit(metadata, self.0.0.start.elapsed());
        if !passes {
            self.0.0.suppressed.fetch_add(1, Ordering::Relaxed);
        }
        passes
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0.level().filter())
    }
}

/// Rate limits of callsites. Their number is bounded by the source code.
#[derive(Debug)]
struct Callsites {
    lines_per_second: u32,
    callsites: HashMap<Identifier, CallsiteState>,
}

#[derive(Debug)]
struct CallsiteState {
    /// `file:line`, or the module if that is unknown.
    name: String,
    /// The current second.
    second: u64,
    lines: u32,
    suppressed: u64,
}

impl Callsites {
    fn new(lines_per_second: u32) -> Callsites {
        Callsites { lines_per_second, callsites: HashMap::new() }
    }

    /// Counts a line of a callsite, and returns whether it passes. `now` is relative to a fixed instant.
    fn admit(&mut self, metadata: &Metadata<'_>, now: Duration) -> bool {
        let callsite = self.callsites.entry(metadata.callsite()).or_insert_with(|| CallsiteState {
            name: match (metadata.file(), metadata.line()) {
                (Some(file), Some(line)) => format!("{file}:{line}"),
                _ => metadata.target().to_owned(),
            },
            second: 0,
            lines: 0,
            suppressed: 0,
        });
        if callsite.second != now.as_secs() {
            (callsite.second, callsite.lines) = (now.as_secs(), 0);
        }
        let passes = callsite.lines < self.lines_per_second;
        callsite.lines = callsite.lines.saturating_add(1);
        callsite.suppressed += u64::from(!passes);
        passes
    }

    /// Returns and clears the suppressed lines of seconds before `now`, by callsite in the order of names.
    fn take_suppressed(&mut self, now: Duration) -> Vec<(String, u64)> {
        let over = self
            .callsites
            .values_mut()
            .filter(|callsite| callsite.suppressed > 0 && callsite.second < now.as_secs());
        let mut suppressed: Vec<_> =
            over.map(|callsite| (callsite.name.clone(), std::mem::take(&mut callsite.suppressed))).collect();
        suppressed.sort();
        suppressed
    }
}

/// Formats the time of lines, in nanoseconds.
struct WallClock;

impl FormatTime for WallClock {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{}", realtime())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Captures written lines.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn take(&self) -> Vec<String> {
            let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
            text.lines().map(str::to_owned).collect()
        }
    }

    fn logged(options: LogOptions, what: impl FnOnce(&Log)) -> Vec<String> {
        let (log, lines) = (Log::new(&options), Lines::default());
        let writer = lines.clone();
        let subscriber = log.subscriber(options.format, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || what(&log));
        lines.take()
    }

    #[test]
    fn a_text_line_has_time_level_message_and_fields() {
        let lines = logged(LogOptions::default(), |_| tracing::info!(collector = "tor0", "running"));
        assert_eq!(lines.len(), 1, "{lines:?}");
        let rest = lines[0].split_once('Z').unwrap().1;
        assert_eq!(rest, "  INFO thalweg_daemon::log::tests: running collector=\"tor0\"");
    }

    #[test]
    fn a_json_line_is_one_flat_object() {
        let options = LogOptions { format: LogFormat::Json, ..LogOptions::default() };
        let lines = logged(options, |_| tracing::warn!(packets = 3, "dropped\nand \"quoted\""));
        let line: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!((&line["level"], &line["packets"]), (&"WARN".into(), &3.into()));
        assert_eq!(line["message"], "dropped\nand \"quoted\"");
    }

    #[test]
    fn the_level_can_change_at_run_time() {
        let lines = logged(LogOptions::default(), |log| {
            for level in [LogLevel::Info, LogLevel::Debug, LogLevel::Error] {
                log.set_level(level);
                tracing::debug!("debug at {level}");
                tracing::error!("error at {level}");
            }
        });
        let ends = ["error at info", "debug at debug", "error at debug", "error at error"];
        assert!(lines.iter().map(|line| line.rsplit_once(": ").unwrap().1).eq(ends), "{lines:?}");
    }

    #[test]
    fn each_callsite_has_its_own_rate_limit() {
        let options = LogOptions { lines_per_second: 3, ..LogOptions::default() };
        let lines = logged(options, |log| {
            // This takes at most two seconds.
            (0..1_000).for_each(|number| tracing::warn!(number, "again"));
            tracing::warn!("once");
            assert!((991..=997).contains(&log.suppressed()), "{}", log.suppressed());
        });
        assert!((4..=10).contains(&lines.len()), "{lines:?}");
        assert!(lines.last().unwrap().ends_with("once"));
    }

    #[test]
    fn suppressed_log_lines_are_reported_after_one_second() {
        static HERE: tracing::callsite::DefaultCallsite = {
            static METADATA: Metadata<'static> = tracing::metadata! {
                name: "here", target: "here", level: tracing::Level::INFO, fields: &[], callsite: &HERE,
                kind: tracing::metadata::Kind::EVENT
            };
            tracing::callsite::DefaultCallsite::new(&METADATA)
        };
        let metadata = tracing::Callsite::metadata(&HERE);
        let mut callsites = Callsites::new(2);
        let mut passed = |millis| callsites.admit(metadata, Duration::from_millis(millis));
        assert_eq!([5_000, 5_100, 5_200, 5_900, 6_000].map(&mut passed), [true, true, false, false, true]);
        assert_eq!(callsites.take_suppressed(Duration::from_millis(6_500)), []);
        let suppressed = callsites.take_suppressed(Duration::from_millis(7_000));
        assert!(matches!(&suppressed[..], [(name, 2)] if name.contains("log.rs")), "{suppressed:?}");
        assert_eq!(callsites.take_suppressed(Duration::from_millis(9_000)), []);
    }
}
