//! The PRCA reports that `thalweg transfers report` has written into the store.
//!
//! This daemon analyses nothing itself. It serves what lies in `DIR/reports`, and says when there is nothing, or when it is old.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thalweg_api::{TransferReportFile, TransferReports};
use thalweg_wire::{Nanos, Timestamp};
use thiserror::Error;

/// Name of the directory of reports within that of the store.
const FOLDER: &str = "reports";

/// Name of the directory of reports on transfers within that.
const KIND: &str = "transfers";

/// Name of the list of reports.
const INDEX: &str = "index.json";

/// Maximum size of a report.
const MAX_BYTES: u64 = 32 << 20;

/// Why reports cannot be served.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportsError {
    /// No analysis has run.
    #[error("no analysis has been made yet: run `thalweg transfers report {} --store`, by hand or by a timer", .0.display())]
    None(PathBuf),
    /// There is no such report.
    #[error("unknown report {0:?}: GET /v1/transfers/reports lists them")]
    Unknown(String),
    /// A file cannot be read.
    #[error("cannot read {}: {problem}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
}

/// A report, as a page or as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// A page.
    Html(String),
    /// JSON.
    Json(String),
}

/// The reports of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reports {
    /// Directory of the store.
    pub store: PathBuf,
    /// Age from which reports are outdated.
    pub max_age: Nanos,
}

impl Reports {
    /// Returns the list of reports.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn list(&self, now: Timestamp) -> Result<TransferReports, ReportsError> {
        let path = self.store.join(FOLDER).join(INDEX);
        let text = match read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(ReportsError::None(self.store.clone()));
            }
            Err(error) => return Err(ReportsError::Unreadable { path, problem: error.to_string() }),
        };
        let mut list: TransferReports = serde_json::from_str(&text)
            .map_err(|error| ReportsError::Unreadable { path, problem: error.to_string() })?;
        list.outdated = now.0.saturating_sub(list.made.0.0) > self.max_age.0;
        Ok(list)
    }

    /// Returns a report of the list, by its period and name.
    ///
    /// # Errors
    /// If it is not in the list, or cannot be read.
    pub fn read(&self, period: &str, name: &str, now: Timestamp) -> Result<Report, ReportsError> {
        let file = format!("{KIND}/{period}/{name}");
        let list = self.list(now)?;
        let is_named = |report: &&TransferReportFile| report.html == file || report.json == file;
        // The list may have been written by another program: its names must stay within the directory.
        let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['/', '\\']);
        let found = list.reports.iter().find(is_named).filter(|_| is_plain(period) && is_plain(name));
        let Some(report) = found else { return Err(ReportsError::Unknown(format!("{period}/{name}"))) };
        self.read_file(report, &file)
    }

    /// Returns both forms of a report of the list, page and JSON.
    ///
    /// # Errors
    /// As [`read`](Reports::read).
    pub fn both(
        &self,
        report: &TransferReportFile,
        now: Timestamp,
    ) -> Result<(String, String), ReportsError> {
        let form = |file: &str| {
            let unknown = || ReportsError::Unknown(file.to_owned());
            let (period, name) = file
                .strip_prefix(KIND)
                .and_then(|rest| rest.strip_prefix('/')?.split_once('/'))
                .ok_or_else(unknown)?;
            self.read(period, name, now).map(|(Report::Html(text) | Report::Json(text))| text)
        };
        Ok((form(&report.html)?, form(&report.json)?))
    }

    fn read_file(&self, report: &TransferReportFile, file: &str) -> Result<Report, ReportsError> {
        let path = self.store.join(FOLDER).join(file);
        let text =
            read(&path).map_err(|error| ReportsError::Unreadable { path, problem: error.to_string() })?;
        Ok(if report.html == file { Report::Html(text) } else { Report::Json(text) })
    }
}

fn read(path: &Path) -> io::Result<String> {
    match fs::metadata(path)?.len() {
        bytes if bytes > MAX_BYTES => {
            Err(io::Error::other(format!("{bytes} bytes, at most {MAX_BYTES} are served")))
        }
        _ => fs::read_to_string(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> String {
        let report = |name: &str, html: &str, json: &str| {
            format!(
                r#"{{"subject":"host","name":"{name}","start":"2026-11-27T00:00:00Z","end":"2026-11-28T00:00:00Z",
                "made":"2026-11-28T20:00:00Z","transfers":7,"slow":2,"causes":{{"streams":2}},"html":"{html}","json":"{json}"}}"#
            )
        };
        let reports = [
            report("dtn1", "transfers/p/host-dtn1.html", "transfers/p/host-dtn1.json"),
            report("evil", "transfers/../secret", "transfers/p/.."),
        ];
        format!(
            r#"{{"version":1,"made":"2026-11-28T20:00:00Z","left_out":0,"reports":[{}]}}"#,
            reports.join(",")
        )
    }

    #[test]
    fn reports_are_served_by_their_names_in_the_list() {
        let folder = tempfile::tempdir().unwrap();
        let reports = Reports { store: folder.path().to_owned(), max_age: Nanos::from_secs(3_600) };
        let made: thalweg_api::UtcTime = "2026-11-28T20:00:00Z".parse().unwrap();
        let text = reports.list(made.0).unwrap_err().to_string();
        assert!(text.starts_with("no analysis has been made yet: run `thalweg transfers report /"), "{text}");
        fs::create_dir_all(folder.path().join("reports/transfers/p")).unwrap();
        fs::write(folder.path().join("reports/index.json"), list()).unwrap();
        fs::write(folder.path().join("reports/transfers/p/host-dtn1.html"), "<html>").unwrap();
        fs::write(folder.path().join("reports/secret"), "secret").unwrap();
        let found = reports.list(made.0).unwrap();
        assert!(!found.outdated);
        assert!(reports.list(made.0 + Nanos::from_secs(7_200)).unwrap().outdated);
        assert_eq!(reports.read("p", "host-dtn1.html", made.0).unwrap(), Report::Html("<html>".to_owned()));
        assert!(matches!(reports.read("p", "host-dtn1.json", made.0), Err(ReportsError::Unreadable { .. })));
        assert!(matches!(reports.both(&found.reports[0], made.0), Err(ReportsError::Unreadable { .. })));
        fs::write(folder.path().join("reports/transfers/p/host-dtn1.json"), "{}").unwrap();
        assert_eq!(reports.both(&found.reports[0], made.0).unwrap(), ("<html>".to_owned(), "{}".to_owned()));
        for (period, name) in
            [("..", "secret"), ("p", ".."), (".", "index.json"), ("", ""), ("p", "other.html")]
        {
            let read = reports.read(period, name, made.0);
            assert!(matches!(read, Err(ReportsError::Unknown(_))), "{period}/{name}");
        }
        fs::write(folder.path().join("reports/index.json"), "{").unwrap();
        assert!(matches!(reports.list(made.0), Err(ReportsError::Unreadable { .. })));
    }
}
