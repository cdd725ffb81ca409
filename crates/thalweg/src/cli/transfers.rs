//! `thalweg transfers`: the agent and its hosts; the analyses are in Python.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use thalweg_api::client::ClientOptions;
use thalweg_api::{Delivery, ReportSubject};

use super::api::ApiArgs;
use super::exit_code::{ExitCode, UsageError};
use super::file_kind::FileKind;
use super::python;
use crate::transfers;

/// Explain why data transfers were slow.
///
/// An agent on each transfer host reads the logs of transfer programs, samples the host and its TCP connections, and reports to
/// `thalweg serve`, which stores the reports. The analyses `list`, `why`, `peers` and `report` compare transfers with their peers
/// on the same path, and name the cause of a low throughput. They are part of the Python package `thalweg`.
#[derive(Args, Debug)]
pub(super) struct TransfersArgs {
    #[command(subcommand)]
    command: TransfersCommand,
}

#[derive(Debug, Subcommand)]
enum TransfersCommand {
    Agent(AgentArgs),
    Hosts(HostsArgs),
    Subscribe(SubscribeArgs),
    /// List transfers.
    List(AnalysisArgs),
    /// Explain why a transfer was slow.
    Why(AnalysisArgs),
    /// Compare transfers of the same path.
    Peers(AnalysisArgs),
    /// Report on all transfers of a period, for each user and host.
    Report(AnalysisArgs),
}

/// Run the agent of a transfer host.
///
/// Reads logs of transfer programs, samples the host and its TCP connections each second of a transfer, and reports to the daemon.
/// Reports wait on the disk while the daemon cannot be reached. SIGTERM and Ctrl-C stop it.
#[derive(Args, Debug)]
struct AgentArgs {
    /// Configuration file (TOML). `thalweg config transfers-agent` prints an example.
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
}

/// List the hosts that report to a daemon.
#[derive(Args, Debug)]
struct HostsArgs {
    #[command(flatten)]
    api: ApiArgs,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Subscribe to the reports about a user or a host.
///
/// The daemon sends each new report with slow transfers by e-mail, to a webhook, or both, at most one a day. Without a user or a host, lists all
/// subscriptions. Needs a token with the scope `write`.
#[derive(Args, Debug)]
struct SubscribeArgs {
    /// Reports about all transfers.
    #[arg(long, conflicts_with_all = ["user", "host"])]
    all: bool,

    /// Reports about the transfers of this user.
    #[arg(long, value_name = "NAME", conflicts_with = "host")]
    user: Option<String>,

    /// Reports about the transfers of this host.
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Salt file of the agents, if they hide names of users: the name is hashed as they do.
    #[arg(long, value_name = "FILE", requires = "user")]
    salt_file: Option<PathBuf>,

    /// Send reports to this e-mail address.
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,

    /// Send reports as JSON to this URL.
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,

    /// Remove the subscription.
    #[arg(long, conflicts_with_all = ["email", "webhook"])]
    remove: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    api: ApiArgs,
}

/// An analysis in Python.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
struct AnalysisArgs {
    /// Arguments. `--help` lists them.
    #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl TransfersArgs {
    /// Runs the command.
    ///
    /// # Errors
    /// If a configuration is invalid, the agent or the daemon cannot be used, or no interpreter has the Python package.
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let (name, AnalysisArgs { arguments }) = match self.command {
            TransfersCommand::Agent(AgentArgs { config }) => {
                let result = transfers::agent::run(&config);
                return result
                    .map(|()| ExitCode::Complete)
                    .map_err(|error| FileKind::TransfersAgent.with_hint(error, &config));
            }
            TransfersCommand::Hosts(HostsArgs { api, json }) => {
                return super::print(transfers::hosts::text(&api.options(), json)?)
                    .map(|()| ExitCode::Complete);
            }
            TransfersCommand::Subscribe(args) => {
                let (options, request) = args.request()?;
                return super::print(transfers::subscribe::text(&options, request)?)
                    .map(|()| ExitCode::Complete);
            }
            TransfersCommand::List(args) => ("list", args),
            TransfersCommand::Why(args) => ("why", args),
            TransfersCommand::Peers(args) => ("peers", args),
            TransfersCommand::Report(args) => ("report", args),
        };
        let arguments: Vec<OsString> = [OsString::from(name)].into_iter().chain(arguments).collect();
        python::run("transfers", &arguments)
    }
}

impl SubscribeArgs {
    fn request(self) -> Result<(ClientOptions, transfers::subscribe::Request), UsageError> {
        let SubscribeArgs { all, user, host, salt_file, email, webhook, remove, json, api } = self;
        let subject =
            user.map(|user| (ReportSubject::User, user)).or(host.map(|host| (ReportSubject::Host, host)));
        let subject = subject.or(all.then(|| (ReportSubject::All, "*".to_owned())));
        let is_change = remove || email.is_some() || webhook.is_some();
        match (&subject, is_change) {
            (None, true) => return Err(UsageError("expected --user, --host or --all".to_owned())),
            (Some(_), false) => {
                return Err(UsageError("expected --email, --webhook or --remove".to_owned()));
            }
            _ => {}
        }
        let delivery = Delivery { webhook, email };
        Ok((api.options(), transfers::subscribe::Request { subject, salt_file, delivery, remove, json }))
    }
}
