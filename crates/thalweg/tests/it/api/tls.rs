//! TLS with client certificates.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use thalweg_http::access::AccessOptions;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use crate::api::client::Client;
use crate::api::fixture::Fixture;

/// A certificate authority for tests.
struct Authority {
    folder: tempfile::TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Authority { folder: tempfile::tempdir().unwrap(), issuer }
    }

    /// Issues a certificate for this name. Returns certificate and key as PEM.
    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    fn write(&self, name: &str, text: &str) -> Option<PathBuf> {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    }

    /// Starts a server that requires client certificates of this authority.
    fn serve(&self) -> Fixture {
        self.serve_with(|_| {})
    }

    /// Starts such a server with other options.
    fn serve_with(&self, change: impl FnOnce(&mut AccessOptions)) -> Fixture {
        let (certificate, key) = self.issue("127.0.0.1");
        Fixture::with(|options: &mut AccessOptions| {
            options.tls_certificate = self.write("server.pem", &certificate);
            options.tls_key = self.write("server.key", &key);
            options.client_ca_file = self.write("ca.pem", &self.issuer.pem());
            change(options);
        })
    }

    /// Creates a client that trusts this authority, optionally with a certificate of another one.
    fn client(&self, fixture: &Fixture, of: Option<&Authority>) -> Client {
        let root = Certificate::from_pem(self.issuer.pem().as_bytes()).unwrap().to_owned();
        let own = of.map(|authority| {
            let (certificate, key) = authority.issue("client");
            let chain = [Certificate::from_pem(certificate.as_bytes()).unwrap().to_owned()];
            ClientCert::new_with_certs(&chain, PrivateKey::from_pem(key.as_bytes()).unwrap())
        });
        let tls = TlsConfig::builder().root_certs(RootCerts::from(vec![root])).client_cert(own).build();
        Client::with_tls(fixture.client.base.clone(), tls)
    }
}

#[test]
fn only_clients_with_a_trusted_certificate_are_accepted() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let fixture = authority.serve();
    assert_eq!(authority.client(&fixture, Some(&authority)).get("/v1/links").status, 200);
    assert!(authority.client(&fixture, None).try_get("/v1/links", &[]).is_err(), "without a certificate");
    assert!(
        authority.client(&fixture, Some(&stranger)).try_get("/healthz", &[]).is_err(),
        "with a stranger's"
    );
    assert!(fixture.client.try_get("/healthz", &[]).is_err(), "a client that does not know the authority");
    assert!(fixture.server.api().counts().http.handshakes_failed >= 2);
    let plain = Client::new(fixture.client.base.replace("https", "http"));
    assert!(plain.try_get("/healthz", &[]).is_err(), "without TLS");
}

#[test]
fn events_are_sent_over_tls() {
    let authority = Authority::new();
    let fixture = authority.serve();
    let mut events = authority.client(&fixture, Some(&authority)).events("", &[]);
    fixture.publish(2);
    assert_eq!(events.numbers(2), [1, 2]);
}

#[test]
fn old_connections_need_certificates_after_a_reload() {
    let authority = Authority::new();
    let fixture = authority.serve_with(|options| options.client_ca_file = None);
    let anyone = authority.client(&fixture, None);
    let mut events = anyone.events("", &[]);
    fixture.publish(1);
    assert_eq!(events.numbers(1), [1]);
    assert_eq!(anyone.get("/v1/links").status, 200);
    // Reload without changes.
    fixture.access.reload(&fixture.options).unwrap();
    assert!(!anyone.get("/v1/links").headers.contains_key("connection"), "nothing has changed");
    fixture.publish(1);
    assert_eq!(events.numbers(1), [2]);
    let client_ca_file = authority.write("ca.pem", &authority.issuer.pem());
    fixture.access.reload(&AccessOptions { client_ca_file, ..fixture.options.clone() }).unwrap();
    let refused = anyone.get("/v1/links");
    assert_eq!(refused.problem(), (503, "unavailable".into()));
    assert_eq!(refused.headers["connection"], "close");
    assert!(anyone.try_get("/v1/links", &[]).is_err(), "a new connection needs a certificate");
    fixture.publish(1);
    assert_eq!(events.rest(), "", "not another event");
    assert_eq!(authority.client(&fixture, Some(&authority)).get("/v1/links").status, 200);
}

#[test]
fn a_connection_survives_reloads_while_its_certificate_is_trusted() {
    let (authority, next) = (Authority::new(), Authority::new());
    let fixture = authority.serve();
    let client = authority.client(&fixture, Some(&authority));
    let mut events = client.events("", &[]);
    fixture.publish(1);
    assert_eq!(events.numbers(1), [1]);
    assert_eq!(client.get("/v1/links").status, 200);
    // Unchanged; renewed server certificate; an additional authority.
    fixture.access.reload(&fixture.options).unwrap();
    let (certificate, key) = authority.issue("127.0.0.1");
    authority.write("server.pem", &certificate);
    authority.write("server.key", &key);
    authority.write("ca.pem", &[next.issuer.pem(), authority.issuer.pem()].concat());
    fixture.access.reload(&fixture.options).unwrap();
    fixture.publish(1);
    assert_eq!(events.numbers(1), [2], "the same stream");
    let answer = client.get("/v1/links");
    assert!(answer.status == 200 && !answer.headers.contains_key("connection"));
    // The authority is no longer trusted.
    authority.write("ca.pem", &next.issuer.pem());
    fixture.access.reload(&fixture.options).unwrap();
    assert_eq!(client.get("/v1/links").problem(), (503, "unavailable".into()));
    assert!(client.try_get("/v1/links", &[]).is_err(), "nor a new connection");
    fixture.publish(1);
    assert_eq!(events.rest(), "", "not another event");
}

#[test]
fn invalid_certificates_are_reported() {
    use thalweg_http::access::Access;

    let authority = Authority::new();
    let (certificate, key) = authority.issue("127.0.0.1");
    let (_, other_key) = authority.issue("127.0.0.1");
    let complaint = |certificate: Option<PathBuf>, key: Option<PathBuf>| {
        let options =
            AccessOptions { tls_certificate: certificate, tls_key: key, ..AccessOptions::default() };
        Access::new(&options).unwrap_err().to_string()
    };
    let certificate = || authority.write("c.pem", &certificate);
    let absent = Some(Path::new("/nonexistent/c.pem").to_owned());
    let message = complaint(absent, authority.write("k.pem", &key));
    assert!(message.starts_with("cannot read certificate from /nonexistent/c.pem"), "{message}");
    let message = complaint(authority.write("empty.pem", ""), authority.write("k.pem", &key));
    assert!(message.starts_with("no certificate in "), "{message}");
    let message = complaint(certificate(), authority.write("o.pem", &other_key));
    assert!(message.starts_with("invalid certificate or key: "), "{message}");
}
