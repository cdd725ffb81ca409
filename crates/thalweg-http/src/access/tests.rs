use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::*;

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn write(folder: &Path, mode: u32, text: &str) -> PathBuf {
    let path = folder.join(format!("tokens-{mode:o}"));
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    path
}

fn refusal(text: &str) -> String {
    let (line, problem) = Tokens::parse(text).map(|tokens| tokens.len()).unwrap_err();
    format!("{line}: {problem}")
}

#[test]
fn a_secret_is_known_as_it_is_and_by_its_digest() {
    let text = "# who may ask\n\n  reader read sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n";
    assert_eq!(Tokens::parse(text).unwrap().len(), 1);
    let tokens =
        Tokens::parse(&format!("operator write {SECRET} # she\nother read another-secret-of-someone"))
            .unwrap();
    assert_eq!(tokens.scope_of(SECRET.as_bytes()), Some(Scope::Write));
    assert_eq!(tokens.scope_of(b"another-secret-of-someone"), Some(Scope::Read));
    for wrong in [&b""[..], b"0123456789abcdef0123456789abcdeF", b"0123456789abcdef0123456789abcdef "] {
        assert_eq!(tokens.scope_of(wrong), None);
    }
    // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let tokens = Tokens::parse(&format!("short read sha256:{digest}")).unwrap();
    assert_eq!(tokens.scope_of(b"abc"), Some(Scope::Read));
}

#[test]
fn a_wrong_line_is_named_and_its_secret_is_not_repeated() {
    assert_eq!(refusal("a read"), "1: expected NAME SCOPE SECRET");
    assert_eq!(refusal(&format!("\na admin {SECRET}")), "2: a scope is read or write");
    assert!(refusal("a read hunter2").starts_with("1: a secret has at least 16 characters"));
    assert!(!refusal("a read hunter2").contains("hunter2"));
    assert_eq!(refusal("a read sha256:12"), "1: sha256: is to be followed by 64 hexadecimal digits");
    assert_eq!(
        refusal(&format!("a read {SECRET}\nb read {SECRET}x\na write {SECRET}y")),
        "3: there is another token of this name in line 1"
    );
    assert!(refusal(&format!("a\u{1b}[0m read {SECRET}")).starts_with("1: a name has"));
}

#[test]
fn a_secret_with_a_hash_is_refused_and_not_cut() {
    let refused = refusal(&format!("a read {SECRET}#{SECRET}"));
    assert!(refused.starts_with("1: # within a word"), "{refused}");
    assert!(!refused.contains(SECRET));
    assert!(Tokens::parse(&format!("a read #{SECRET}")).is_err());
    assert_eq!(Tokens::parse(&format!("#x\n\t#y\na read {SECRET}\t#z")).unwrap().len(), 1);
}

#[test]
fn a_credential_of_systemd_is_taken_whatever_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let (inside, outside) = (folder.path().join("credentials"), folder.path().join("other"));
    [&inside, &outside].iter().for_each(|folder| std::fs::create_dir(folder).unwrap());
    let text = format!("a read {SECRET}\n");
    let load = |path: &Path| Tokens::load_with(path, Some(&inside));
    assert!(load(&write(&inside, 0o440, &text)).is_ok());
    let elsewhere = write(&outside, 0o440, &text);
    assert!(matches!(load(&elsewhere), Err(TokenFileError::Exposed { .. })));
    let around = inside.join("../other").join(elsewhere.file_name().unwrap());
    assert!(matches!(load(&around), Err(TokenFileError::Exposed { .. })));
}

#[test]
fn a_token_file_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("a read {SECRET}\n");
    assert_eq!(Tokens::load(&write(folder.path(), 0o600, &text)).unwrap().len(), 1);
    let exposed = Tokens::load(&write(folder.path(), 0o640, &text)).unwrap_err();
    assert!(matches!(exposed, TokenFileError::Exposed { mode: 0o640, .. }), "{exposed}");
    let empty = Tokens::load(&write(folder.path(), 0o600, "# none\n")).unwrap_err();
    assert!(matches!(empty, TokenFileError::Empty { .. }), "{empty}");
}

