//! Exit codes.

use std::error::Error;
use std::fmt::Write;
use std::{io, process};

use thalweg_api::client::ClientError;
use thalweg_capture::CaptureError;
use thalweg_capture::dpdk::DpdkError;
use thalweg_capture::filter::FilterError;
use thalweg_capture::live::LiveError;
use thalweg_dataplane::DataplaneError;
use thalweg_experiment::ExperimentError;
use thalweg_experiment::sweep::SweepError;
use thalweg_measure::tasks::PlanError;
#[cfg(target_os = "linux")]
use thalweg_realtime::endpoint::{HostTableError, ProcessError};
use thalweg_records::collect::CollectError;
use thalweg_records::store::StoreError;
#[cfg(target_os = "linux")]
use thalweg_scenarios::ScenarioError;
use thalweg_watch::in_kernel::InKernelError;
use thalweg_watch::{InputError, WatchError};

use crate::collect::RequestError;
use crate::config::{ConfigError, OptionsError};
use crate::watch::Outcome;
use thalweg_synth::trace::SynthOptionsError;

/// A command line, or a file that configures the run, that cannot be used; with the reasons, one per line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub(super) String);

/// Exit code of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Success.
    Complete = 0,
    /// An input, output, interface or daemon could not be used.
    Failed = 1,
    /// Invalid command line, or an invalid or unreadable configuration, experiment or topology file.
    Usage = 2,
    /// An input was truncated or skipped.
    CutShort = 3,
}

impl ExitCode {
    /// All exit codes, in order.
    pub const ALL: [ExitCode; 4] =
        [ExitCode::Complete, ExitCode::Failed, ExitCode::Usage, ExitCode::CutShort];

    /// Returns the exit codes of a command, or of the program.
    pub(super) fn of_command(command: Option<&str>) -> &'static [ExitCode] {
        match command {
            None | Some("watch" | "collect") => &ExitCode::ALL,
            Some(_) => &[ExitCode::Complete, ExitCode::Failed, ExitCode::Usage],
        }
    }

    /// Returns the meaning for users.
    pub const fn meaning(self) -> &'static str {
        match self {
            ExitCode::Complete => "Success.",
            ExitCode::Failed => {
                "Failure: an input, output, interface or daemon could not be used. The message gives the reason."
            }
            ExitCode::Usage => {
                "Invalid command line, or a configuration, experiment or topology file that is invalid or cannot be read. Nothing was started."
            }
            ExitCode::CutShort => {
                "Incomplete input: a capture file ended inside a record, one of several could not be read, or a captured interface was deleted. Everything else is in the results."
            }
        }
    }

    /// Returns the exit code of an error. A closed output pipe (`thalweg ... | head`) is not a failure.
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
                || cause.is::<UsageError>()
                || is_invalid_filter(cause)
                || is_invalid_topology(cause)
                || is_invalid_source(cause)
                || is_invalid_in_kernel(cause)
                || is_invalid_endpoint(cause)
                || cause.is::<SweepError>()
                || cause.is::<thalweg_daemon::config::ConfigError>()
                || cause.is::<thalweg_http::access::AccessError>()
                || cause.is::<thalweg_transfers::settings::SettingsError>()
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

/// Returns the exit code of a child process: its own, or 128 plus the number of the signal that ended it, as in a shell.
#[cfg(unix)]
pub(super) fn of_child(status: process::ExitStatus) -> i32 {
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    status.code().or(signal.map(|signal| 128 + signal)).unwrap_or(ExitCode::Failed as i32)
}

