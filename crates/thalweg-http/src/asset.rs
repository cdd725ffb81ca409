//! Static files of a web page, embedded in the program and served without a token.
//!
//! Each file is compressed once (gzip, RFC 1952), and decompressed for the rare client that does not accept that. Browsers keep
//! files and ask each time whether theirs is still the current one (`ETag`, RFC 9110, section 8.8.3), so that a new version of the
//! program shows its own page.
//!
//! The page may load scripts, styles and data from its own server, and nothing else ([`APP_POLICY`]). A script or style within the
//! HTML does not run, so text of a network, such as the name of a switch, cannot become one.

use std::io::Write;

use axum::body::Body;
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::request::text;

/// What the page may load (Content Security Policy Level 3).
const APP_POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; img-src 'self' data:; \
                          connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Headers of every file.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-cache"),
    (header::VARY, "Accept-Encoding"),
    (header::CONTENT_SECURITY_POLICY, APP_POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// A file of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Path on the server, such as `/dashboard/app.js`.
    pub path: &'static str,
    /// Media type.
    pub media_type: &'static str,
    /// The file.
    pub bytes: &'static [u8],
}

/// A file, ready to send.
#[derive(Clone, Debug)]
pub(super) struct PreparedAsset {
    asset: Asset,
    compressed: Bytes,
    /// Entity tags of the compressed and of the plain file.
    tags: [HeaderValue; 2],
}

impl Asset {
    pub(super) fn prepare(self) -> PreparedAsset {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.bytes);
        let digest: String = digest.as_ref()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
        let tag = |coding: &str| {
            HeaderValue::from_str(&format!("\"{digest}{coding}\""))
                .expect("hexadecimal digits are a header value")
        };
        PreparedAsset { asset: self, compressed: compress(self.bytes), tags: [tag("-gzip"), tag("")] }
    }
}

impl PreparedAsset {
    /// Answers a request with these headers.
    pub(super) fn response(&self, request: &HeaderMap) -> Response {
        let accepts_gzip = text(request, header::ACCEPT_ENCODING).is_some_and(accepts_gzip);
        let [compressed_tag, plain_tag] = &self.tags;
        let tag = if accepts_gzip { compressed_tag } else { plain_tag };
        let is_current = text(request, header::IF_NONE_MATCH).is_some_and(|known| {
            known
                .split(',')
                .map(str::trim)
                .any(|known| known == "*" || known.trim_start_matches("W/").as_bytes() == tag)
        });
        let mut response = match is_current {
            true => Response::new(Body::empty()),
            false if accepts_gzip => Response::new(Body::from(self.compressed.clone())),
            false => Response::new(Body::from(self.asset.bytes)),
        };
        if is_current {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.asset.media_type));
        headers.insert(header::ETAG, tag.clone());
        if accepts_gzip && !is_current {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    }
}

/// Whether a client accepts gzip: `gzip` or `*` without a weight of zero (RFC 9110, section 12.5.3).
fn accepts_gzip(accepted: &str) -> bool {
    let weight = |coding: &str| {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next()?;
        let is_zero = parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32)));
        Some((name.to_ascii_lowercase(), !is_zero))
    };
    let codings: Vec<_> = accepted.split(',').filter_map(|coding| weight(coding.trim())).collect();
    let named =
        |wanted: &str| codings.iter().find(|(name, _)| name == wanted).map(|(_, is_accepted)| *is_accepted);
    named("gzip").or_else(|| named("*")).unwrap_or(false)
}

fn compress(bytes: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // A vector takes everything.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("memory can be written").into()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    const ASSET: Asset = Asset { path: "/a.js", media_type: "text/javascript", bytes: b"let a = 1;" };

    fn request(headers: &[(HeaderName, &str)]) -> HeaderMap {
        headers.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap())).collect()
    }

    async fn body(response: Response) -> Vec<u8> {
        use http_body_util::BodyExt;
        response.into_body().collect().await.unwrap().to_bytes().to_vec()
    }

    #[tokio::test]
    async fn a_file_is_compressed_for_those_who_accept_that() {
        let prepared = ASSET.prepare();
        let response = prepared.response(&request(&[(header::ACCEPT_ENCODING, "br, gzip;q=0.5")]));
        assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&body(response).await[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, ASSET.bytes);

        let response = prepared.response(&HeaderMap::new());
        assert!(!response.headers().contains_key(header::CONTENT_ENCODING));
        assert_eq!(body(response).await, ASSET.bytes);
    }

    #[tokio::test]
    async fn a_browser_that_has_the_current_file_receives_none() {
        let prepared = ASSET.prepare();
        let accept = (header::ACCEPT_ENCODING, "gzip");
        let tag = prepared.response(&request(std::slice::from_ref(&accept))).headers()[header::ETAG]
            .to_str()
            .unwrap()
            .to_owned();
        let with = |tag: &str| prepared.response(&request(&[accept.clone(), (header::IF_NONE_MATCH, tag)]));
        assert_eq!(with(&tag).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(with(&format!("\"other\", W/{tag}")).status(), StatusCode::NOT_MODIFIED);
        assert_eq!(with("\"other\"").status(), StatusCode::OK);
        // The plain file is another representation.
        let plain = prepared.response(&request(&[(header::IF_NONE_MATCH, &tag)]));
        assert_eq!(plain.status(), StatusCode::OK);
    }

    #[test]
    fn weights_of_zero_refuse_gzip() {
        for accepting in ["gzip", "GZIP", "*", "deflate, gzip;q=0.1", "identity;q=0, *"] {
            assert!(accepts_gzip(accepting), "{accepting}");
        }
        for refusing in ["", "br", "gzip;q=0", "gzip; q=0.0, br", "*;q=0"] {
            assert!(!accepts_gzip(refusing), "{refusing}");
        }
    }
}
