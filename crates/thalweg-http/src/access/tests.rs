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

fn scope_of(tokens: &Tokens, secret: &[u8]) -> Option<Scope> {
    tokens.find(secret).map(|token| token.scope)
}

fn permitted(token: &str, scope: Scope) -> Permit {
    Permit { token: Some(token.into()), scope: Some(scope) }
}

#[test]
fn a_report_token_permits_reports_in_its_name_only() {
    let tokens = Tokens::parse(&format!("dtn1 report {SECRET}")).unwrap();
    let policy = Policy { tokens: Some(tokens), tls: None, hosts: Hosts::any() };
    let bearer = format!("Bearer {SECRET}");
    let permit = |wanted| policy.permit(Some(bearer.as_bytes()), wanted);
    assert_eq!(permit(Scope::Report), Ok(permitted("dtn1", Scope::Report)));
    assert_eq!(permit(Scope::Read), Err(Denied::Scope { has: Scope::Report, wanted: Scope::Read }));
    assert!(Scope::Write.includes(Scope::Report) && !Scope::Read.includes(Scope::Report));
}

#[test]
fn secrets_match_in_clear_and_by_digest() {
    let text = "# who may ask\n\n  reader read sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n";
    assert_eq!(Tokens::parse(text).unwrap().len(), 1);
    let tokens =
        Tokens::parse(&format!("operator write {SECRET} # she\nother read another-secret-of-someone"))
            .unwrap();
    assert_eq!(scope_of(&tokens, SECRET.as_bytes()), Some(Scope::Write));
    assert_eq!(scope_of(&tokens, b"another-secret-of-someone"), Some(Scope::Read));
    for wrong in [&b""[..], b"0123456789abcdef0123456789abcdeF", b"0123456789abcdef0123456789abcdef "] {
        assert_eq!(scope_of(&tokens, wrong), None);
    }
    // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let tokens = Tokens::parse(&format!("short read sha256:{digest}")).unwrap();
    assert_eq!(scope_of(&tokens, b"abc"), Some(Scope::Read));
}

#[test]
fn errors_name_the_line_and_hide_the_secret() {
    assert_eq!(refusal("a read"), "1: expected NAME SCOPE SECRET");
    assert_eq!(refusal(&format!("\na admin {SECRET}")), "2: unknown scope: expected report, read or write");
    assert!(refusal("a read hunter2").starts_with("1: secret too short: expected at least 16 characters"));
    assert!(!refusal("a read hunter2").contains("hunter2"));
    assert_eq!(refusal("a read sha256:12"), "1: invalid digest: expected sha256: and 64 hexadecimal digits");
    assert_eq!(
        refusal(&format!("a read {SECRET}\nb read {SECRET}x\na write {SECRET}y")),
        "3: duplicate name: already used in line 1"
    );
    assert!(refusal(&format!("a\u{1b}[0m read {SECRET}")).starts_with("1: invalid name"));
}

#[test]
fn a_secret_with_a_hash_sign_is_refused() {
    let refused = refusal(&format!("a read {SECRET}#{SECRET}"));
    assert!(refused.starts_with("1: # within a word"), "{refused}");
    assert!(!refused.contains(SECRET));
    assert!(Tokens::parse(&format!("a read #{SECRET}")).is_err());
    assert_eq!(Tokens::parse(&format!("#x\n\t#y\na read {SECRET}\t#z")).unwrap().len(), 1);
}

#[test]
fn a_systemd_credential_may_have_any_mode() {
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
fn a_token_file_readable_by_others_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("a read {SECRET}\n");
    assert_eq!(Tokens::load(&write(folder.path(), 0o600, &text)).unwrap().len(), 1);
    let exposed = Tokens::load(&write(folder.path(), 0o640, &text)).unwrap_err();
    assert!(matches!(exposed, TokenFileError::Exposed { mode: 0o640, .. }), "{exposed}");
    let empty = Tokens::load(&write(folder.path(), 0o600, "# none\n")).unwrap_err();
    assert!(matches!(empty, TokenFileError::Empty { .. }), "{empty}");
}

