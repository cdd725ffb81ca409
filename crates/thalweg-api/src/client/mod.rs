//! A client of the daemon's HTTP API.
//!
//! | file | contents |
//! |---|---|
//! | `options` | URL, token and certificates |
//! | `subscription` | subscription to events, which resumes after the connection was lost |
//! | `server_sent` | decoder of server-sent events |
//! | `back_off` | waiting times between retries |
//!
//! The client parses responses into the types with which the daemon writes them.

pub mod back_off;
mod options;
pub mod server_sent;
pub mod subscription;

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use thalweg_wire::Secret;
use thiserror::Error;
use ureq::http::Response;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::{WithBody, WithoutBody};
use ureq::{Agent, RequestBuilder};

pub use options::ClientOptions;
pub use subscription::{Loss, StreamItem};

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Timeout for a response: the default of the daemon's `request_timeout`.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for a read from an event stream. The daemon sends a comment every 15 s, so a silent connection is dead.
const STREAM_TIMEOUT: Duration = Duration::from_secs(40);

/// Maximum size of a response in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum size of certificate and token files in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A client of one daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    base: String,
    /// Value of the `authorization` header.
    authorization: Option<Secret>,
}

/// Why a client could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL, here without secrets, is invalid.
    #[error("invalid API address {0:?}: expected http://HOST:PORT or https://HOST:PORT, port 1-65535")]
    Address(String),
    /// A certificate option requires TLS.
    #[error("{flag} requires an https:// address, got {api}")]
    NoTls {
        /// The option.
        flag: &'static str,
        /// The URL.
        api: String,
    },
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Other users can read the token.
    #[error("{} has mode {mode:04o}, which lets others read the token: run chmod 600 {}", file.display(), file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The contents of a file are invalid.
    #[error("{}: {problem}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
}

