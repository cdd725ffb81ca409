//! Salted hashes of users and files.
//!
//! A hash is the first half of HMAC-SHA256 (RFC 2104) of the text, with the salt as the key. Only hosts with the same salt give the same
//! hashes, so an operator copies the salt to the hosts of a site whose users are to be recognised on all of them.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use thiserror::Error;

/// Length of a salt in bytes.
const SALT: usize = 32;

/// Why a salt cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SaltError {
    /// The file cannot be read or created.
    #[error("cannot use the salt file {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file has other contents.
    #[error("{path}: expected a salt: 64 hexadecimal digits, such as from openssl rand -hex 32")]
    Content {
        /// The file.
        path: String,
    },
}

/// Hides names of users and files, or does not.
pub struct Privacy {
    /// The salt; `None` if names are reported as they are.
    key: Option<hmac::Key>,
}

impl std::fmt::Debug for Privacy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.key.is_some() { "Privacy(hashed)" } else { "Privacy(clear)" })
    }
}

impl Privacy {
    /// Reports names as they are.
    pub fn clear() -> Privacy {
        Privacy { key: None }
    }

    /// Hides names by the salt in a file. Creates the file if it does not exist.
    ///
    /// # Errors
    /// If the file cannot be read or created, or contains something else.
    pub fn hashed(path: &Path) -> Result<Privacy, SaltError> {
        let shown = || path.display().to_string();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create(path).map_err(|source| SaltError::Io { path: shown(), source })?
            }
            Err(source) => return Err(SaltError::Io { path: shown(), source }),
        };
        let salt = parse(text.trim()).ok_or_else(|| SaltError::Content { path: shown() })?;
        Ok(Privacy { key: Some(hmac::Key::new(hmac::HMAC_SHA256, &salt)) })
    }

    /// Hides names by the salt in a file that exists.
    ///
    /// # Errors
    /// If the file cannot be read, or contains something else.
    pub fn existing(path: &Path) -> Result<Privacy, SaltError> {
        match path.exists() {
            true => Privacy::hashed(path),
            false => Err(SaltError::Io {
                path: path.display().to_string(),
                source: io::ErrorKind::NotFound.into(),
            }),
        }
    }

    /// Returns the text to report instead of a name. An empty name stays empty.
    pub fn name(&self, name: &str) -> String {
        match &self.key {
            Some(key) if !name.is_empty() => {
                let tag = hmac::sign(key, name.as_bytes());
                hex(&tag.as_ref()[..16])
            }
            _ => name.to_owned(),
        }
    }
}

/// Returns bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn create(path: &Path) -> io::Result<String> {
    let mut salt = [0; SALT];
    SystemRandom::new().fill(&mut salt).map_err(|_| io::Error::other("no random numbers"))?;
    let text = hex(&salt);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    file.sync_all()?;
    Ok(text)
}

fn parse(text: &str) -> Option<Vec<u8>> {
    let is_hex = text.len() == 2 * SALT && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    is_hex.then(|| (0..SALT).map(|number| byte(2 * number)).collect()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_same_hash_with_the_same_salt_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("salt");
        let first = Privacy::hashed(&path).unwrap();
        let again = Privacy::hashed(&path).unwrap();
        let other = Privacy::hashed(&folder.path().join("other")).unwrap();
        assert_eq!(first.name("alice"), again.name("alice"));
        assert_ne!(first.name("alice"), other.name("alice"));
        assert_ne!(first.name("alice"), first.name("bob"));
        assert_eq!((first.name("alice").len(), first.name("").as_str()), (32, ""));
        assert_eq!(Privacy::clear().name("alice"), "alice");
    }

    #[test]
    fn hashes_are_hmac_sha256() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("salt");
        // RFC 4231, test case 2, has the key "Jefe", which HMAC pads with zeros.
        fs::write(&path, format!("4a656665{}", "00".repeat(28))).unwrap();
        let hashed = Privacy::hashed(&path).unwrap().name("what do ya want for nothing?");
        assert_eq!(hashed, "5bdcc146bf60754e6a042426089575c7");
    }

    #[test]
    fn other_contents_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("salt");
        fs::write(&path, "secret").unwrap();
        assert!(Privacy::hashed(&path).unwrap_err().to_string().contains("expected a salt"));
    }
}