#[test]
fn an_address_other_than_loopback_requires_credentials() {
    let open = |listen: &str| AccessOptions { listen: listen.parse().unwrap(), ..AccessOptions::default() };
    for own in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1"] {
        assert!(Access::new(&open(own)).is_ok(), "{own}");
    }
    for reachable in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1"] {
        let error = Access::new(&open(reachable)).unwrap_err();
        assert!(matches!(error, AccessError::Unprotected { .. }), "{reachable}: {error}");
        assert!(error.to_string().contains("api.token_file"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let token_file = Some(write(folder.path(), 0o600, &format!("a read {SECRET}")));
    assert!(Access::new(&AccessOptions { token_file, ..open("0.0.0.0:1") }).is_ok());
    // TLS without client certificates admits everybody.
    let tls_certificate = Some("c.pem".into());
    let tls_key = Some("k.pem".into());
    let encrypted = AccessOptions { tls_certificate, tls_key, ..open("0.0.0.0:1") };
    assert!(matches!(Access::new(&encrypted), Err(AccessError::Unprotected { .. })));
}

#[test]
fn a_reload_requires_credentials_for_the_old_and_the_new_listen_address() {
    let folder = tempfile::tempdir().unwrap();
    let token_file = Some(write(folder.path(), 0o600, &format!("a read {SECRET}")));
    let at = |listen: &str, token_file| AccessOptions {
        listen: listen.parse().unwrap(),
        token_file,
        ..AccessOptions::default()
    };
    let access = Access::new(&at("0.0.0.0:1", token_file.clone())).unwrap();
    let error = access.reload(&at("127.0.0.1:1", None)).unwrap_err();
    assert!(matches!(error, AccessError::Unprotected { listen } if listen.ip().is_unspecified()), "{error}");
    assert_eq!(access.policy().permit(None, Scope::Read), Err(Denied::NoToken));
    access.reload(&at("127.0.0.1:1", token_file)).unwrap();
    assert!(access.policy().hosts.allow("collector.example"), "any host name is still allowed");
    // Options that are invalid at a start are invalid at a reload.
    let here = Access::new(&AccessOptions::default()).unwrap();
    assert!(here.reload(&at("0.0.0.0:1", None)).is_err());
}

#[test]
fn missing_and_invalid_options_are_named() {
    let default = AccessOptions::default;
    let error_of = |options: AccessOptions| Access::new(&options).unwrap_err().to_string();
    let certificate = AccessOptions { tls_certificate: Some("c.pem".into()), ..default() };
    assert_eq!(error_of(certificate), "api.tls_certificate requires api.tls_key");
    let authority = AccessOptions { client_ca_file: Some("ca.pem".into()), ..default() };
    assert_eq!(error_of(authority), "api.client_ca_file requires api.tls_certificate and api.tls_key");
    let limits = Limits { connections: 0, ..Limits::default() };
    assert_eq!(
        error_of(AccessOptions { limits, ..default() }),
        "api.max_connections is 0: expected 1 to 1000000"
    );
}

#[test]
fn tokens_and_scopes_are_enforced() {
    let policy = Policy {
        tokens: Some(Tokens::parse(&format!("r read {SECRET}\nw write {SECRET}2")).unwrap()),
        tls: None,
        hosts: Hosts::new(&AccessOptions::default()),
    };
    let permit = |header: &str, wanted| policy.permit(Some(header.as_bytes()), wanted);
    assert_eq!(policy.permit(None, Scope::Read), Err(Denied::NoToken));
    assert_eq!(permit("Basic eDp5", Scope::Read), Err(Denied::NoToken));
    assert_eq!(permit("Bearer nobody-has-this-one", Scope::Read), Err(Denied::UnknownToken));
    assert_eq!(permit(&format!("Bearer {SECRET}"), Scope::Read), Ok(permitted("r", Scope::Read)));
    assert_eq!(permit(&format!("bearer  {SECRET}"), Scope::Read), Ok(permitted("r", Scope::Read)));
    assert_eq!(
        permit(&format!("Bearer {SECRET}"), Scope::Write),
        Err(Denied::Scope { has: Scope::Read, wanted: Scope::Write })
    );
    assert_eq!(permit(&format!("Bearer {SECRET}2"), Scope::Write), Ok(permitted("w", Scope::Write)));
}

#[test]
fn an_invalid_file_changes_nothing() {
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
