//! Subscriptions to PRCA reports: a file, and when which is due.
//!
//! A subscriber gets the report of the latest analysis, if it has slow transfers, and at most one a day. If only the webhook or only the
//! e-mail fails, that one is tried again, until the next report is due or the daemon ends.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thalweg_api::{
    Delivery, ReportSubject, TransferReportFile, TransferReports, TransferSubscription,
    TransferSubscriptions, UtcTime,
};
use thalweg_linux::durable_file;
use thalweg_wire::{Nanos, Timestamp};

use super::delivery::Undelivered;

/// Minimum time between two reports to a subscriber.
const DAY: Nanos = Nanos::from_secs(24 * 3_600);

/// Maximum number of subscriptions.
const MAX_SUBSCRIPTIONS: usize = 10_000;

/// Time after a failure before the next attempt.
const RETRY: Nanos = Nanos::from_secs(600);

/// What a subscription is to.
pub(super) type Key = (ReportSubject, String);

/// The subscriptions, and their file.
#[derive(Debug)]
pub(super) struct Subscriptions {
    path: PathBuf,
    entries: BTreeMap<Key, TransferSubscription>,
    /// Failures of this run: when, and where a report could not be delivered.
    failed: BTreeMap<Key, (Timestamp, Delivery)>,
}

impl Subscriptions {
    /// Reads the file, if it exists.
    ///
    /// # Errors
    /// If it cannot be read, or contains something else.
    pub(super) fn open(path: &Path) -> io::Result<Subscriptions> {
        let list = match fs::read_to_string(path) {
            Ok(text) => serde_json::from_str::<TransferSubscriptions>(&text).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                TransferSubscriptions { subscriptions: Vec::new() }
            }
            Err(error) => return Err(error),
        };
        let entries = list.subscriptions.into_iter().map(|of| ((of.subject, of.name.clone()), of));
        Ok(Subscriptions { path: path.to_owned(), entries: entries.collect(), failed: BTreeMap::new() })
    }

    /// Returns all subscriptions.
    pub(super) fn list(&self) -> TransferSubscriptions {
        TransferSubscriptions { subscriptions: self.entries.values().cloned().collect() }
    }

    /// Adds a subscription, or changes where it is delivered.
    ///
    /// # Errors
    /// If there are too many, or the file cannot be written.
    pub(super) fn set(&mut self, key: Key, delivery: Delivery) -> io::Result<()> {
        if self.entries.len() >= MAX_SUBSCRIPTIONS && !self.entries.contains_key(&key) {
            return Err(io::Error::other(format!("{MAX_SUBSCRIPTIONS} subscriptions, the maximum")));
        }
        let mut entries = self.entries.clone();
        let (subject, name) = key.clone();
        let new = || TransferSubscription {
            subject,
            name,
            delivery: Delivery::default(),
            delivered: None,
            made: None,
            failure: String::new(),
        };
        entries.entry(key.clone()).or_insert_with(new).delivery = delivery;
        self.write(entries)?;
        self.failed.remove(&key);
        Ok(())
    }

    /// Removes a subscription. Returns whether there was one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn remove(&mut self, key: &Key) -> io::Result<bool> {
        let mut entries = self.entries.clone();
        let existed = entries.remove(key).is_some();
        if existed {
            self.write(entries)?;
        }
        Ok(existed)
    }

    /// Returns the subscriptions that are due, with their reports. Each has only the deliveries to make.
    pub(super) fn due(
        &self,
        list: &TransferReports,
        now: Timestamp,
    ) -> Vec<(TransferSubscription, TransferReportFile)> {
        let report = |of: &TransferSubscription| {
            let is_subject =
                |report: &&TransferReportFile| (report.subject, &report.name) == (of.subject, &of.name);
            let latest =
                list.reports.iter().filter(is_subject).max_by_key(|report| (report.made, report.end));
            latest.filter(|report| report.slow > 0)
        };
        let passed = |since: Timestamp| Nanos(now.0.saturating_sub(since.0));
        let due = self.entries.iter().filter_map(|(key, of)| {
            let report = report(of)?;
            let is_new = of.made.is_none_or(|made| made < report.made);
            let is_due = is_new && of.delivered.is_none_or(|then| passed(then.0) >= DAY);
            let delivery = match self.failed.get(key) {
                Some((then, _)) if passed(*then) < RETRY => return None,
                Some((_, left)) if !is_due => Delivery {
                    webhook: of.delivery.webhook.clone().filter(|_| left.webhook.is_some()),
                    email: of.delivery.email.clone().filter(|_| left.email.is_some()),
                },
                None if !is_due => return None,
                _ => of.delivery.clone(),
            };
            Some((TransferSubscription { delivery, ..of.clone() }, report.clone()))
        });
        due.collect()
    }

    /// Records an attempt to make the deliveries of a subscription that was [due](Subscriptions::due). Failed ones are tried again.
    ///
    /// # Errors
    /// If the file cannot be written. This run knows of the attempt all the same.
    pub(super) fn record(
        &mut self,
        attempted: &TransferSubscription,
        made: UtcTime,
        now: Timestamp,
        result: Result<(), Undelivered>,
    ) -> io::Result<()> {
        let key = (attempted.subject, attempted.name.clone());
        // It may have been removed meanwhile.
        let Some(entry) = self.entries.get_mut(&key) else { return Ok(()) };
        let left = result.as_ref().err().map(|undelivered| &undelivered.left);
        if left != Some(&attempted.delivery) {
            (entry.delivered, entry.made) = (Some(UtcTime(now)), Some(made));
        }
        match result {
            Ok(()) => {
                entry.failure.clear();
                self.failed.remove(&key);
            }
            Err(Undelivered { left, failure }) => {
                entry.failure = failure;
                self.failed.insert(key, (now, left));
            }
        }
        self.save(&self.entries)
    }

    /// Replaces the file as a whole, then the entries.
    fn write(&mut self, entries: BTreeMap<Key, TransferSubscription>) -> io::Result<()> {
        self.save(&entries)?;
        self.entries = entries;
        Ok(())
    }

    fn save(&self, entries: &BTreeMap<Key, TransferSubscription>) -> io::Result<()> {
        let list = TransferSubscriptions { subscriptions: entries.values().cloned().collect() };
        let text = serde_json::to_vec_pretty(&list).map_err(io::Error::other)?;
        durable_file::replace(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> Timestamp {
        Timestamp(hours * 3_600_000_000_000)
    }

    fn list(made: Timestamp, slow: u64) -> TransferReports {
        let report = TransferReportFile {
            subject: ReportSubject::User,
            name: "alice".to_owned(),
            transfers: 9,
            slow,
            causes: [("streams".to_owned(), slow)].into(),
            start: UtcTime(at(0)),
            end: UtcTime(made),
            made: UtcTime(made),
            html: "transfers/p/a.html".to_owned(),
            json: "transfers/p/a.json".to_owned(),
        };
        TransferReports { made: UtcTime(made), outdated: false, left_out: 0, reports: vec![report] }
    }

    fn alice() -> Key {
        (ReportSubject::User, "alice".to_owned())
    }

    fn both() -> Delivery {
        let (webhook, email) = ("https://example.net/".to_owned(), "alice@example.net".to_owned());
        Delivery { webhook: Some(webhook), email: Some(email) }
    }

    fn failed(left: Delivery) -> Result<(), Undelivered> {
        Err(Undelivered { left, failure: "refused".to_owned() })
    }

    /// Makes the only delivery that is due, with this result. Returns where.
    fn deliver(
        subscriptions: &mut Subscriptions,
        list: &TransferReports,
        now: Timestamp,
        result: Result<(), Undelivered>,
    ) -> Delivery {
        let due = subscriptions.due(list, now);
        let [(subscription, report)] = &due[..] else { panic!("one is due, not {due:?}") };
        subscriptions.record(subscription, report.made, now, result).unwrap();
        subscription.delivery.clone()
    }

    #[test]
    fn a_subscriber_gets_a_new_report_at_most_once_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("subscriptions.json");
        let mut subscriptions = Subscriptions::open(&path).unwrap();
        let key = alice();
        let delivery = Delivery { webhook: None, ..both() };
        subscriptions.set(key.clone(), delivery.clone()).unwrap();
        subscriptions.set((ReportSubject::Host, "alice".to_owned()), Delivery::default()).unwrap();
        let due =
            |subscriptions: &Subscriptions, list: &TransferReports, now| subscriptions.due(list, now).len();
        assert_eq!(due(&subscriptions, &list(at(1), 0), at(2)), 0, "nothing was slow");
        let first = list(at(1), 3);
        deliver(&mut subscriptions, &first, at(2), failed(delivery));
        assert_eq!(due(&subscriptions, &first, at(2)), 0, "not at once again");
        deliver(&mut subscriptions, &first, at(3), Ok(()));
        let mut subscriptions = Subscriptions::open(&path).unwrap();
        assert_eq!(due(&subscriptions, &first, at(48)), 0, "the same analysis");
        let second = list(at(20), 1);
        assert_eq!(due(&subscriptions, &second, at(20)), 0, "the same day");
        assert_eq!(due(&subscriptions, &second, at(27)), 1);
        assert!(subscriptions.remove(&key).unwrap() && !subscriptions.remove(&key).unwrap());
        assert_eq!(Subscriptions::open(&path).unwrap().list().subscriptions.len(), 1);
    }

    #[test]
    fn only_the_delivery_that_failed_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut subscriptions = Subscriptions::open(&folder.path().join("subscriptions.json")).unwrap();
        subscriptions.set(alice(), both()).unwrap();
        let email = Delivery { webhook: None, ..both() };
        let first = list(at(1), 3);
        assert_eq!(deliver(&mut subscriptions, &first, at(2), failed(email.clone())), both());
        assert_eq!(deliver(&mut subscriptions, &first, at(3), failed(email.clone())), email);
        // The webhook has had its report of this day.
        let second = list(at(4), 2);
        assert_eq!(deliver(&mut subscriptions, &second, at(5), failed(email.clone())), email);
        assert_eq!(deliver(&mut subscriptions, &second, at(26), Ok(())), both());
        assert!(subscriptions.due(&second, at(60)).is_empty());
    }

    #[test]
    fn a_report_is_delivered_once_though_the_file_cannot_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut subscriptions = Subscriptions::open(&folder.path().join("subscriptions.json")).unwrap();
        subscriptions.set(alice(), both()).unwrap();
        // What is written first is in the way.
        fs::create_dir(folder.path().join("subscriptions.json.part")).unwrap();
        let first = list(at(1), 3);
        let due = subscriptions.due(&first, at(2));
        assert!(subscriptions.record(&due[0].0, first.made, at(2), Ok(())).is_err());
        assert!(subscriptions.due(&first, at(48)).is_empty());
        assert!(subscriptions.set(alice(), Delivery::default()).is_err());
        assert_eq!(subscriptions.list().subscriptions[0].delivery, both());
    }
}
