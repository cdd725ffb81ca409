//! URLs of HTTP and HTTPS (RFC 3986) that are validated, and show no secret.
//!
//! A URL may contain user and password, or a token in its query. Neither appears in errors, logs and debug output: [`WebUrl`] hides them,
//! and [`hide_secrets`] and [`hide_secrets_within`] remove them from texts that are not valid.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;
use std::str::FromStr;

use thiserror::Error;

/// What stands for a hidden part.
const HIDDEN: &str = "***";

/// A valid URL, `http://` or `https://`. `Display` and `Debug` hide user, password, query and fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct WebUrl {
    text: String,
    /// The part between scheme and path: user, host and port.
    authority: Range<usize>,
}

/// An invalid URL. The message shows no secret.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid URL {shown:?}: {problem}")]
pub struct ParseWebUrlError {
    /// The URL without secrets.
    shown: String,
    /// What is wrong.
    problem: UrlProblem,
}

/// What is wrong with a URL.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlProblem {
    /// It has another scheme, or none.
    #[error("expected http:// or https:// at the start")]
    Scheme,
    /// It has a character that must be encoded.
    #[error(
        "expected printable ASCII characters other than \" < > \\ and `: encode others, such as a space as %20"
    )]
    Character,
    /// Its user or password has a character that must be encoded.
    #[error("expected user and password without @ [ ]: encode them, such as @ as %40")]
    User,
    /// It has no host.
    #[error("expected a host")]
    NoHost,
    /// Its host is neither a name nor an IPv4 address.
    #[error("invalid host: expected a name or an address")]
    Host,
    /// Its IPv6 address is invalid or has no brackets.
    #[error("expected an IPv6 address in brackets, such as [2001:db8::1]")]
    Ipv6,
    /// Its port is out of range.
    #[error("invalid port: expected 1 to 65535")]
    Port,
}

impl WebUrl {
    /// Returns the URL with its secrets, for the request.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Whether it contains a user.
    pub fn has_user(&self) -> bool {
        self.text[self.authority.clone()].contains('@')
    }

    /// Returns scheme, host and port, without user, path and query, any of which may be secret.
    pub fn origin(&self) -> String {
        let authority = &self.text[self.authority.clone()];
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        format!("{}{host}", &self.text[..self.authority.start])
    }

    /// Returns all after host and port: path, query and fragment.
    pub fn after_host(&self) -> &str {
        &self.text[self.authority.end..]
    }
}

impl FromStr for WebUrl {
    type Err = ParseWebUrlError;

    fn from_str(text: &str) -> Result<WebUrl, ParseWebUrlError> {
        let authority =
            authority(text).map_err(|problem| ParseWebUrlError { shown: hide_secrets(text), problem })?;
        Ok(WebUrl { text: text.to_owned(), authority })
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = &self.text[self.authority.clone()];
        f.write_str(&self.text[..self.authority.start])?;
        match authority.split_once('@') {
            Some((_, address)) => write!(f, "{HIDDEN}@{address}")?,
            None => f.write_str(authority)?,
        }
        f.write_str(&without_query(self.after_host()))
    }
}

impl fmt::Debug for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebUrl({self})")
    }
}

/// Returns a text that should be a URL without user, password, query and fragment. Hides too much rather than too little.
pub fn hide_secrets(text: &str) -> String {
    let is_scheme = |scheme: &str| scheme.chars().all(|letter| letter.is_ascii_alphanumeric());
    let start = match text.split_once("://") {
        Some((scheme, _)) if is_scheme(scheme) => scheme.len() + "://".len(),
        _ => 0,
    };
    let (scheme, rest) = text.split_at(start);
    match rest.rsplit_once('@') {
        Some((_, address)) => format!("{scheme}{HIDDEN}@{}", without_query(address)),
        None => format!("{scheme}{}", without_query(rest)),
    }
}

/// Returns a text that may quote URLs, without their users, passwords and queries. Hides too much rather than too little.
pub fn hide_secrets_within(text: &str) -> String {
    let Some((before, rest)) = text.split_once("://") else { return text.to_owned() };
    let (mut shown, rest) = match rest.rsplit_once('@') {
        Some((_, address)) => (format!("{before}://{HIDDEN}@"), address),
        None => (format!("{before}://"), rest),
    };
    let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '`');
    let (url, after) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
    shown.push_str(&without_query(url));
    shown.push_str(&hide_secrets_within(after));
    shown
}

fn without_query(text: &str) -> String {
    match text.find(['?', '#']) {
        Some(end) => format!("{}?{HIDDEN}", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the range of user, host and port.
fn authority(text: &str) -> Result<Range<usize>, UrlProblem> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.ok_or(UrlProblem::Scheme)?;
    let is_allowed =
        |letter: char| letter.is_ascii_graphic() && !matches!(letter, '"' | '<' | '>' | '\\' | '`');
    if !text.chars().all(is_allowed) {
        return Err(UrlProblem::Character);
    }
    let start = text.len() - rest.len();
    let length = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (user, address) = rest[..length].rsplit_once('@').unwrap_or(("", &rest[..length]));
    if user.contains(['@', '[', ']']) {
        return Err(UrlProblem::User);
    }
    check_address(address)?;
    Ok(start..start + length)
}

/// Checks host and port.
fn check_address(address: &str) -> Result<(), UrlProblem> {
    let port = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(UrlProblem::Ipv6)?;
            host.parse::<Ipv6Addr>().map_err(|_| UrlProblem::Ipv6)?;
            match after {
                "" => None,
                after => Some(after.strip_prefix(':').ok_or(UrlProblem::Ipv6)?),
            }
        }
        None if address.matches(':').count() > 1 => return Err(UrlProblem::Ipv6),
        None => {
            let (host, port) =
                address.split_once(':').map_or((address, None), |(host, port)| (host, Some(port)));
            check_host(host)?;
            port
        }
    };
    let is_valid = |port: &str| {
        port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse().is_ok_and(|port: u16| port > 0)
    };
    if port.is_none_or(is_valid) { Ok(()) } else { Err(UrlProblem::Port) }
}

