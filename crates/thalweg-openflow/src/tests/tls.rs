//! Connections with TLS.

use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use super::*;

/// An authority that signs certificates for `localhost`.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// The settings of one side: a certificate of this authority, and the other authority as trusted.
    fn tls(&self, trusted: &Authority, folder: &Path) -> Tls {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let paths = ["certificate", "key", "authority"].map(|name| folder.join(name));
        for (path, text) in paths.iter().zip([certificate.pem(), key.serialize_pem(), trusted.0.pem()]) {
            fs::write(path, text).unwrap();
        }
        Tls::from_files(&paths[0], &paths[1], &paths[2]).unwrap()
    }
}

fn name() -> ServerName<'static> {
    "localhost".try_into().unwrap()
}

#[test]
fn a_batch_larger_than_tls_buffers_is_delivered() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let tls = authority.tls(&authority, folder.path());
    let (switches, events) = Switches::new(Config::default());
    let address = switches.listen(local(), Some(tls.clone())).unwrap();
    let connection = ClientConnection::new(tls.client, name()).unwrap();
    let stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    let mut peer = ScriptedSwitch::new(Box::new(stream));
    peer.complete_handshake(DATAPATH);
    let switch = up(&events).switch;
    let batch = vec![flow_mod(); 10_000];
    let outcome = std::thread::scope(|scope| {
        let sending = scope.spawn(|| switch.send_batch(&batch, Nanos::from_secs(20)).unwrap().wait());
        let barrier = peer.receive_until_barrier();
        peer.send(barrier, Body::BarrierReply);
        sending.join().unwrap()
    });
    assert_eq!(outcome.result, Ok(()));
    drop(peer);
    assert!(matches!(next(&events), Event::Down { .. }));
}

#[test]
fn the_controller_connects_to_a_listening_switch_with_tls() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let tls = authority.tls(&authority, folder.path());
    let listener = TcpListener::bind(local()).unwrap();
    let (switches, events) = Switches::new(Config::default());
    switches.connect(listener.local_addr().unwrap(), Some((tls.clone(), "localhost"))).unwrap();
    let connection = ServerConnection::new(Arc::clone(&tls.server)).unwrap();
    let stream = StreamOwned::new(connection, listener.accept().unwrap().0);
    let mut peer = ScriptedSwitch::new(Box::new(stream));
    peer.complete_handshake(DATAPATH);
    assert_eq!(up(&events).features.datapath_id, DATAPATH);
    let refused = switches.connect(local(), Some((tls, "no name")));
    assert!(matches!(refused, Err(OpenFlowError::Tls(TlsError::Name(name))) if name == "no name"));
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let (ours, theirs, folder) = (Authority::new(), Authority::new(), tempfile::tempdir().unwrap());
    let (switches, events) = Switches::new(Config::default());
    let address = switches.listen(local(), Some(ours.tls(&ours, folder.path()))).unwrap();
    let foreign = theirs.tls(&ours, folder.path());
    let connection = ClientConnection::new(foreign.client, name()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    // Either side may notice first.
    let _ = std::io::Write::write_all(&mut stream, b"anything");
    let Event::Refused { error: HandshakeError::Broken(message), .. } = next(&events) else {
        panic!("expected a refused connection")
    };
    assert!(message.contains("certificate"), "{message}");
}

#[test]
fn a_switch_without_tls_is_refused() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let (switches, events) = Switches::new(Config::default());
    let address = switches.listen(local(), Some(authority.tls(&authority, folder.path()))).unwrap();
    ScriptedSwitch::connect(address).write(&[4, 0, 0, 8, 0, 0, 0, 1]);
    assert!(matches!(next(&events), Event::Refused { .. }));
}

#[test]
fn errors_name_missing_and_invalid_files() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let error = Tls::from_files(&missing, &missing, &missing).unwrap_err().to_string();
    assert!(error.starts_with("cannot read a certificate from ") && error.contains("missing"), "{error}");
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    let error = Tls::from_files(&empty, &empty, &empty).unwrap_err().to_string();
    assert!(error.ends_with("the file has none, expected PEM"), "{error}");
}
