//! Isolation by HTTP requests to a controller of the operator (the heavy-hitter dissertation, University of Virginia 2018, section
//! 3.2.2: the northbound interface of an SDN controller).
//!
//! Each redirection and release is a POST with a JSON body: `action` (`redirect` or `release`), `redirection`, `protocol`,
//! `src`, `src_port`, `dst` and `dst_port`. A status of 200 to 299 is success. Redirects are not followed. At the start, and when
//! the daemon stops, `{"action":"reset"}` asks to remove what an earlier run left.
//!
//! Without a response, or if a gateway has none (502 and 504), nobody knows whether the flow is redirected.

use std::io::ErrorKind;
use std::time::Duration;

use thalweg_control::isolate::{Command, Input};
use thalweg_wire::web_url::hide_secrets_within;
use thalweg_wire::{Secret, Timestamp, WebUrl};
use ureq::{Agent, Error, Timeout};

use super::calls::{Call, CallError, Caller, Calls, RESET};
use super::{Isolator, IsolatorCounters};

/// Maximum length of a response in an error.
const MAX_MESSAGE: usize = 400;

/// Options of isolation by HTTP requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookOptions {
    /// The URL. Certificates are verified by the public CAs. A user and a password in it become basic authentication.
    pub url: WebUrl,
    /// The token in the header `Authorization: Bearer`, if any.
    pub token: Option<Secret>,
    /// Maximum duration of a request.
    pub timeout: Duration,
    /// Maximum number of simultaneous requests.
    pub concurrency: usize,
}

/// Isolation by HTTP requests.
pub struct Webhook(Calls<Endpoint>);

/// The controller of the operator.
struct Endpoint {
    agent: Agent,
    options: WebhookOptions,
}

impl Webhook {
    /// Creates the isolator. It sends nothing before [`Isolator::start`].
    pub fn new(options: WebhookOptions) -> Webhook {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(options.timeout))
            .build();
        let concurrency = options.concurrency;
        Webhook(Calls::new(Endpoint { agent: config.new_agent(), options }, concurrency))
    }
}

impl Isolator for Webhook {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn start(&mut self) -> Result<(), String> {
        self.0.start()
    }

    fn execute(&mut self, command: Command, _now: Timestamp) -> Option<Input> {
        self.0.execute(command)
    }

    fn answers(&mut self) -> Vec<Input> {
        self.0.answers()
    }

    fn maintain(&mut self, _now: Timestamp) -> Result<Vec<String>, String> {
        self.0.check()
    }

    fn prepare_stop(&mut self) {
        self.0.prepare_stop();
    }

    fn stop(&mut self) -> Result<(), String> {
        self.0.stop()
    }

    fn counters(&self) -> IsolatorCounters {
        self.0.counters()
    }
}

impl Endpoint {
    /// Sends a request and waits for its response.
    ///
    /// # Errors
    /// A message, if there is no response in time, or it is no success. It contains no secret, even if the server repeats the token.
    fn post(&self, body: &str) -> Result<(), CallError> {
        let request = self.agent.post(self.options.url.expose()).header("content-type", "application/json");
        let request = match &self.options.token {
            Some(token) => request.header("authorization", format!("Bearer {}", token.expose())),
            None => request,
        };
        let mut response = request.send(body).map_err(|error| self.explain(&error))?;
        match response.status() {
            status if status.is_success() => Ok(()),
            status => {
                let text = response.body_mut().with_config().limit(1 << 20).read_to_string();
                let text = self.without_token(&text.unwrap_or_default());
                let text: String = text.trim().chars().take(MAX_MESSAGE).collect();
                let error = format!("status {status}{}{text}", if text.is_empty() { "" } else { ": " });
                // A gateway has no answer of the server behind it.
                Err(match status.as_u16() {
                    502 | 504 => CallError::Unknown(error),
                    _ => CallError::Failed(error),
                })
            }
        }
    }

    fn without_token(&self, text: &str) -> String {
        let text = hide_secrets_within(text);
        match &self.options.token {
            Some(token) => text.replace(token.expose(), "***"),
            None => text,
        }
    }

    /// Says what happened to a request without a response. Contains no secret.
    fn explain(&self, error: &Error) -> CallError {
        let (timeout, text) = (self.options.timeout, hide_secrets_within(&error.to_string()));
        match error {
            Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                CallError::Failed(format!("no connection after {timeout:?}"))
            }
            Error::Timeout(_) => CallError::Unknown(format!("timed out after {timeout:?}")),
            Error::Io(error) => match error.kind() {
                ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe => CallError::Unknown("the server closed the connection".to_owned()),
                ErrorKind::TimedOut | ErrorKind::WouldBlock => {
                    CallError::Unknown(format!("timed out after {timeout:?}"))
                }
                ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                    CallError::Failed(text)
                }
                _ => CallError::Unknown(text),
            },
            Error::HostNotFound | Error::BadUri(_) | Error::ConnectionFailed | Error::Tls(_) => {
                CallError::Failed(text)
            }
            _ => CallError::Unknown(text),
        }
    }
}

impl Caller for Endpoint {
    fn call(&self, call: &Call) -> Result<(), CallError> {
        self.post(&call.json())
    }

