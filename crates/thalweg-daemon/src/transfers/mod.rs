//! Receives reports of agents on transfer hosts, and stores their rows as Parquet.
//!
//! Every report is stored exactly once, even if this process or the agent is killed at any time: an agent repeats a report until it is
//! acknowledged, and the [`ledger`] recognises repetitions. A report is acknowledged when its rows are on the disk.
//!
//! | file | contents |
//! |---|---|
//! | `ledger` | the latest report of each host, on disk |
//! | `rows` | conversion of reported rows to those of the store |
//! | [`reports`] | the reports that analyses have written into the store |
//! | `subscriptions`, [`delivery`] | subscriptions to these reports, and their delivery |
//! | `stores` | the stores of the four datasets |
//! | `rows_limit` | limit of rows of each host |

pub mod delivery;
mod ledger;
pub mod reports;
mod rows;
mod rows_limit;
mod stores;
mod subscriptions;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use thalweg_api::problem::{Code, Problem};
use thalweg_api::{
    AgentReport, Delivery, ReportAnswer, ReportSubject, TransferHost, TransferHostCounts,
    TransferSubscriptions, UtcTime, is_token_name,
};
use thalweg_linux::clock::realtime;
use thalweg_records::store::{Commit, Statistics, StoreError, StoreOptions};
use thalweg_wire::{Secret, Timestamp};
use thiserror::Error;

use crate::config::TransferOptions;
use crate::lifecycle::Lifecycle;
use delivery::{Deliverer, Undelivered};
use ledger::{Announced, Entry, Ledger};
use reports::Reports;
use rows::Origin;
use rows_limit::RowsLimit;
use stores::Stores;
use subscriptions::Subscriptions;

/// Interval of ticks of the stores.
const TICK: Duration = Duration::from_millis(100);

/// How long a request waits for the disk.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Name of the ledger within the spool of the store.
const LEDGER: &str = "transfer-reports";

/// Name of the list of subscriptions, as [`LEDGER`].
const SUBSCRIPTIONS: &str = "transfer-subscriptions.json";

/// Interval of checks whether a subscriber is due.
const DELIVERY_INTERVAL: Duration = Duration::from_secs(60);

/// Why the reception cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransfersError {
    /// A store cannot be opened.
    #[error("cannot store transfers: {0}")]
    Store(#[from] StoreError),
    /// The ledger or the list of subscriptions cannot be used.
    #[error("cannot use {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
}

/// The reception. Clones share it.
#[derive(Clone)]
pub struct Transfers {
    state: Arc<Mutex<State>>,
    reports: Reports,
    subscriptions: Arc<Mutex<Subscriptions>>,
    deliverer: Arc<Deliverer>,
}

struct State {
    options: TransferOptions,
    ledger: Ledger,
    stores: Stores,
    hosts: BTreeMap<String, Host>,
}

/// What this run knows about a host.
#[derive(Default)]
struct Host {
    limit: RowsLimit,
    clock_difference_us: Option<i64>,
    counts: TransferHostCounts,
    /// The announced report, on its way to the disk.
    pending: Option<Commit>,
}

/// What became of a report.
enum Outcome {
    Stored,
    Duplicate,
}

impl std::fmt::Debug for Transfers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Transfers")
    }
}

