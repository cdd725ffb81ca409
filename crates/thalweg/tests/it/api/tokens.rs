//! Tokens, scopes, host headers and cross-site requests.

use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use thalweg_http::access::AccessOptions;

use crate::api::fixture::Fixture;

const READER: &str = "reader-secret-0123456789";
const WRITER: &str = "writer-secret-0123456789";

fn token_file(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("tokens");
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).unwrap();
    std::io::Write::write_all(&mut file, format!("grafana read {READER}\nops write {WRITER}\n").as_bytes())
        .unwrap();
    path
}

fn with_tokens() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    Fixture::with(|options: &mut AccessOptions| options.token_file = Some(token_file(folder.path())))
}

#[test]
fn without_a_token_only_health_is_readable() {
    let fixture = with_tokens();
    for path in ["/v1/links", "/v1/flows", "/v1/events", "/metrics", "/v1/topology"] {
        let refused = fixture.client.get(path);
        assert_eq!(refused.problem(), (401, "unauthorised".into()), "{path}");
        assert_eq!(refused.headers["www-authenticate"], "Bearer realm=\"thalweg\"");
    }
    for path in ["/healthz", "/readyz", "/v1/openapi.json"] {
        assert_eq!(fixture.client.get(path).status, 200, "{path}");
    }
}

#[test]
fn a_similar_token_is_refused() {
    let fixture = with_tokens();
    for wrong in
        ["x", &READER[1..], &format!("{READER}0"), &READER.to_uppercase(), "reader-secret-0123456780"]
    {
        assert_eq!(
            fixture.client.token(wrong).get("/v1/links").problem(),
            (401, "unauthorised".into()),
            "{wrong}"
        );
    }
    assert_eq!(fixture.client.token(READER).get("/v1/links").status, 200);
    assert_eq!(fixture.client.token(READER).get("/metrics").status, 200);
}

#[test]
fn a_read_token_cannot_write() {
    let fixture = with_tokens();
    let toml = fixture.client.token(READER).get_with("/v1/topology", &[("accept", "application/toml")]).text;
    let put = |token: &str| {
        let headers = [("content-type", "application/toml")];
        fixture.client.token(token).send("PUT", "/v1/topology", &headers, toml.as_bytes())
    };
    assert_eq!(put(READER).problem(), (403, "forbidden".into()));
    assert_eq!(fixture.client.token(READER).send("POST", "/v1/samples", &[], b"").problem().0, 403);
    assert_eq!(put(WRITER).status, 200);
}

#[test]
fn a_request_with_a_foreign_host_header_is_refused() {
    let fixture = Fixture::new();
    for host in ["evil.example", "evil.example:80"] {
        let refused = fixture.client.get_with("/v1/links", &[("host", host)]);
        assert_eq!(refused.problem(), (421, "wrong_host".into()));
    }
    assert_eq!(fixture.client.get_with("/v1/links", &[("host", "localhost:9477")]).status, 200);
}

#[test]
fn cross_site_requests_are_refused() {
    let fixture = Fixture::new();
    let origin = [("origin", "http://evil.example")];
    assert_eq!(fixture.client.send("POST", "/v1/samples", &origin, b"").problem(), (403, "forbidden".into()));
    let answer = fixture.client.get_with("/v1/links", &origin);
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
}

#[test]
fn an_event_stream_ends_when_its_token_is_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let file = token_file(folder.path());
    let fixture = Fixture::with(|options: &mut AccessOptions| options.token_file = Some(file.clone()));
    let mut kept = fixture.client.token(WRITER).events("", &[]);
    let mut revoked = fixture.client.token(READER).events("", &[]);
    fixture.publish(1);
    assert_eq!((kept.numbers(1), revoked.numbers(1)), (vec![1], vec![1]));
    std::fs::write(&file, format!("ops write {WRITER}\n")).unwrap();
    fixture.access.reload(&fixture.options).unwrap();
    fixture.publish(1);
    assert_eq!(kept.numbers(1), [2]);
    assert_eq!(revoked.rest(), "", "not another event");
}
