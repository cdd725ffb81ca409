//! A client of the daemon's HTTP API.
//!
//! | file | what it has |
//! |---|---|
//! | `options` | which daemon, and as whom |
//! | `subscription` | events, and going on where it was after the connection was lost |
//! | `server_sent` | a stream of bytes to server-sent events |
//! | `back_off` | how long to wait for a daemon that does not answer |
//!
//! What the daemon says is read into the types by which it says it.

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
use thiserror::Error;
use ureq::Agent;
use ureq::http::Response;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

pub use options::ClientOptions;
pub use subscription::{Heard, Loss};

/// Longest time to reach the daemon.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// Longest time for an answer: as long as a daemon takes unless configured otherwise.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// Longest silence in a stream of events. The daemon breaks it every 15 s, so that this is a dead connection.
const SILENCE: Duration = Duration::from_secs(40);

/// Most bytes of an answer.
const MAX_BYTES: u64 = 64 << 20;

/// Most bytes of the files of certificates and tokens.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A client of one daemon. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    base: String,
    /// As in the header `authorization`.
    authorization: Option<String>,
}

/// Why there is no client.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Not the address of an API.
    #[error("{0:?} is not the address of an API: expected http://HOST:PORT or https://HOST:PORT")]
    Address(String),
    /// Certificates are of use with TLS only.
    #[error("{flag} needs an address that begins with https://, not {api}")]
    NoTls {
        /// The flag.
        flag: &'static str,
        /// The address.
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
    /// Others can read the token.
    #[error("{} has mode {mode:04o}, so that others can read the token: chmod 600 {}", file.display(), file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A file is not what it is to be.
    #[error("{}: {problem}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
}

/// Why a question was not answered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// Nobody is there, or it cannot be talked to.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It does not answer such a question, or not to us.
    #[error("{status} {detail}")]
    Refused {
        /// The status of its answer.
        status: u16,
        /// What it says of it.
        detail: String,
        /// How long it asks us to wait.
        retry_after: Option<Duration>,
    },
    /// Whoever answers does not speak as this version does.
    #[error("the answer to {path} is not understood: {problem}")]
    NotUnderstood {
        /// What was asked.
        path: String,
        /// Why not.
        problem: String,
    },
}

impl Client {
    /// A client; nothing is asked yet.
    ///
    /// # Errors
    /// If the address is none, or a file cannot be used.
    pub fn new(options: &ClientOptions) -> Result<Client, ClientError> {
        let base = options.base().ok_or_else(|| ClientError::Address(options.api.clone()))?.to_owned();
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
            .timeout_connect(Some(CONNECT_PATIENCE))
            .tls_config(tls(options)?);
        let token = options.token_file.as_deref().map(token).transpose()?;
        let authorization = token.map(|token| format!("Bearer {token}"));
        Ok(Client { agent: config.build().into(), base, authorization })
    }

    /// Its address, without a slash at the end.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// What the API says at this path, as it is.
    ///
    /// # Errors
    /// If there is no answer, or one that says why not.
    pub fn text(&self, path: &str) -> Result<String, RequestError> {
        let request = self.request(path).config().timeout_global(Some(ANSWER_PATIENCE)).build();
        let response = checked(request.call().map_err(unreachable)?)?;
        text_of(response).map_err(unreachable)
    }

    /// What the API says at this path.
    ///
    /// # Errors
    /// As [`Client::text`], or if it is not understood.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, RequestError> {
        let text = self.text(path)?;
        serde_json::from_str(&text).map_err(|error| RequestError::NotUnderstood {
            path: path.to_owned(),
            problem: error.to_string(),
        })
    }

    /// Gives the API this JSON for a path, and gives its answer.
    ///
    /// # Errors
    /// As [`Client::text`].
    pub fn put(&self, path: &str, json: &str) -> Result<String, RequestError> {
        let request = self.agent.put(format!("{}{path}", self.base)).content_type("application/json");
        let request = match &self.authorization {
            Some(authorization) => request.header("authorization", authorization),
            None => request,
        };
        let request = request.config().timeout_global(Some(ANSWER_PATIENCE)).build();
        let response = checked(request.send(json).map_err(unreachable)?)?;
        text_of(response).map_err(unreachable)
    }

    /// The stream of events, after the one of this `id` if there is one.
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
            .timeout_recv_response(Some(ANSWER_PATIENCE))
            .timeout_per_read(Some(SILENCE))
            .build();
        Ok(checked(request.call().map_err(unreachable)?)?.into_body().into_reader())
    }

    fn request(&self, path: &str) -> ureq::RequestBuilder<ureq::typestate::WithoutBody> {
        let request = self.agent.get(format!("{}{path}", self.base));
        match &self.authorization {
            Some(authorization) => request.header("authorization", authorization),
            None => request,
        }
    }
}

