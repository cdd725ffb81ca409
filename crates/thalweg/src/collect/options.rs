//! Options of `thalweg collect`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use serde::Deserialize;
use thalweg_records::collect::CollectOptions;
use thiserror::Error;
use toml::Spanned;

use thalweg_http::access::{Tls, TlsError};

/// Options of a run.
#[derive(Clone, Debug)]
pub struct CollectRequest {
    /// Sockets, decoders, store.
    pub process: CollectOptions,
    /// Capture files to read instead of sockets.
    pub replay: Vec<PathBuf>,
    /// Output format.
    pub show: Show,
    /// Status interval.
    pub interval: Duration,
    /// Listen address of metrics.
    pub metrics: Option<SocketAddr>,
    /// Stop after this long.
    pub duration: Option<Duration>,
    /// Stop after this many flow records.
    pub count: Option<u64>,
}

/// Output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Full-screen live view.
    LiveView,
    /// A report at the end.
    Summary,
    /// JSON lines.
    Json,
}

/// Invalid options.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The file of sampling intervals is invalid.
    #[error("cannot read {}: {message}", file.display())]
    SamplingFile {
        /// The file.
        file: PathBuf,
        /// The error and its line.
        message: String,
    },
    /// The certificates are invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A database is invalid.
    #[error("--mmdb: {0}")]
    Geo(#[from] thalweg_records::geo::GeoError),
    /// An option is invalid.
    #[error("{flag}: {message}")]
    Option {
        /// The flag.
        flag: &'static str,
        /// The error.
        message: String,
    },
}

/// Sampling interval of exporters that do not report one: `1000` for all, `10.0.0.1=1000` for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The exporter; `None` for all without their own entry.
    pub exporter: Option<IpAddr>,
    /// 1 in N packets is sampled.
    pub interval: u32,
}

impl FromStr for Sampling {
    type Err = String;

    fn from_str(text: &str) -> Result<Sampling, String> {
        let expected =
            || "expected [EXPORTER=]N with N of at least 1, such as 1000 or 10.0.0.1=1000".to_owned();
        let (exporter, interval) = match text.split_once('=') {
            None => (None, text),
            Some((exporter, interval)) => {
                let address = exporter
                    .parse()
                    .map_err(|_| format!("{exporter:?} is not an IP address: {}", expected()));
                (Some(address?), interval)
            }
        };
        let interval = interval.parse().ok().filter(|&interval: &u32| interval > 0).ok_or_else(expected)?;
        Ok(Sampling { exporter, interval })
    }
}

/// The file of `--sampling-file`.
#[derive(Deserialize)]
struct SamplingFile {
    /// Sampling interval by exporter; `default` for all others.
    #[serde(default)]
    sampling: BTreeMap<Spanned<String>, Spanned<i64>>,
}

impl Sampling {
    /// Reads a file of sampling intervals.
    ///
    /// # Errors
    /// [`RequestError::SamplingFile`], with the line.
    pub fn load(file: &Path) -> Result<Vec<Sampling>, RequestError> {
        let wrong = |message: String| RequestError::SamplingFile { file: file.to_owned(), message };
        let text = thalweg_config::read_text(file).map_err(|error| wrong(error.to_string()))?;
        let at = |offset: usize, message: &str| {
            wrong(format!("line {}: {message}", 1 + text[..offset].matches('\n').count()))
        };
        let invalid = |error: toml::de::Error| at(error.span().map_or(0, |span| span.start), error.message());
        let sections: BTreeMap<Spanned<String>, toml::Value> = toml::from_str(&text).map_err(invalid)?;
        let unknown = sections.keys().filter(|name| name.get_ref() != "sampling");
        if let Some(name) = unknown.min_by_key(|name| name.span().start) {
            let message = format!("unknown name {:?}: expected only the section [sampling]", name.get_ref());
            return Err(at(name.span().start, &message));
        }
        let SamplingFile { sampling } = toml::from_str(&text).map_err(invalid)?;
        let entry = |(name, interval): (Spanned<String>, Spanned<i64>)| {
            let exporter = match name.get_ref().as_str() {
                "default" => None,
                address => Some(address.parse().map_err(|_| {
                    let message =
                        format!("{address:?} is not an IP address: expected \"10.0.0.1\" = N or default = N");
                    at(name.span().start, &message)
                })?),
            };
            let value = *interval.get_ref();
            let interval = u32::try_from(value).ok().filter(|&interval| interval > 0).ok_or_else(|| {
                at(interval.span().start, &format!("{value}: expected an interval from 1 to {}", u32::MAX))
            })?;
            Ok(Sampling { exporter, interval })
        };
        sampling.into_iter().map(entry).collect()
    }
}

/// Loads certificate, key and CA certificates for IPFIX over TLS.
///
/// # Errors
/// [`TlsError`] if the files cannot be used.
pub fn load_tls(
    certificate: &Path,
    key: &Path,
    client_ca_file: Option<&Path>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = ServerConfig::clone(&Tls::load(certificate, key, client_ca_file)?.config);
    // The configuration of the API negotiates HTTP; IPFIX has no ALPN protocol.
    config.alpn_protocols.clear();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_intervals_are_parsed_from_flags_and_files() {
        let of = |text: &str| {
            text.parse::<Sampling>().map(|it| (it.exporter.map(|it| it.to_string()), it.interval))
        };
        assert_eq!(of("1000"), Ok((None, 1000)));
        assert_eq!(of("2001:db8::1=10"), Ok((Some("2001:db8::1".to_owned()), 10)));
        assert!(["", "0", "x=1", "10.0.0.1=", "1:1000"].iter().all(|text| of(text).is_err()));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("exporters.toml");
        std::fs::write(&file, "[sampling]\ndefault = 100\n\"10.0.0.1\" = 1000\n").unwrap();
        let read = Sampling::load(&file).unwrap();
        assert_eq!(read, ["10.0.0.1=1000", "100"].map(|text| text.parse().unwrap()));
        for (wrong, expected) in [
            ("[sample]\n", "line 1: unknown name \"sample\": expected only the section [sampling]"),
            ("name = 1\nlength = 2\n", "line 1: unknown name \"name\""),
            (
                "[sampling]\nrouter = 5\n",
                "line 2: \"router\" is not an IP address: expected \"10.0.0.1\" = N",
            ),
            ("[sampling]\n\n\"10.0.0.1\" = 0\n", "line 3: 0: expected an interval from 1"),
            ("[sampling]\ndefault = \"x\"\n", "line 2: invalid type"),
            ("[sampling\n", "line 1: "),
        ] {
            std::fs::write(&file, wrong).unwrap();
            let error = Sampling::load(&file).unwrap_err().to_string();
            assert!(error.contains("exporters.toml") && error.contains(expected), "{error}");
        }
    }
}