    fn reset(&self) -> Result<(), String> {
        let done = self.post(RESET);
        done.map_err(|error| format!("reset at {}: {}", self.options.url, error.into_message()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::sync::mpsc::{Receiver, channel};

    use thalweg_control::isolate::RedirectionId;

    use super::*;

    /// Starts a server that answers with these statuses, one per connection. Returns its URL and the requests: first line, the
    /// value of `authorization`, and body.
    fn server(statuses: &'static [&'static str]) -> (String, Receiver<[String; 3]>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/flows", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for status in statuses {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let (mut lines, mut line) = (Vec::new(), String::new());
                while reader.read_line(&mut line).unwrap() > 2 {
                    lines.push(std::mem::take(&mut line).trim().to_owned());
                }
                let field = |name: &str| {
                    lines.iter().find_map(|line| line.to_lowercase().starts_with(name).then(|| line.clone()))
                };
                let length = field("content-length:").unwrap();
                let mut body = vec![0; length[15..].trim().parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                let token = field("authorization:").unwrap_or_default();
                sender.send([lines[0].clone(), token, String::from_utf8(body).unwrap()]).unwrap();
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nwhy\n")
                    .unwrap();
            }
        });
        (url, requests)
    }

    fn webhook(url: String) -> Webhook {
        let (url, token) = (url.parse().unwrap(), Some(Secret::new("secret")));
        Webhook::new(WebhookOptions { url, token, timeout: Duration::from_secs(60), concurrency: 1 })
    }

    fn answer(webhook: &mut Webhook) -> Input {
        loop {
            match webhook.answers().pop() {
                Some(answer) => return answer,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn a_redirection_is_a_request_with_the_flow() {
        let (url, requests) = server(&["200 OK", "204 No Content", "409 Conflict", "302 Found"]);
        let mut webhook = webhook(url);
        webhook.start().unwrap();
        let line = "POST /flows HTTP/1.1".to_owned();
        let [first, _, body] = requests.recv().unwrap();
        assert_eq!((first, body.as_str()), (line.clone(), RESET));
        let key = "tcp 10.0.0.1:5001 > 10.0.0.2:443".parse().unwrap();
        assert!(webhook.execute(Command::Redirect(RedirectionId(7), key), Timestamp(0)).is_none());
        assert!(matches!(answer(&mut webhook), Input::Redirected(RedirectionId(7))));
        let [first, token, body] = requests.recv().unwrap();
        assert_eq!((first, token.to_lowercase().as_str()), (line, "authorization: bearer secret"));
        let expected = "{\"action\":\"redirect\",\"redirection\":7,\"protocol\":\"tcp\",\"src\":\"10.0.0.1\",\"src_port\":5001,\
                        \"dst\":\"10.0.0.2\",\"dst_port\":443}\n";
        assert_eq!(body, expected);
        let release = Command::Release { id: RedirectionId(7), key, if_packets: None };
        for status in ["status 409 Conflict: why", "status 302 Found: why"] {
            webhook.execute(release.clone(), Timestamp(0));
            let Input::ReleaseFailed(RedirectionId(7), error) = answer(&mut webhook) else {
                panic!("it failed")
            };
            assert_eq!(error, status);
        }
        assert_eq!((webhook.counters().calls, webhook.counters().failed_calls), (4, 2));
    }

    #[test]
    fn a_request_without_a_response_has_an_unknown_result() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/flows", listener.local_addr().unwrap()).parse().unwrap();
        let token = None;
        let timeout = Duration::from_secs(1);
        let mut webhook = Webhook::new(WebhookOptions { url, token, timeout, concurrency: 1 });
        // The first connection has one response; the second is read and closed; the third stays open.
        let server = std::thread::spawn(move || {
            let mut open = Vec::new();
            for number in 0..3 {
                let (mut stream, _) = listener.accept().unwrap();
                let mut text = Vec::new();
                let mut bytes = [0; 512];
                while !text.ends_with(b"}\n") {
                    let length = stream.read(&mut bytes).unwrap();
                    text.extend_from_slice(&bytes[..length]);
                }
                match number {
                    0 => write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                        .unwrap(),
                    1 => {}
                    _ => open.push(stream),
                }
            }
            open
        });
        webhook.start().unwrap();
        let key = "tcp 10.0.0.1:5001 > 10.0.0.2:443".parse().unwrap();
        for expected in ["the server closed the connection", "timed out after 1s"] {
            webhook.execute(Command::Redirect(RedirectionId(7), key), Timestamp(0));
            let Input::Unknown(RedirectionId(7), error) = answer(&mut webhook) else {
                panic!("its result is unknown")
            };
            assert_eq!(error, expected);
            assert_eq!(webhook.maintain(Timestamp(0)), Err(format!("redirect: {expected}")));
        }
        drop(server.join());
        webhook.execute(Command::Redirect(RedirectionId(7), key), Timestamp(0));
        let Input::Failed(_, error) = answer(&mut webhook) else { panic!("nothing was sent") };
        assert!(error.contains("refused"), "{error}");
    }

    #[test]
    fn an_unreachable_server_is_an_error_at_the_start() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = webhook(format!("http://{address}/")).start().unwrap_err();
        assert!(error.starts_with(&format!("reset at http://{address}/: ")), "{error}");
        let error = webhook(format!("http://user:geheim@{address}/?key=geheim")).start().unwrap_err();
        assert!(error.starts_with(&format!("reset at http://***@{address}/?***: ")), "{error}");
    }

    #[test]
    fn a_token_that_the_server_repeats_is_hidden() {
        let url: WebUrl = "https://user:geheim@host/?key=geheim".parse().unwrap();
        let token = Some(Secret::new("t0k3n"));
        let options = WebhookOptions { url, token, timeout: Duration::from_secs(1), concurrency: 1 };
        let shown = format!("{options:?}");
        assert!(!shown.contains("geheim") && !shown.contains("t0k3n"), "{shown}");
        let endpoint = Endpoint { agent: Agent::new_with_defaults(), options };
        let text = endpoint.without_token("unknown token t0k3n at https://user:geheim@host/");
        assert_eq!(text, "unknown token *** at https://***@host/");
    }
}
