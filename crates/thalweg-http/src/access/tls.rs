//! TLS: the server certificate, and the CAs of client certificates.
//!
//! Only TLS 1.3 is supported: all clients of this API are newer.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;

/// Why certificates cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read or parsed.
    #[error("cannot read {what} from {}: {message}", file.display())]
    Unreadable {
        /// The expected content.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// The reason.
        message: String,
    },
    /// A file lacks the expected content.
    #[error("no {what} in {}", file.display())]
    Missing {
        /// The expected content.
        what: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// Certificate and key do not match, or are invalid.
    #[error("invalid certificate or key: {0}")]
    Invalid(String),
}

/// The TLS configuration of the server.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Configuration of handshakes.
    pub config: Arc<ServerConfig>,
    /// Verifier of client certificates, if required.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl Tls {
    /// Reads certificates and key from PEM files.
    pub fn load(certificate: &Path, key: &Path, client_ca_file: Option<&Path>) -> Result<Tls, TlsError> {
        let invalid = |error: &dyn std::fmt::Display| TlsError::Invalid(error.to_string());
        let chain = certificates("certificate", certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::Unreadable {
            what: "private key",
            file: key.to_owned(),
            message: error.to_string(),
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| invalid(&error))?;
        let verifier = match client_ca_file {
            None => None,
            Some(file) => Some(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider)
                    .build()
                    .map_err(|error| invalid(&error))?,
            ),
        };
        let builder = match &verifier {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| invalid(&error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { config: Arc::new(config), verifier })
    }

    /// Whether a client with these certificates, leaf first, is currently admitted.
    pub(super) fn admits(&self, certificates: &[CertificateDer<'_>]) -> bool {
        let Some(verifier) = &self.verifier else { return true };
        certificates
            .split_first()
            .is_some_and(|(own, others)| verifier.verify_client_cert(own, others, UnixTime::now()).is_ok())
    }
}

fn roots(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("CA certificate", file)? {
        roots.add(certificate).map_err(|error| TlsError::Unreadable {
            what: "CA certificate",
            file: file.to_owned(),
            message: error.to_string(),
        })?;
    }
    Ok(roots)
}

/// Reads all certificates of a file, at least one.
fn certificates(what: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |error: rustls::pki_types::pem::Error| TlsError::Unreadable {
        what,
        file: file.to_owned(),
        message: error.to_string(),
    };
    let found: Vec<_> = CertificateDer::pem_file_iter(file)
        .map_err(unreadable)?
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    if found.is_empty() {
        return Err(TlsError::Missing { what, file: file.to_owned() });
    }
    Ok(found)
}
