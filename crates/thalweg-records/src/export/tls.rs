//! TLS certificates: the authority of the collector's certificate, and our own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// PEM files for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the authorities that sign collectors' certificates.
    pub authority: PathBuf,
    /// Our certificate and private key. RFC 7011 section 11.3 requires them; a collector may not.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// If they cannot be read or used.
    pub fn check(&self) -> Result<(), TlsError> {
        client_config(self).map(drop)
    }
}

/// Why TLS cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read or parsed.
    #[error("cannot read {what} from {}: {message}", file.display())]
    Unreadable {
        /// What the file should contain.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// The cause.
        message: String,
    },
    /// Certificate and key do not match, or are invalid.
    #[error("cannot use certificate and private key: {0}")]
    Refused(String),
    /// No trusted authority is configured.
    #[error("TLS needs the certificate of the authority that signed the collector's certificate")]
    NoAuthority,
}

/// Returns the configuration of connections: TLS 1.3.
pub(super) fn client_config(files: &TlsFiles) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    for root in certificates("an authority's certificate", &files.authority)? {
        let what = "an authority's certificate";
        roots.add(root).map_err(|error| unreadable(what, &files.authority, &error))?;
    }
    let refused = |error: rustls::Error| TlsError::Refused(error.to_string());
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(refused)?
        .with_root_certificates(roots);
    let config = match &files.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates("a certificate", certificate)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unreadable("a private key", key, &error))?;
            builder.with_client_auth_cert(chain, key).map_err(refused)?
        }
    };
    Ok(Arc::new(config))
}

fn unreadable(what: &'static str, file: &Path, error: &dyn std::fmt::Display) -> TlsError {
    TlsError::Unreadable { what, file: file.to_owned(), message: error.to_string() }
}

/// Returns all certificates of a file, at least one.
fn certificates(what: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(what, file, &error))?;
    match found.is_empty() {
        true => Err(unreadable(what, file, &"the file contains none")),
        false => Ok(found),
    }
}