/// Checks a host name or an IPv4 address. A name whose last part is a number would be an address.
fn check_host(host: &str) -> Result<(), UrlProblem> {
    if host.is_empty() {
        return Err(UrlProblem::NoHost);
    }
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let is_label = |label: &str| !label.is_empty() && label.chars().all(is_allowed);
    let labels: Vec<&str> = host.strip_suffix('.').unwrap_or(host).split('.').collect();
    let is_number = labels.last().is_some_and(|label| label.bytes().all(|digit| digit.is_ascii_digit()));
    match is_number {
        true => host.parse::<Ipv4Addr>().map(drop).map_err(|_| UrlProblem::Host),
        false if labels.into_iter().all(is_label) => Ok(()),
        false => Err(UrlProblem::Host),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn valid_urls_hide_their_secrets() {
        for (text, shown) in [
            ("http://a", "http://a"),
            ("https://controller.example.net./flows", "https://controller.example.net./flows"),
            ("http://[::1]:80/x@y", "http://[::1]:80/x@y"),
            ("https://user:secret@192.0.2.1:65535/", "https://***@192.0.2.1:65535/"),
            ("https://user@host_1/hook?token=secret#secret", "https://***@host_1/hook?***"),
            ("http://a#secret", "http://a?***"),
        ] {
            let url: WebUrl = text.parse().unwrap();
            assert_eq!((url.to_string(), format!("{url:?}")), (shown.to_owned(), format!("WebUrl({shown})")));
            assert_eq!((url.expose(), url.has_user()), (text, text.contains("user")));
        }
        let url: WebUrl = "https://u:p@h:1/x?y".parse().unwrap();
        assert_eq!(url.after_host(), "/x?y");
        assert_eq!(url.origin(), "https://h:1");
    }

    #[test]
    fn invalid_urls_are_quoted_without_secrets() {
        for (text, expected) in [
            ("", "invalid URL \"\": expected http:// or https:// at the start"),
            ("ftp://user:secret@host", "invalid URL \"ftp://***@host\": expected http://"),
            ("user:secret@host/x", "invalid URL \"***@host/x\": expected http://"),
            ("user:secret@http://host", "invalid URL \"***@http://host\": expected http://"),
            ("https://", "invalid URL \"https://\": expected a host"),
            ("https://:80/", "expected a host"),
            ("https://user:secret@/", "invalid URL \"https://***@/\": expected a host"),
            ("https://[::1", "invalid URL \"https://[::1\": expected an IPv6 address in brackets"),
            ("https://[::1]x", "expected an IPv6 address"),
            ("https://[host]", "expected an IPv6 address"),
            ("https://2001:db8::1/", "expected an IPv6 address"),
            ("http://a:99999/", "invalid URL \"http://a:99999/\": invalid port: expected 1 to 65535"),
            ("http://a:0", "invalid port"),
            ("http://a:", "invalid port"),
            ("http://a:+80", "invalid port"),
            ("https://user:sec/ret@host", "invalid URL \"https://***@host\": invalid port"),
            ("https://user:sec?ret@host", "invalid URL \"https://***@host\": invalid port"),
            (
                "https://user:sec@ret@host",
                "invalid URL \"https://***@host\": expected user and password without @",
            ),
            ("https://user:sec ret@host", "invalid URL \"https://***@host\": expected printable ASCII"),
            ("http://192.0.2.256", "invalid host"),
            ("http://a..b", "invalid host"),
            ("http://a,b/?token=secret", "invalid URL \"http://a,b/?***\": invalid host"),
            ("http://h\u{f6}st", "expected printable ASCII"),
        ] {
            let message = text.parse::<WebUrl>().unwrap_err().to_string();
            assert!(message.contains(expected) && !message.contains("sec"), "{text}: {message}");
        }
    }

    #[test]
    fn quoted_urls_lose_their_secrets() {
        for (text, shown) in [
            ("reset at http://u:secret@h: why?", "reset at http://***@h: why?"),
            ("[\"https://h/?t=secret\", \"http://i?secret\"]", "[\"https://h/?***\", \"http://i?***\"]"),
            ("did you mean \"a@b\"?", "did you mean \"a@b\"?"),
        ] {
            assert_eq!(hide_secrets_within(text), shown);
        }
    }

    proptest! {
        #[test]
        fn no_password_is_shown(password in "[ -~]{0,12}", rest in "[ -~]{0,8}") {
            let text = format!("https://user:{password}SECRET@host{rest}");
            let shown = match text.parse::<WebUrl>() {
                Ok(url) => format!("{url} {url:?}"),
                Err(error) => error.to_string(),
            };
            // A password with a slash after a valid port is a path.
            prop_assume!(!password.contains(['/', '?', '#']));
            prop_assert!(!shown.contains("SECRET"), "{}", shown);
            prop_assert!(!hide_secrets_within(&text).contains("SECRET"));
        }
    }
}