#[test]
fn where_others_can_reach_it_nothing_starts_without_tokens_or_client_certificates() {
    let open = |listen: &str| AccessOptions { listen: listen.parse().unwrap(), ..AccessOptions::default() };
    for own in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1"] {
        assert!(Access::new(&open(own)).is_ok(), "{own}");
    }
    for reachable in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
        let error = Access::new(&open(reachable)).unwrap_err();
        assert!(matches!(error, AccessError::Open { .. }), "{reachable}: {error}");
        assert!(error.to_string().contains("api.token_file"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let token_file = Some(write(folder.path(), 0o600, &format!("a read {SECRET}")));
    assert!(Access::new(&AccessOptions { token_file, ..open("0.0.0.0:1") }).is_ok());
    // TLS alone lets everybody in.
    let tls_certificate = Some("c.pem".into());
    let tls_key = Some("k.pem".into());
    let encrypted = AccessOptions { tls_certificate, tls_key, ..open("0.0.0.0:1") };
    assert!(matches!(Access::new(&encrypted), Err(AccessError::Open { .. })));
}

#[test]
fn what_is_reachable_goes_on_demanding_something_though_it_is_to_listen_elsewhere_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let token_file = Some(write(folder.path(), 0o600, &format!("a read {SECRET}")));
    let at = |listen: &str, token_file| AccessOptions {
        listen: listen.parse().unwrap(),
        token_file,
        ..AccessOptions::default()
    };
    let access = Access::new(&at("0.0.0.0:1", token_file.clone())).unwrap();
    let error = access.reload(&at("127.0.0.1:1", None)).unwrap_err();
    assert!(matches!(error, AccessError::Open { listen } if listen.ip().is_unspecified()), "{error}");
    assert_eq!(access.policy().permit(None, Scope::Read), Err(Denied::NoToken));
    access.reload(&at("127.0.0.1:1", token_file)).unwrap();
    assert!(access.policy().hosts.allow("collector.example"), "it is still asked by any name");
    // What could not be started with is not taken up either.
    let here = Access::new(&AccessOptions::default()).unwrap();
    assert!(here.reload(&at("0.0.0.0:1", None)).is_err());
}

#[test]
fn keys_that_need_each_other_are_demanded_together() {
    let default = AccessOptions::default;
    let complaint = |options: AccessOptions| Access::new(&options).unwrap_err().to_string();
    let certificate = AccessOptions { tls_certificate: Some("c.pem".into()), ..default() };
    assert_eq!(complaint(certificate), "api.tls_certificate needs api.tls_key");
    let authority = AccessOptions { client_ca: Some("ca.pem".into()), ..default() };
    assert_eq!(complaint(authority), "api.client_ca needs api.tls_certificate and api.tls_key");
    let limits = Limits { connections: 0, ..Limits::default() };
    assert_eq!(
        complaint(AccessOptions { limits, ..default() }),
        "api.max_connections is 0: expected 1 to 1000000"
    );
}

#[test]
fn a_token_is_demanded_where_there_are_tokens_and_its_scope_is_kept_to() {
    let policy = Policy {
        tokens: Some(Tokens::parse(&format!("r read {SECRET}\nw write {SECRET}2")).unwrap()),
        tls: None,
        hosts: Hosts::new(&AccessOptions::default()),
    };
    let permit = |header: &str, wanted| policy.permit(Some(header.as_bytes()), wanted);
    assert_eq!(policy.permit(None, Scope::Read), Err(Denied::NoToken));
    assert_eq!(permit("Basic eDp5", Scope::Read), Err(Denied::NoToken));
    assert_eq!(permit("Bearer nobody-has-this-one", Scope::Read), Err(Denied::UnknownToken));
    assert_eq!(permit(&format!("Bearer {SECRET}"), Scope::Read), Ok(()));
    assert_eq!(permit(&format!("bearer  {SECRET}"), Scope::Read), Ok(()));
    assert_eq!(permit(&format!("Bearer {SECRET}"), Scope::Write), Err(Denied::ReadOnly));
    assert_eq!(permit(&format!("Bearer {SECRET}2"), Scope::Write), Ok(()));
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), 0o600, &format!("a read {SECRET}"));
    let options = AccessOptions { token_file: Some(path.clone()), ..AccessOptions::default() };
    let access = Access::new(&options).unwrap();
    let bearer = format!("Bearer {SECRET}");
    let is_known = || access.policy().permit(Some(bearer.as_bytes()), Scope::Read).is_ok();
    std::fs::write(&path, "rubbish").unwrap();
    assert!(access.reload(&options).is_err());
    assert!(is_known());
    std::fs::write(&path, format!("b read {SECRET}new")).unwrap();
    access.reload(&options).unwrap();
    assert!(!is_known());
}