impl Transfers {
    /// Opens the stores, the ledger and the list of subscriptions. `mail_password` is that of the mail server.
    ///
    /// # Errors
    /// If a directory or file cannot be used.
    pub fn open(
        store: &StoreOptions,
        options: TransferOptions,
        mail_password: Option<Secret>,
    ) -> Result<Transfers, TransfersError> {
        let stores = Stores::open(store, realtime())?;
        let folder = store.directory.join("spool").join(&store.name);
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |source| TransfersError::File { path, source }
        };
        let path = folder.join(LEDGER);
        let ledger = Ledger::open(&path).map_err(failed(&path))?;
        let path = folder.join(SUBSCRIPTIONS);
        let subscriptions = Subscriptions::open(&path).map_err(failed(&path))?;
        let deliverer = Deliverer::new(options.mail.clone(), mail_password);
        let reports = Reports { store: store.directory.clone(), max_age: options.report_age };
        let state = State { options, ledger, stores, hosts: BTreeMap::new() };
        Ok(Transfers {
            state: Arc::new(Mutex::new(state)),
            reports,
            subscriptions: Arc::new(Mutex::new(subscriptions)),
            deliverer: Arc::new(deliverer),
        })
    }

    /// Does the periodic work of the stores until the daemon stops.
    pub(crate) fn run(&self, lifecycle: &Lifecycle) {
        while !lifecycle.is_stopping() {
            std::thread::sleep(TICK);
            self.lock().stores.tick(realtime());
        }
        let statistics = self.lock().stores.finish(realtime());
        let total = |count: fn(&Statistics) -> u64| statistics.iter().map(|(_, of)| count(of)).sum::<u64>();
        let (written, in_spool) = (total(|of| of.written), total(|of| of.in_spool));
        match in_spool {
            0 => tracing::info!(written, "rows of transfer hosts stored"),
            _ => tracing::warn!(
                written,
                in_spool,
                "storage of transfer hosts' rows incomplete: the rest follows after the next start"
            ),
        }
    }

    /// Stores a report, unless it is stored already. `token` is the name of the request's token. Waits for the disk.
    ///
    /// # Errors
    /// If the report is invalid or not from its host, the host exceeds its limit, or the disk does not take the rows. An agent sends it
    /// again if the problem may pass.
    pub fn report(&self, token: Option<&str>, report: AgentReport) -> Result<ReportAnswer, Problem> {
        check_name(&report.host)?;
        if let Some(token) = token.filter(|token| *token != report.host) {
            let text = format!("the token is that of {token:?}, the report that of {:?}", report.host);
            return Err(Problem::new(Code::Forbidden, text));
        }
        let mut state = self.lock();
        let now = realtime();
        state.report(report, now)
    }

    /// Returns the hosts that have reported.
    pub fn hosts(&self) -> Vec<TransferHost> {
        let state = self.lock();
        let host = |(name, entry): (&str, &Entry)| {
            let live = state.hosts.get(name);
            TransferHost {
                host: name.to_owned(),
                received: UtcTime(Timestamp((entry.received_us.max(0) as u64).saturating_mul(1_000))),
                queue: entry.queue.clone(),
                number: entry.stored,
                clock_difference_us: live.and_then(|live| live.clock_difference_us),
                counts: live.map(|live| live.counts).unwrap_or_default(),
            }
        };
        state.ledger.entries().map(host).collect()
    }

    /// Delivers reports to subscribers until the daemon stops.
    pub(crate) fn deliver(&self, lifecycle: &Lifecycle) {
        let mut next = Instant::now();
        while !lifecycle.is_stopping() {
            std::thread::sleep(TICK);
            if next <= Instant::now() {
                self.deliver_due(realtime(), lifecycle);
                next = Instant::now() + DELIVERY_INTERVAL;
            }
        }
    }

    fn deliver_due(&self, now: Timestamp, lifecycle: &Lifecycle) {
        // Without an analysis, nobody is due.
        let Ok(list) = self.reports.list(now) else { return };
        // The lock is not held while reports are delivered.
        let due = self.lock_subscriptions().due(&list, now);
        for (subscription, report) in due {
            if lifecycle.is_stopping() {
                return;
            }
            let delivery = &subscription.delivery;
            let result = match self.reports.both(&report, now) {
                Ok((html, json)) => self.deliverer.deliver(delivery, &report, &html, &json),
                Err(error) => Err(Undelivered { left: delivery.clone(), failure: error.to_string() }),
            };
            match &result {
                Ok(()) => tracing::info!(report = report.html, "report delivered"),
                Err(Undelivered { failure, .. }) => {
                    tracing::warn!(report = report.html, error = failure, "report not delivered");
                }
            }
            if let Err(error) = self.lock_subscriptions().record(&subscription, report.made, now, result) {
                tracing::error!(%error, "cannot write the list of subscriptions");
            }
        }
    }

    /// Returns all subscriptions.
    pub fn subscriptions(&self) -> TransferSubscriptions {
        self.lock_subscriptions().list()
    }

    /// Adds a subscription, or changes where it is delivered.
    ///
    /// # Errors
    /// If it cannot be delivered there, or cannot be stored.
    pub fn subscribe(&self, subject: ReportSubject, name: String, delivery: Delivery) -> Result<(), Problem> {
        if let Some(problem) = self.deliverer.problem(&delivery) {
            return Err(Problem::new(Code::BadBody, problem));
        }
        let result = self.lock_subscriptions().set((subject, name), delivery);
        result.map_err(|error| unavailable(&error))
    }

    /// Removes a subscription. Returns whether there was one.
    ///
    /// # Errors
    /// If that cannot be stored.
    pub fn unsubscribe(&self, subject: ReportSubject, name: String) -> Result<bool, Problem> {
        self.lock_subscriptions().remove(&(subject, name)).map_err(|error| unavailable(&error))
    }

    fn lock_subscriptions(&self) -> MutexGuard<'_, Subscriptions> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reports of the latest analysis.
    pub fn reports(&self) -> &Reports {
        &self.reports
    }

    /// Returns the counters of each dataset's store.
    pub fn statistics(&self) -> [(&'static str, Statistics); 4] {
        self.lock().stores.statistics()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn report(&mut self, report: AgentReport, now: Timestamp) -> Result<ReportAnswer, Problem> {
        let is_new = self.ledger.entry(&report.host).is_none();
        if is_new && self.ledger.entries().count() >= self.options.max_hosts {
            let text = format!("{} hosts report already (transfers.max_hosts)", self.options.max_hosts);
            return Err(Problem::new(Code::TooManyRequests, text).retry_after(Duration::from_secs(60)));
        }
        let (name, number) = (report.host.clone(), report.number);
        let received_us = (now.0 / 1_000) as i64;
        let host = self.hosts.entry(name.clone()).or_default();
        host.clock_difference_us = Some(received_us.saturating_sub(report.sent_us));
        let rows = rows::count(&report.rows) as u64;
        let result = match rows::problem(&report) {
            Some(problem) => Err(Problem::new(Code::BadBody, problem)),
            None => host.limit.take(rows, self.options.rows_per_second, now).map_err(|wait| {
                let text = "more rows than the host may report (transfers.rows_per_second)";
                Problem::new(Code::TooManyRequests, text).retry_after(wait)
            }),
        };
        let result = result.and_then(|()| self.store(report, received_us, now));
        let host = self.hosts.entry(name).or_default();
        match &result {
            Ok(Outcome::Stored) => {
                host.counts.reports += 1;
                host.counts.rows += rows;
            }
            Ok(Outcome::Duplicate) => host.counts.duplicates += 1,
            Err(problem) if problem.code == Code::Unavailable => {}
            Err(_) => host.counts.refused += 1,
        }
        result.map(|outcome| ReportAnswer {
            acknowledged: number,
            duplicate: matches!(outcome, Outcome::Duplicate),
        })
    }

    /// Stores a report, unless it is stored already.
    fn store(&mut self, report: AgentReport, received_us: i64, now: Timestamp) -> Result<Outcome, Problem> {
        let AgentReport { host: name, queue, number, rows, .. } = report;
        self.settle_pending(&name)?;
        let mut entry = self.ledger.entry(&name).cloned().unwrap_or_default();
        if entry.queue == queue && number <= entry.stored {
            return Ok(Outcome::Duplicate);
        }
        if let Some(announced) = &entry.announced
            && (announced.queue.as_str(), announced.number) == (queue.as_str(), number)
        {
            // An earlier run announced it, and may have stored it.
            let is_stored = self.stores.contains(&rows, &name, announced).map_err(|error| {
                unavailable(&format!("cannot check whether the report is stored: {error}"))
            })?;
            if is_stored {
                let announced = announced.clone();
                self.acknowledge(&name, &announced);
                return Ok(Outcome::Duplicate);
            }
        }
        let skipped = match entry.queue == queue {
            true => number.saturating_sub(entry.stored + 1),
            false => 0,
        };
        let announced = Announced { queue: queue.clone(), number, received_us };
        entry.announced = Some(announced.clone());
        self.ledger
            .set(&name, entry)
            .map_err(|error| unavailable(&format!("cannot write the ledger of reports: {error}")))?;
        let origin = Origin {
            received_us,
            reporter: name.as_str().into(),
            queue: queue.as_str().into(),
            report: number,
        };
        let commit = match self.stores.commit(rows, &origin, now, COMMIT_TIMEOUT) {
            Ok(commit) => commit,
            Err(error) => {
                self.ledger.forget_announced(&name);
                return Err(unavailable(&error));
            }
        };
        match commit.wait(COMMIT_TIMEOUT) {
            Some(Ok(())) => self.acknowledge(&name, &announced),
            Some(Err(error)) => {
                self.ledger.forget_announced(&name);
                return Err(unavailable(&error));
            }
            None => {
                self.hosts.entry(name).or_default().pending = Some(commit);
                return Err(unavailable(&"the disk did not take the rows in time"));
            }
        }
        self.hosts.entry(name).or_default().counts.missing += skipped;
        Ok(Outcome::Stored)
    }

    /// Waits for a report of this run that was not on the disk in time.
    fn settle_pending(&mut self, name: &str) -> Result<(), Problem> {
        let Some(pending) = self.hosts.get_mut(name).and_then(|host| host.pending.take()) else {
            return Ok(());
        };
        match pending.wait(COMMIT_TIMEOUT) {
            Some(Ok(())) => {
                if let Some(announced) = self.ledger.entry(name).and_then(|entry| entry.announced.clone()) {
                    self.acknowledge(name, &announced);
                }
                Ok(())
            }
            Some(Err(_)) => {
                self.ledger.forget_announced(name);
                Ok(())
            }
            None => {
                self.hosts.entry(name.to_owned()).or_default().pending = Some(pending);
                Err(unavailable(&"the disk did not take earlier rows in time"))
            }
        }
    }

    /// Records that an announced report is stored.
    fn acknowledge(&mut self, name: &str, announced: &Announced) {
        let Announced { queue, number, received_us } = announced.clone();
        let entry = Entry { queue, stored: number, received_us, announced: None };
        if let Err(error) = self.ledger.set_even_if_unwritten(name, entry) {
            // The rows are stored. After a crash, the announcement leads to them.
            tracing::warn!(host = name, %error, "cannot write the ledger of transfer reports");
        }
    }
}

/// Checks the name of a host.
fn check_name(name: &str) -> Result<(), Problem> {
    match is_token_name(name) {
        true => Ok(()),
        false => {
            let text = "invalid host name: expected 1 to 64 letters, digits and -_.@";
            Err(Problem::new(Code::BadBody, text))
        }
    }
}

fn unavailable(error: &impl ToString) -> Problem {
    Problem::new(Code::Unavailable, error.to_string()).retry_after(Duration::from_secs(5))
}

#[cfg(test)]
mod tests;
