//! What the program's exit code says.

use std::fmt::Write;
use std::{io, process};

use thalweg_api::client::ClientError;
use thalweg_experiment::ExperimentError;
use thalweg_experiment::sweep::SweepError;
use thalweg_measure::tasks::PlanError;
use thalweg_records::collect::CollectError;
use thalweg_records::store::StoreError;

use crate::collect::RequestError;
use crate::config::{ConfigError, OptionsError};
use crate::watch::Outcome;
use thalweg_synth::trace::SynthOptionsError;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// See [`ExitCode::meaning`], here and below.
    Complete = 0,
    /// It could not start, or not go on.
    Failed = 1,
    /// The command line or the configuration file is wrong.
    Usage = 2,
    /// An input was cut short.
    CutShort = 3,
}

impl ExitCode {
    /// All of them, in order.
    pub const ALL: [ExitCode; 4] =
        [ExitCode::Complete, ExitCode::Failed, ExitCode::Usage, ExitCode::CutShort];

    /// What it means, for whoever runs the program.
    pub const fn meaning(self) -> &'static str {
        match self {
            ExitCode::Complete => "All went well.",
            ExitCode::Failed => "It could not start, or could not go on; the message says why.",
            ExitCode::Usage => "The command line or the configuration file is wrong; nothing was started.",
            ExitCode::CutShort => "Cut short: a file ended inside a record, or an interface was deleted.",
        }
    }

    /// The code for an error that ended the program. A reader that has had enough (`thalweg ... | head`) is no
    /// failure.
    pub fn of(error: &anyhow::Error) -> ExitCode {
        let mut causes = error.chain();
        if is_broken_pipe(error) {
            ExitCode::Complete
        } else if causes.any(|cause| {
            cause.is::<ConfigError>()
                || cause.is::<OptionsError>()
                || cause.is::<PlanError>()
                || cause.is::<SynthOptionsError>()
                || cause.is::<thalweg_synth::records::OptionsError>()
                || cause.is::<ExperimentError>()
                || cause.is::<super::check::CheckError>()
                || cause.is::<SweepError>()
                || cause.is::<thalweg_daemon::config::ConfigError>()
                || cause.is::<thalweg_http::access::AccessError>()
                || cause.is::<ClientError>()
                || cause.is::<RequestError>()
                || matches!(
                    cause.downcast_ref(),
                    Some(
                        CollectError::NoCertificate { .. } | CollectError::Store(StoreError::Options { .. })
                    )
                )
        }) {
            ExitCode::Usage
        } else {
            ExitCode::Failed
        }
    }
}

/// Whether the reader of the output went away.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_broken = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref().is_some_and(is_broken))
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        match outcome {
            Outcome::Complete => ExitCode::Complete,
            Outcome::CutShort => ExitCode::CutShort,
        }
    }
}

impl From<ExitCode> for process::ExitCode {
    fn from(code: ExitCode) -> process::ExitCode {
        (code as u8).into()
    }
}

/// `docs/reference/exit-codes.md`.
pub fn reference() -> String {
    let mut page = String::from(
        "# Exit codes\n\n<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg --test it reference -->\n\n| code | meaning |\n|---|---|\n",
    );
    for code in ExitCode::ALL {
        let _ = writeln!(page, "| {} | {} |", code as u8, code.meaning());
    }
    page.push_str(
        "\nMessages go to standard error and begin with `thalweg: `; with code 3 a warning says which input was cut\n\
         short, and where. Everything before that is measured and reported.\n\n\
         A reader that closes the output early (`thalweg watch --json trace.pcap | head`) ends the program with code 0.\n\
         An interrupt (Ctrl-C, SIGTERM) stops the measurement, and the report is written as at the end of the input,\n\
         with code 0; a second one ends the program at once, with 128 and the number of the signal.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn a_reader_that_goes_away_is_no_failure() {
        let error =
            Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("cannot write").unwrap_err();
        assert_eq!(ExitCode::of(&error), ExitCode::Complete);
        let error =
            Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull)).context("cannot write").unwrap_err();
        assert_eq!(ExitCode::of(&error), ExitCode::Failed);
    }

    #[test]
    fn wrong_options_are_told_from_failures() {
        let wrong = OptionsError::NoEffect { flag: "--tracks".to_owned(), needs: "another" };
        assert_eq!(ExitCode::of(&anyhow!(wrong).context("cannot watch")), ExitCode::Usage);
        assert_eq!(ExitCode::of(&anyhow!("no such interface")), ExitCode::Failed);
    }
}
