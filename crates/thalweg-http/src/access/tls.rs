//! Certificates: the server's own, and of the authorities that clients' are to come from.
//!
//! TLS 1.3 only: whatever speaks to this API is newer than it.

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
    /// A file cannot be read, or is not what it is to be.
    #[error("cannot read {what} from {}: {message}", file.display())]
    Unreadable {
        /// What was to be read.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// Why not.
        message: String,
    },
    /// A file has none of what it is for.
    #[error("{} has not even {what} in it", file.display())]
    Missing {
        /// What there is none of.
        what: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// Certificate and key do not go together, or cannot be used.
    #[error("certificate and key cannot be used: {0}")]
    Refused(String),
}

/// How connections are encrypted, and who is let in.
#[derive(Clone, Debug)]
pub struct Tls {
    /// For handshakes.
    pub config: Arc<ServerConfig>,
    /// What judges clients' certificates, if they are demanded.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

impl Tls {
    /// From files in PEM.
    pub fn load(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Tls, TlsError> {
        let refused = |error: &dyn std::fmt::Display| TlsError::Refused(error.to_string());
        let chain = certificates("a certificate", certificate)?;
        let key = PrivateKeyDer::from_pem_file(key).map_err(|error| TlsError::Unreadable {
            what: "a private key",
            file: key.to_owned(),
            message: error.to_string(),
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| refused(&error))?;
        let verifier = match client_ca {
            None => None,
            Some(file) => Some(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots(file)?), provider)
                    .build()
                    .map_err(|error| refused(&error))?,
            ),
        };
        let builder = match &verifier {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| refused(&error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls { config: Arc::new(config), verifier })
    }

    /// Whether a client that has shown these certificates, its own first, would be let in now.
    pub(super) fn admits(&self, certificates: &[CertificateDer<'_>]) -> bool {
        let Some(verifier) = &self.verifier else { return true };
        certificates
            .split_first()
            .is_some_and(|(own, others)| verifier.verify_client_cert(own, others, UnixTime::now()).is_ok())
    }
}

fn roots(file: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("a certificate of an authority", file)? {
        roots.add(certificate).map_err(|error| TlsError::Unreadable {
            what: "a certificate of an authority",
            file: file.to_owned(),
            message: error.to_string(),
        })?;
    }
    Ok(roots)
}

/// All certificates of a file; at least one.
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
