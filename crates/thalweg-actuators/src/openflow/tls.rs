//! Certificates: ours, and of the authority that switches' are from.
//!
//! TLS 1.3, and each side shows a certificate that the other one's authority has signed, as Open vSwitch does with
//! `ssl:` (`ovs-vsctl set-ssl`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};
use thiserror::Error;

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
    /// Certificate, key and authority do not go together, or cannot be used.
    #[error("certificate and key cannot be used: {0}")]
    Refused(String),
    /// A name that no certificate can be for.
    #[error("{0:?} is no name that a certificate can be for, expected a host's name or an IP address")]
    Name(String),
}

/// How connections are encrypted, whoever begins them.
#[derive(Clone, Debug)]
pub struct Tls {
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Arc<ClientConfig>,
}

impl Tls {
    /// From PEM files: our certificate, with others that lead to its authority if there are any; its key; certificates of
    /// the authority, or authorities, of switches.
    ///
    /// # Errors
    /// When they cannot be read or used.
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

    /// For a connection that a switch began.
    pub(super) fn accept(&self) -> Result<rustls::Connection, TlsError> {
        let connection = ServerConnection::new(Arc::clone(&self.server));
        Ok(connection.map_err(|error| TlsError::Refused(error.to_string()))?.into())
    }

    /// For a connection to a switch whose certificate is for `name`.
    pub(super) fn connect(&self, name: ServerName<'static>) -> Result<rustls::Connection, TlsError> {
        let connection = ClientConnection::new(Arc::clone(&self.client), name);
        Ok(connection.map_err(|error| TlsError::Refused(error.to_string()))?.into())
    }
}

/// A name that a certificate can be for.
pub(super) fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}

fn unreadable(what: &'static str, file: &Path, error: &dyn std::fmt::Display) -> TlsError {
    TlsError::Unreadable { what, file: file.to_owned(), message: error.to_string() }
}

/// All certificates of a file; at least one.
fn certificates(what: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(what, file, &error))?;
    if found.is_empty() {
        return Err(unreadable(what, file, &"there is none in it"));
    }
    Ok(found)
}