/// Whether the error is a capture filter that libpcap rejects. It can compile a filter only when the source is open.
fn is_invalid_filter(cause: &(dyn Error + 'static)) -> bool {
    use CaptureError::{Dpdk, Filter, Live};
    matches!(
        cause.downcast_ref(),
        Some(WatchError::Input(InputError::Capture(
            Filter(FilterError::Expression { .. })
                | Live(LiveError::Filter(FilterError::Expression { .. }))
                | Dpdk(DpdkError::Filter(FilterError::Expression { .. }))
        )))
    )
}

/// Whether the error is a combination of sources that `watch` cannot measure, or a name of none.
fn is_invalid_source(cause: &(dyn Error + 'static)) -> bool {
    use InputError::{Mixed, NotASource, Replay};
    let Some(WatchError::Input(error)) = cause.downcast_ref() else { return false };
    matches!(
        error,
        Mixed { .. }
            | NotASource { .. }
            | Replay { .. }
            | InputError::Capture(CaptureError::Dpdk(DpdkError::BadDevice { .. }))
    )
}

/// Whether the error is a combination of tasks and options that cannot be counted in the kernel.
fn is_invalid_in_kernel(cause: &(dyn Error + 'static)) -> bool {
    use InKernelError::{Dataplane, NoTasks, Sampling, Sources, Task, Tasks};
    match cause.downcast_ref() {
        Some(WatchError::InKernel(NoTasks | Sampling | Sources { .. } | Task { .. } | Tasks { .. })) => true,
        Some(WatchError::InKernel(Dataplane(error))) => {
            matches!(error, DataplaneError::PinnedDiffers { .. } | DataplaneError::Counters { .. })
        }
        _ => false,
    }
}

/// Whether the error is a topology file that a lab cannot use.
#[cfg(target_os = "linux")]
fn is_invalid_topology(cause: &(dyn Error + 'static)) -> bool {
    matches!(cause.downcast_ref(), Some(ScenarioError::Topology { .. } | ScenarioError::TopologyFile(_)))
}

/// Whether the error is an invalid host table, or an option that an endpoint cannot have.
#[cfg(target_os = "linux")]
fn is_invalid_endpoint(cause: &(dyn Error + 'static)) -> bool {
    cause.is::<HostTableError>()
        || matches!(cause.downcast_ref(), Some(ProcessError::Options(_) | ProcessError::NotListed { .. }))
}

#[cfg(not(target_os = "linux"))]
fn is_invalid_endpoint(_: &(dyn Error + 'static)) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn is_invalid_topology(_: &(dyn Error + 'static)) -> bool {
    false
}

/// Whether the error is a closed output pipe.
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
        "\nMessages go to standard error and start with `thalweg: `. With code 3, a warning names the truncated input and the\n\
         position. Everything before it is measured and reported.\n\n\
         If the reader closes the output early (`thalweg watch --json trace.pcap | head`), the program ends with code 0.\n\
         An interrupt (Ctrl-C, SIGTERM) stops the measurement and writes the report as at the end of input, with code 0.\n\
         `serve` then ends with code 0, or with code 1 if redirected flows could not be released: rules may remain in the router.\n\
         `synth` ends with code 128 plus the signal number and removes the file that is not complete.\n\
         A second interrupt ends the program at once, with code 128 plus the signal number.\n\n\
         `thalweg lab exec` ends with the exit code of the command that it ran, or 128 plus the number of the signal that\n\
         ended it. With code 3, only `thalweg watch` and `thalweg collect` end.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, anyhow};

    #[test]
    fn a_closed_pipe_is_not_a_failure() {
        let error =
            Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("cannot write").unwrap_err();
        assert_eq!(ExitCode::of(&error), ExitCode::Complete);
        let error =
            Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull)).context("cannot write").unwrap_err();
        assert_eq!(ExitCode::of(&error), ExitCode::Failed);
    }

    #[cfg(unix)]
    #[test]
    fn the_exit_code_of_a_child_is_its_own_or_that_of_its_signal() {
        let code =
            |script: &str| of_child(process::Command::new("sh").args(["-c", script]).status().unwrap());
        assert_eq!(["exit 0", "exit 7", "kill -TERM $$"].map(code), [0, 7, 143]);
    }

    #[test]
    fn invalid_options_have_their_own_code() {
        let wrong = OptionsError::NoEffect { flag: "--tracks".to_owned(), needs: "another" };
        assert_eq!(ExitCode::of(&anyhow!(wrong).context("cannot watch")), ExitCode::Usage);
        assert_eq!(ExitCode::of(&anyhow!("no such interface")), ExitCode::Failed);
    }
}