/// Why a request failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// The daemon is unreachable.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The daemon refused the request.
    #[error("{status} {detail}")]
    Refused {
        /// The HTTP status code.
        status: u16,
        /// The reason that the daemon gives.
        detail: String,
        /// How long the daemon requests to wait.
        retry_after: Option<Duration>,
    },
    /// The response is invalid, as from another version of the daemon.
    #[error("invalid response to {path}: {problem}")]
    InvalidResponse {
        /// The requested path.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

impl Client {
    /// Creates a client without connecting.
    ///
    /// # Errors
    /// If the URL is invalid, or a file cannot be used.
    pub fn new(options: &ClientOptions) -> Result<Client, ClientError> {
        let base = options.base().ok_or_else(|| ClientError::Address(options.shown_api()))?.to_owned();
        let is_plain = base.starts_with("http://");
        for (flag, is_given) in [
            ("--ca-file", options.ca.is_some()),
            ("--client-certificate", options.client_certificate.is_some()),
        ] {
            if is_plain && is_given {
                return Err(ClientError::NoTls { flag, api: base });
            }
        }
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("thalweg/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .tls_config(tls(options)?);
        let token = options.token_file.as_deref().map(token).transpose()?;
        let authorization = token.map(|token| Secret::new(format!("Bearer {token}")));
        Ok(Client { agent: config.build().into(), base, authorization })
    }

    /// Returns the URL of the daemon without a trailing slash.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Requests a path and returns the response body.
    ///
    /// # Errors
    /// If the daemon is unreachable or refuses the request.
    pub fn text(&self, path: &str) -> Result<String, RequestError> {
        let request = self.request(path).config().timeout_global(Some(RESPONSE_TIMEOUT)).build();
        let response = checked(request.call().map_err(unreachable)?)?;
        text_of(response).map_err(unreachable)
    }

    /// Requests a path and parses the response.
    ///
    /// # Errors
    /// As [`Client::text`], or if the response is invalid.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RequestError> {
        let text = self.text(path)?;
        serde_json::from_str(&text).map_err(|error| RequestError::InvalidResponse {
            path: path.to_owned(),
            problem: error.to_string(),
        })
    }

    /// Sends JSON with PUT and returns the response body.
    ///
    /// # Errors
    /// As [`Client::text`].
    pub fn put(&self, path: &str, json: &str) -> Result<String, RequestError> {
        self.send(self.agent.put(format!("{}{path}", self.base)), json)
    }

    /// Sends JSON with POST and returns the response body.
    ///
    /// # Errors
    /// As [`Client::text`].
    pub fn post(&self, path: &str, json: &str) -> Result<String, RequestError> {
        self.send(self.agent.post(format!("{}{path}", self.base)), json)
    }

    /// Sends DELETE and returns the response body.
    ///
    /// # Errors
    /// As [`Client::text`].
    pub fn delete(&self, path: &str) -> Result<String, RequestError> {
        let request = self.authorized(self.agent.delete(format!("{}{path}", self.base)));
        let request = request.config().timeout_global(Some(RESPONSE_TIMEOUT)).build();
        let response = checked(request.call().map_err(unreachable)?)?;
        text_of(response).map_err(unreachable)
    }

    fn send(&self, request: RequestBuilder<WithBody>, json: &str) -> Result<String, RequestError> {
        let request = self.authorized(request.content_type("application/json"));
        let request = request.config().timeout_global(Some(RESPONSE_TIMEOUT)).build();
        let response = checked(request.send(json).map_err(unreachable)?)?;
        text_of(response).map_err(unreachable)
    }

    /// Requests the stream of events, from the one after this `id` if given.
    ///
    /// # Errors
    /// As [`Client::text`].
    pub fn events(&self, last_event_id: Option<&str>) -> Result<impl Read + use<>, RequestError> {
        let request = self.request("/v1/events");
        let request = match last_event_id {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        let request = request
            .config()
            .timeout_recv_response(Some(RESPONSE_TIMEOUT))
            .timeout_per_read(Some(STREAM_TIMEOUT))
            .build();
        Ok(checked(request.call().map_err(unreachable)?)?.into_body().into_reader())
    }

    fn request(&self, path: &str) -> RequestBuilder<WithoutBody> {
        self.authorized(self.agent.get(format!("{}{path}", self.base)))
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.authorization {
            Some(authorization) => request.header("authorization", authorization.expose()),
            None => request,
        }
    }
}

/// Encodes text as a path segment: percent-encodes all but letters, digits and `-._~:` (RFC 3986, section 2).
pub fn segment(text: &str) -> String {
    let encoded = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encoded).collect()
}

fn unreachable(error: ureq::Error) -> RequestError {
    RequestError::Unreachable(match error {
        // Without the prefix that ureq adds.
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    })
}

fn checked(response: Response<ureq::Body>) -> Result<Response<ureq::Body>, RequestError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let retry_after = response.headers().get("retry-after").and_then(|wait| wait.to_str().ok()?.parse().ok());
    let body = text_of(response).unwrap_or_default();
    let detail = match detail(&body) {
        Some(detail) => detail,
        None => status.canonical_reason().unwrap_or("no reason given").to_owned(),
    };
    let detail = if status.as_u16() == 401 { format!("{detail} (--token-file)") } else { detail };
    Err(RequestError::Refused {
        status: status.as_u16(),
        detail,
        retry_after: retry_after.map(Duration::from_secs),
    })
}

/// Returns the `detail` of a problem (RFC 9457). Ignores the rest, because a newer daemon may use unknown codes.
fn detail(body: &str) -> Option<String> {
    let problem: serde_json::Value = serde_json::from_str(body).ok()?;
    problem["detail"].as_str().filter(|detail| !detail.is_empty()).map(str::to_owned)
}

fn text_of(response: Response<ureq::Body>) -> Result<String, ureq::Error> {
    response.into_body().with_config().limit(MAX_BYTES).read_to_string()
}

fn tls(options: &ClientOptions) -> Result<TlsConfig, ClientError> {
    let mut tls = TlsConfig::builder();
    if let Some(file) = &options.ca {
        tls = tls.root_certs(RootCerts::from(certificates(file)?));
    }
    if let Some((certificate, key)) = &options.client_certificate {
        let chain = certificates(certificate)?;
        let key = PrivateKey::from_pem(&read(key)?)
            .map_err(|_| ClientError::Content { file: key.clone(), problem: "no private key found" })?;
        tls = tls.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
    }
    Ok(tls.build())
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, ClientError> {
    let problem = |problem| ClientError::Content { file: file.to_owned(), problem };
    let text = read(file)?;
    let mut certificates = Vec::new();
    for item in parse_pem(&text) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(_) => return Err(problem("invalid PEM format")),
        }
    }
    if certificates.is_empty() { Err(problem("no certificate found")) } else { Ok(certificates) }
}