/// Text as a segment of a path: all but letters, digits and `-._~:` percent-encoded (RFC 3986, section 2).
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
        // What the system says, without our own name for it.
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
    let said = text_of(response).unwrap_or_default();
    let detail = match detail(&said) {
        Some(detail) => detail,
        None => status.canonical_reason().unwrap_or("without a reason").to_owned(),
    };
    let detail = if status.as_u16() == 401 { format!("{detail} (--token-file)") } else { detail };
    Err(RequestError::Refused {
        status: status.as_u16(),
        detail,
        retry_after: retry_after.map(Duration::from_secs),
    })
}

/// The `detail` of a problem (RFC 9457), if it has one. The rest is not read: a later daemon may have codes that are not
/// known here.
fn detail(said: &str) -> Option<String> {
    let problem: serde_json::Value = serde_json::from_str(said).ok()?;
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
        let key = PrivateKey::from_pem(&read(key)?).map_err(|_| ClientError::Content {
            file: key.clone(),
            problem: "there is no private key in it",
        })?;
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
            Err(_) => return Err(problem("it is not in the PEM format")),
        }
    }
    if certificates.is_empty() { Err(problem("there is no certificate in it")) } else { Ok(certificates) }
}

/// The secret of the first line: the whole of it, or its third word if it is as in the daemon's file of tokens.
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
    let text = String::from_utf8(read(file)?).map_err(|_| problem("it is not text"))?;
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    let words: Vec<&str> = match lines.find(|line| !line.trim().is_empty()) {
        Some(line) => line.split_whitespace().collect(),
        None => return Err(problem("there is no token in it")),
    };
    let secret = match words[..] {
        [secret] | [_, _, secret] => secret,
        _ => return Err(problem("expected a token, or NAME SCOPE SECRET as in the daemon's file")),
    };
    match secret {
        _ if secret.starts_with("sha256:") => {
            Err(problem("it has the digest of a token: the daemon wants the token"))
        }
        _ if !secret.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(problem("a token has ASCII characters only"))
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

    fn complaint(options: ClientOptions) -> String {
        Client::new(&options).unwrap_err().to_string()
    }

    #[test]
    fn an_address_is_a_scheme_and_a_host_and_a_slash_at_its_end_is_no_matter() {
        for api in ["http://127.0.0.1:9477", "https://[::1]:9477/", "http://collector"] {
            let client =
                Client::new(&ClientOptions { api: api.to_owned(), ..ClientOptions::default() }).unwrap();
            assert_eq!(client.base(), api.trim_end_matches('/'));
        }
        for api in ["", "127.0.0.1:9477", "ftp://host", "http://", "http://host/v1", "http://a b"] {
            let message = complaint(ClientOptions { api: api.to_owned(), ..ClientOptions::default() });
            assert!(message.contains("expected http://HOST:PORT"), "{message}");
        }
    }

    #[test]
    fn certificates_are_refused_where_they_would_do_nothing() {
        let message = complaint(ClientOptions { ca: Some("/ca.pem".into()), ..ClientOptions::default() });
        assert!(message.starts_with("--ca-file needs an address that begins with https://"), "{message}");
    }

    #[test]
    fn a_token_is_read_from_a_file_of_ones_own_or_of_the_daemons_form() {
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
        assert!(token_of("me read sha256:00", 0o600).unwrap_err().contains("digest"));
        for text in ["", "# none\n", "two words", "naïve-token-0123"] {
            assert!(token_of(text, 0o600).is_err(), "{text}");
        }
        assert!(
            complaint(ClientOptions {
                token_file: Some("/nonexistent/t".into()),
                ..ClientOptions::default()
            })
            .starts_with("cannot read /nonexistent/t")
        );
    }

    #[test]
    fn the_key_of_a_flow_survives_a_path() {
        let key = "tcp [2001:db8::1]:443 > 10.0.0.2:51000";
        assert_eq!(segment(key), "tcp%20%5B2001:db8::1%5D:443%20%3E%2010.0.0.2:51000");
        assert_eq!(segment("stör 7/%p:p0:in"), "st%C3%B6r%207%2F%25p:p0:in");
    }
}
