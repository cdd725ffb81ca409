//! TLS: the controller's certificate, and the authority of the switches' certificates.
//!
//! TLS 1.3 with certificates on both sides, each signed by the authority that the other side trusts, as with `ssl:`
//! in Open vSwitch (`ovs-vsctl set-ssl`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use thiserror::Error;

/// Why TLS cannot be set up.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read, or has invalid contents.
    #[error("cannot read {what} from {}: {message}", file.display())]
    Unreadable {
        /// The expected contents.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// The reason.
        message: String,
    },
    /// Certificate, key and authority do not match, or cannot be used.
    #[error("cannot use certificate, key and authority: {0}")]
    Refused(String),
    /// A name that no certificate can have.
    #[error("invalid certificate name {0:?}: expected a host name or an IP address")]
    Name(String),
}

/// TLS settings for accepted and for outgoing connections.
#[derive(Clone, Debug)]
pub struct Tls {
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) client: Arc<ClientConfig>,
}

impl Tls {
    /// Reads PEM files: the certificate chain, leaf first; its key; the authorities of the switches' certificates.
    ///
    /// # Errors
    /// If they cannot be read or used.
    pub fn from_files(certificate: &Path, key: &Path, authority: &Path) -> Result<Tls, TlsError> {
        let chain = certificates("a certificate", certificate)?;
        let key =
            PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable("a private key", key, &error))?;
        let mut roots = RootCertStore::empty();
        for root in certificates("an authority's certificate", authority)? {
            let what = "an authority's certificate";
            roots.add(root).map_err(|error| unreadable(what, authority, &error))?;
        }
        Tls::new(chain, key, roots)
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        roots: RootCertStore,
    ) -> Result<Tls, TlsError> {
        let refused = |error: &dyn std::fmt::Display| TlsError::Refused(error.to_string());
        let (provider, roots) = (Arc::new(rustls::crypto::ring::default_provider()), Arc::new(roots));
        let versions = &[&rustls::version::TLS13];
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| refused(&error))?;
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| refused(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(|error| refused(&error))?;
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(|error| refused(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| refused(&error))?;
        Ok(Tls { server: Arc::new(server), client: Arc::new(client) })
    }

    /// Creates the TLS state of an accepted connection.
    pub(crate) fn accept(&self) -> Result<rustls::Connection, TlsError> {
        let connection = ServerConnection::new(Arc::clone(&self.server));
        Ok(connection.map_err(|error| TlsError::Refused(error.to_string()))?.into())
    }

    /// Creates the TLS state of a connection to a switch whose certificate is for `name`.
    pub(crate) fn connect(&self, name: ServerName<'static>) -> Result<rustls::Connection, TlsError> {
        let connection = ClientConnection::new(Arc::clone(&self.client), name);
        Ok(connection.map_err(|error| TlsError::Refused(error.to_string()))?.into())
    }
}

/// Parses a name that a certificate can have.
pub(crate) fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}

fn unreadable(what: &'static str, file: &Path, error: &dyn std::fmt::Display) -> TlsError {
    TlsError::Unreadable { what, file: file.to_owned(), message: error.to_string() }
}

/// Reads all certificates of a file; at least one.
fn certificates(what: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(what, file, &error))?;
    if certificates.is_empty() {
        return Err(unreadable(what, file, &"the file has none, expected PEM"));
    }
    Ok(certificates)
}