/// Reads the secret from the first line: the whole line, or its third word if it has the format of the daemon's token file.
fn token(file: &Path) -> Result<String, ClientError> {
    let problem = |problem| ClientError::Content { file: file.to_owned(), problem };
    let metadata = fs::metadata(file);
    let mode = metadata
        .map_err(|source| ClientError::Unreadable { file: file.to_owned(), source })?
        .permissions()
        .mode();
    if mode & 0o077 != 0 {
        return Err(ClientError::Exposed { file: file.to_owned(), mode: mode & 0o7777 });
    }
    let text = String::from_utf8(read(file)?).map_err(|_| problem("not valid UTF-8"))?;
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words: Vec<&str> = match lines.find(|line| !line.trim().is_empty()) {
        Some(line) => line.split_whitespace().collect(),
        None => return Err(problem("no token found")),
    };
    let secret = match words[..] {
        [secret] | [_, _, secret] => secret,
        _ => return Err(problem("expected a token, or NAME SCOPE SECRET as in the daemon's token file")),
    };
    match secret {
        _ if secret.starts_with("sha256:") => {
            Err(problem("contains the SHA-256 hash of a token, expected the token itself"))
        }
        _ if !secret.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(problem("a token may contain only printable ASCII characters"))
        }
        _ => Ok(secret.to_owned()),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, ClientError> {
    let unreadable = |source| ClientError::Unreadable { file: file.to_owned(), source };
    let mut bytes = Vec::new();
    let source = fs::File::open(file).map_err(unreadable)?;
    source.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(options: ClientOptions) -> String {
        Client::new(&options).unwrap_err().to_string()
    }

    #[test]
    fn a_trailing_slash_of_the_address_is_ignored() {
        for api in ["http://127.0.0.1:9477", "https://[::1]:9477/", "http://collector"] {
            let client =
                Client::new(&ClientOptions { api: api.to_owned(), ..ClientOptions::default() }).unwrap();
            assert_eq!(client.base(), api.trim_end_matches('/'));
        }
        for api in [
            "",
            "127.0.0.1:9477",
            "ftp://host",
            "http://",
            "http://host/v1",
            "http://a b",
            "https://u:secret@h",
        ] {
            let message = error(ClientOptions { api: api.to_owned(), ..ClientOptions::default() });
            assert!(message.contains("expected http://HOST:PORT"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn certificates_require_tls() {
        let message = error(ClientOptions { ca: Some("/ca.pem".into()), ..ClientOptions::default() });
        assert!(message.starts_with("--ca-file requires an https:// address"), "{message}");
    }

    #[test]
    fn a_token_file_may_have_the_daemons_format() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let token_of = |text: &str, mode| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            token(&file).map_err(|error| error.to_string())
        };
        assert_eq!(token_of("0123456789abcdef\n", 0o600).unwrap(), "0123456789abcdef");
        assert_eq!(
            token_of("# mine\n\nme read 0123456789abcdef # see\n", 0o400).unwrap(),
            "0123456789abcdef"
        );
        assert!(token_of("0123456789abcdef", 0o644).unwrap_err().contains("mode 0644"));
        assert!(token_of("me read sha256:00", 0o600).unwrap_err().contains("SHA-256 hash"));
        for text in ["", "# none\n", "two words", "naïve-token-0123"] {
            assert!(token_of(text, 0o600).is_err(), "{text}");
        }
        assert!(
            error(ClientOptions { token_file: Some("/nonexistent/t".into()), ..ClientOptions::default() })
                .starts_with("cannot read /nonexistent/t")
        );
    }

    #[test]
    fn flow_keys_are_percent_encoded() {
        let key = "tcp [2001:db8::1]:443 > 10.0.0.2:51000";
        assert_eq!(segment(key), "tcp%20%5B2001:db8::1%5D:443%20%3E%2010.0.0.2:51000");
        assert_eq!(segment("stör 7/%p:p0:in"), "st%C3%B6r%207%2F%25p:p0:in");
    }
}
