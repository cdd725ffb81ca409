//! SNMP credentials, from a file that only its owner can read.
//!
//! One setting per line, empty lines and lines that start with `#` are skipped:
//!
//! ```text
//! user thalweg
//! auth sha256 PASSWORD
//! priv aes128 PASSWORD
//! ```
//!
//! or `community PUBLIC` for SNMP v2c, which sends everything in clear text.

use std::fmt;

use async_snmp::{Auth, AuthProtocol, PrivProtocol, UsmConfig};

/// The shortest password (RFC 3414, section 11.2).
const MIN_PASSWORD_LENGTH: usize = 8;

const NO_AUTH: &str = "v3 noAuthNoPriv";

/// Credentials of SNMP v2c or v3. `Debug` shows no secret.
#[derive(Clone)]
pub struct Credentials {
    auth: Auth,
    user: Option<String>,
    level: &'static str,
}

impl Credentials {
    /// Parses the contents of a credentials file. `file` is its name for messages.
    ///
    /// # Errors
    /// A message with file, line and what is expected. It contains no secret.
    pub fn parse(text: &str, file: &str) -> Result<Credentials, String> {
        let mut settings = Settings::default();
        for (line, number) in text.lines().zip(1..) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.first().is_none_or(|word| word.starts_with('#')) {
                continue;
            }
            settings.read(&words).map_err(|reason| format!("{file}:{number}: {reason}"))?;
        }
        settings.credentials().map_err(|reason| format!("{file}: {reason}"))
    }

    /// Returns credentials of SNMP v2c.
    pub fn community(community: &str) -> Credentials {
        Credentials { auth: Auth::v2c(community), user: None, level: "v2c" }
    }

    /// Returns the user, or `the community`.
    pub fn user(&self) -> &str {
        self.user.as_deref().unwrap_or("the community")
    }

    /// Returns version and security: `v2c`, `v3 authPriv`.
    pub const fn level(&self) -> &'static str {
        self.level
    }

    /// Returns the same user without authentication; `None` for v2c and for users without authentication.
    pub(super) fn probe(&self) -> Option<Credentials> {
        let user = self.user.clone().filter(|_| self.level != NO_AUTH)?;
        Some(Credentials { auth: UsmConfig::new(user.clone()).into(), user: Some(user), level: NO_AUTH })
    }

    pub(super) fn auth(&self) -> Auth {
        self.auth.clone()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Settings {
    community: Option<String>,
    user: Option<String>,
    auth: Option<(AuthProtocol, String)>,
    privacy: Option<(PrivProtocol, String)>,
    context: Option<String>,
}

impl Settings {
    fn read(&mut self, words: &[&str]) -> Result<(), String> {
        let is_new = match *words {
            ["community", community] => self.community.replace(community.to_owned()).is_none(),
            ["user", user] => self.user.replace(user.to_owned()).is_none(),
            ["context", context] => self.context.replace(context.to_owned()).is_none(),
            ["auth", protocol, password] => {
                self.auth.replace((auth_protocol(protocol)?, checked(password)?)).is_none()
            }
            ["priv", protocol, password] => {
                self.privacy.replace((priv_protocol(protocol)?, checked(password)?)).is_none()
            }
            // The rest of the line may be a secret.
            _ => {
                return Err(
                    "expected one of: community SECRET, user NAME, auth PROTOCOL PASSWORD, priv PROTOCOL \
                            PASSWORD, context NAME"
                        .to_owned(),
                );
            }
        };
        match is_new {
            true => Ok(()),
            false => Err(format!("{} is set twice", words[0])),
        }
    }

    fn credentials(self) -> Result<Credentials, String> {
        let Some(user) = self.user else {
            return match (self.community, self.auth.is_none() && self.privacy.is_none()) {
                (Some(community), true) => Ok(Credentials::community(&community)),
                (_, false) => Err("auth and priv need a line with the user".to_owned()),
                (None, true) => {
                    Err("expected a line with user, for SNMP v3, or community, for v2c".to_owned())
                }
            };
        };
        if self.community.is_some() {
            return Err("expected either user, for SNMP v3, or community, for v2c, not both".to_owned());
        }
        let usm = UsmConfig::new(user.clone()).context_name(self.context.unwrap_or_default());
        let unsupported = |error| format!("these protocols are not supported: {error}");
        let (usm, level) = match (self.auth, self.privacy) {
            (None, None) => (usm, NO_AUTH),
            (Some((auth, password)), None) => {
                (usm.auth(auth, password).map_err(unsupported)?, "v3 authNoPriv")
            }
            (Some((auth, password)), Some((privacy, key))) => {
                (usm.auth_priv(auth, password, privacy, key).map_err(unsupported)?, "v3 authPriv")
            }
            (None, Some(_)) => return Err("priv needs a line with auth".to_owned()),
        };
        Ok(Credentials { auth: usm.into(), user: Some(user), level })
    }
}

/// The message does not repeat the word: it may be a password in the wrong place.
fn auth_protocol(name: &str) -> Result<AuthProtocol, String> {
    let expected =
        "expected auth PROTOCOL PASSWORD, with protocol sha256, sha224, sha384, sha512, sha1 or md5";
    name.parse().map_err(|_| format!("unknown auth protocol: {expected}"))
}

/// Both ways to extend keys give the same keys for the protocols of RFC 7860 with at least 256 bits.
fn priv_protocol(name: &str) -> Result<PrivProtocol, String> {
    let name = match name.to_ascii_lowercase().as_str() {
        "aes192" => "aes192-reeder".to_owned(),
        "aes256" => "aes256-reeder".to_owned(),
        name => name.to_owned(),
    };
    let expected = "expected priv PROTOCOL PASSWORD, with protocol aes128, aes192, aes256, aes192-blumenthal, aes256-blumenthal or \
                    des";
    name.parse().map_err(|_| format!("unknown priv protocol: {expected}"))
}

fn checked(password: &str) -> Result<String, String> {
    match password.len() >= MIN_PASSWORD_LENGTH {
        true => Ok(password.to_owned()),
        false => Err("the password is too short: expected at least 8 characters (RFC 3414)".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_parsed_and_no_secret_is_shown() {
        let text = "# poll\nuser thalweg\nauth sha256 correct-horse\npriv aes128 battery-staple\n";
        let credentials = Credentials::parse(text, "c").unwrap();
        assert_eq!((credentials.user(), credentials.level()), ("thalweg", "v3 authPriv"));
        let shown = format!("{credentials:?}");
        assert!(
            shown.contains("thalweg") && !shown.contains("horse") && !shown.contains("staple"),
            "{shown}"
        );
        assert_eq!(Credentials::parse("community secret1\n", "c").unwrap().level(), "v2c");
        assert!(!format!("{:?}", Credentials::community("secret1")).contains("secret1"));
    }

    #[test]
    fn errors_name_the_line_and_no_secret() {
        for (text, expected) in [
            ("", "c: expected a line with user"),
            ("user a\ncommunity geheim99", "c: expected either user"),
            ("user a\npriv aes128 geheim99", "c: priv needs a line with auth"),
            ("auth sha256 geheim99", "c: auth and priv need a line with the user"),
            (
                "user a\nauth geheim99 sha256",
                "c:2: unknown auth protocol: expected auth PROTOCOL PASSWORD, with",
            ),
            (
                "user a\nauth sha256 geheim99\npriv geheim98 aes128",
                "c:3: unknown priv protocol: expected priv PROTOCOL PASSWORD, with",
            ),
            ("user a\n\nauth sha256 kurz", "c:3: the password is too short"),
            ("user a\nuser b", "c:2: user is set twice"),
            ("password geheim99", "c:1: expected one of: community"),
        ] {
            let error = Credentials::parse(text, "c").unwrap_err();
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains("geheim") && !error.contains("kurz"), "{error}");
        }
    }
}
