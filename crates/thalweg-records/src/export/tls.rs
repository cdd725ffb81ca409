//! Certificates: of whom the collector's is to be signed by, and ours if it asks for one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

/// PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the authority, or authorities, that sign collectors'.
    pub authority: PathBuf,
    /// Our certificate and its key. RFC 7011 section 11.3 asks for them; a collector may do without.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Why TLS cannot be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
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
    /// Certificate and key do not go together, or cannot be used.
    #[error("certificate and key cannot be used: {0}")]
    Refused(String),
    /// TLS is asked for, and nothing says whom to trust.
    #[error("TLS needs the certificate of an authority that signs the collector's")]
    NoAuthority,
}

/// What a connection is made with: TLS 1.3.
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

/// All certificates of a file; at least one.
fn certificates(what: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(what, file, &error))?;
    match found.is_empty() {
        true => Err(unreadable(what, file, &"there is none in it")),
        false => Ok(found),
    }
}
