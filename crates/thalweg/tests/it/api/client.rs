//! An HTTP client, such as scripts and scrapers use.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::tls::TlsConfig;

/// Timeout of all operations.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// A client of one daemon.
#[derive(Clone)]
pub(crate) struct Client {
    agent: Agent,
    pub(crate) base: String,
    token: Option<String>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) text: String,
}

/// An event as sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sent {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: Value,
}

/// A subscription.
pub(crate) struct Events(Box<dyn BufRead>);

impl Client {
    pub(crate) fn new(base: String) -> Client {
        Client::with_tls(base, TlsConfig::builder().build())
    }

    pub(crate) fn with_tls(base: String, tls: TlsConfig) -> Client {
        let config = Agent::config_builder().http_status_as_error(false).timeout_global(Some(TIMEOUT));
        let agent = config.tls_config(tls).build().into();
        Client { agent, base, token: None }
    }

    /// Returns the client with a token.
    pub(crate) fn token(&self, token: &str) -> Client {
        Client { token: Some(token.to_owned()), ..self.clone() }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[])
    }

    pub(crate) fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.try_get(path, headers).unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    pub(crate) fn try_get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Answer, ureq::Error> {
        Ok(answer(self.with_headers(self.agent.get(self.url(path)), headers).call()?))
    }

    /// Sends a body; `method` is PUT or POST.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let request = match method {
            "PUT" => self.agent.put(self.url(path)),
            _ => self.agent.post(self.url(path)),
        };
        answer(
            self.with_headers(request, headers).send(body).unwrap_or_else(|error| panic!("{path}: {error}")),
        )
    }

    /// Requests a binary response.
    pub(crate) fn post_for_bytes(&self, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
        let request = self.with_headers(self.agent.post(self.url(path)), headers);
        let mut response = request.send_empty().unwrap();
        assert_eq!(response.status(), 200);
        response.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap()
    }

    pub(crate) fn delete(&self, path: &str) -> Answer {
        answer(self.agent.delete(self.url(path)).call().unwrap())
    }

    /// Subscribes. When this returns, the server has the subscription.
    pub(crate) fn events(&self, query: &str, headers: &[(&str, &str)]) -> Events {
        self.stream(&format!("/v1/events{query}"), headers)
    }

    /// Reads server-sent events. When this returns, the server has the subscription.
    pub(crate) fn stream(&self, path: &str, headers: &[(&str, &str)]) -> Events {
        let request = self.agent.get(self.url(path));
        let response = self.with_headers(request, headers).call().unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events(Box::new(BufReader::new(response.into_body().into_reader())))
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn with_headers<T>(
        &self,
        request: ureq::RequestBuilder<T>,
        headers: &[(&str, &str)],
    ) -> ureq::RequestBuilder<T> {
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    /// Opens a raw connection for invalid requests.
    pub(crate) fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(self.base.split_once("://").unwrap().1).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// Returns the status of a request on a connection of its own.
    pub(crate) fn get_anew(&self, path: &str) -> u16 {
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        let answer = self.raw_answer(&request);
        answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    /// Sends this text and returns the response until the server closes the connection.
    pub(crate) fn raw_answer(&self, text: &str) -> String {
        let mut stream = self.raw();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        // A reset also closes the connection.
        let _ = stream.read_to_string(&mut answer);
        answer
    }
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Returns the status and the problem code.
    pub(crate) fn problem(&self) -> (u16, String) {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{}", self.text);
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        assert_eq!(problem["type"], "about:blank");
        (self.status, problem["code"].as_str().unwrap().to_owned())
    }
}

impl Events {
    /// Returns the next event, skipping comments.
    pub(crate) fn next(&mut self) -> Sent {
        let mut sent = Sent { id: String::new(), event: String::new(), data: Value::Null };
        loop {
            let mut line = String::new();
            assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the server has closed the connection");
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => sent.id = id.to_owned(),
                Some(("event", event)) => sent.event = event.to_owned(),
                Some(("data", data)) => sent.data = serde_json::from_str(data).unwrap(),
                _ if line == "\n" && !sent.event.is_empty() => return sent,
                _ => {}
            }
        }
    }

    /// Returns everything until the server closes the stream.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).unwrap();
        rest
    }

    /// Returns the numbers of the next events.
    pub(crate) fn numbers(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next().data["id"].as_u64().unwrap()).collect()
    }
}

fn answer(mut response: ureq::http::Response<ureq::Body>) -> Answer {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let text = response.body_mut().read_to_string().unwrap();
    Answer { status, headers, text }
}
