//! Sends reports to the daemon, in order, one at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use thalweg_api::client::back_off::BackOff;
use thalweg_api::client::{Client, RequestError};
use thalweg_api::{AgentReport, ReportAnswer};

use crate::queue::{Queue, QueueError};

/// The path of reports.
const PATH: &str = "/v1/transfers/agent-reports";

/// Waiting time after a failure that only an operator can mend, such as an unknown token.
const REFUSED_WAIT: Duration = Duration::from_secs(60);

/// Sends reports.
#[derive(Debug)]
pub struct Pusher {
    client: Client,
    host: String,
    back_off: BackOff,
    /// The latest failure, so that it is logged once.
    failure: Option<String>,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// A report was sent or put aside; there may be another.
    Progress,
    /// There is no report.
    Idle,
    /// It failed: wait for this time.
    Failed(Duration),
}

/// The state of the connection to the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PushState {
    /// Why the latest attempt failed; empty if it did not.
    pub failure: String,
}

impl Pusher {
    /// Creates a pusher of a host's reports.
    pub fn new(client: Client, host: String) -> Pusher {
        Pusher { client, host, back_off: BackOff::default(), failure: None }
    }

    /// Returns the state of the connection.
    pub fn state(&self) -> PushState {
        PushState { failure: self.failure.clone().unwrap_or_default() }
    }

    /// Sends the oldest report. Does not hold the queue while it waits for the daemon. `sent_us` returns the wall clock in microseconds.
    ///
    /// # Errors
    /// If a file of the queue cannot be removed.
    pub fn push(&mut self, queue: &Mutex<Queue>, sent_us: impl Fn() -> i64) -> Result<Attempt, QueueError> {
        let first = lock(queue).first();
        let (number, rows) = match first {
            Ok(Some(first)) => first,
            Ok(None) => return Ok(Attempt::Idle),
            Err(error) => {
                let mut queue = lock(queue);
                tracing::error!(%error, "report put aside");
                if let Some(number) = queue.first_number() {
                    queue.reject(number)?;
                }
                return Ok(Attempt::Progress);
            }
        };
        let id = lock(queue).id().to_owned();
        let report = AgentReport { host: self.host.clone(), queue: id, number, sent_us: sent_us(), rows };
        let text = match serde_json::to_string(&report) {
            Ok(text) => text,
            Err(error) => {
                tracing::error!(%error, number, "report put aside");
                lock(queue).reject(number)?;
                return Ok(Attempt::Progress);
            }
        };
        let answer = self.client.post(PATH, &text).and_then(|answer| {
            serde_json::from_str::<ReportAnswer>(&answer).map_err(|error| RequestError::InvalidResponse {
                path: PATH.to_owned(),
                problem: error.to_string(),
            })
        });
        match answer {
            Ok(answer) if answer.acknowledged >= number => {
                lock(queue).acknowledge(number)?;
                if self.failure.take().is_some() {
                    tracing::info!(daemon = self.client.base(), "reports are accepted again");
                }
                self.back_off = BackOff::default();
                Ok(Attempt::Progress)
            }
            Ok(answer) => {
                let acknowledged = answer.acknowledged;
                Ok(self.failed(format!("report {number} is answered by {acknowledged}"), REFUSED_WAIT))
            }
            Err(RequestError::Refused { status: 400 | 413 | 422, detail, .. }) => {
                tracing::error!(number, %detail, "report refused, and put aside");
                lock(queue).reject(number)?;
                Ok(Attempt::Progress)
            }
            Err(error) => {
                let wait = match &error {
                    RequestError::Refused { status: 401 | 403 | 404 | 409, .. } => REFUSED_WAIT,
                    error => self.back_off.next(error),
                };
                Ok(self.failed(error.to_string(), wait))
            }
        }
    }

    fn failed(&mut self, failure: String, wait: Duration) -> Attempt {
        if self.failure.as_ref() != Some(&failure) {
            tracing::warn!(daemon = self.client.base(), %failure, "reports wait");
        }
        self.failure = Some(failure);
        Attempt::Failed(wait)
    }
}

/// Locks a queue. A thread that panicked leaves it as its files are.
pub(crate) fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    use thalweg_api::client::ClientOptions;
    use thalweg_api::{HostSample, ReportRows};

    use super::*;

    /// Answers one request for each of these statuses and bodies; returns the bodies of the requests.
    fn serve(answers: &'static [(u16, &'static str)]) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let thread = std::thread::spawn(move || {
            answers
                .iter()
                .map(|(status, body)| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let mut length = 0;
                    loop {
                        let mut line = String::new();
                        reader.read_line(&mut line).unwrap();
                        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap();
                        }
                        if line.trim().is_empty() {
                            break;
                        }
                    }
                    let mut request = vec![0; length];
                    reader.read_exact(&mut request).unwrap();
                    write!(
                        stream,
                        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                        body.len()
                    )
                    .unwrap();
                    String::from_utf8(request).unwrap()
                })
                .collect()
        });
        (address, thread)
    }

    #[test]
    fn a_report_is_repeated_until_it_is_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Mutex::new(Queue::open(folder.path(), 1 << 20).unwrap());
        for time_us in [1, 2] {
            let sample = HostSample { time_us, ..HostSample::default() };
            lock(&queue).push_samples(ReportRows::HostMetrics(vec![sample])).unwrap();
        }
        let (address, server) = serve(&[
            (503, "{}"),
            (200, "{\"acknowledged\":1,\"duplicate\":false}"),
            (400, "{\"detail\":\"bad\"}"),
        ]);
        let client = Client::new(&ClientOptions { api: address, ..ClientOptions::default() }).unwrap();
        let mut pusher = Pusher::new(client, "dtn".to_owned());
        let mut push = || pusher.push(&queue, || 9).unwrap();
        assert!(matches!(push(), Attempt::Failed(_)));
        assert_eq!([push(), push(), push()], [Attempt::Progress, Attempt::Progress, Attempt::Idle]);
        let requests = server.join().unwrap();
        assert_eq!(requests[0], requests[1], "the same report again");
        assert!(requests[0].starts_with("{\"host\":\"dtn\",\"queue\":\""));
        assert!(requests[2].contains("\"number\":2,\"sent_us\":9"));
        let counts = lock(&queue).counts();
        assert_eq!((counts.acknowledged, counts.rejected), (1, 1));
    }
}
