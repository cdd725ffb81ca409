//! Salted hashes of users and files.
//!
//! A hash is the first half of HMAC-SHA256 (RFC 2104) of the text, with the salt as the key. Only hosts with the same salt give the same
//! hashes, so an operator copies the salt to the hosts of a site whose users are to be recognised on all of them.
//!
//! Programs put names into their messages too. There, names are replaced by `<name>`: those that are known, and everything that looks like
//! a file name. A file name without quotes and slashes that belongs to another transfer is not recognised.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use thiserror::Error;

/// Length of a salt in bytes.
const SALT: usize = 32;

/// What stands for a name in a message until it is complete: no letter of a name.
const HIDDEN: char = '\u{0}';

/// Quotation marks: the first one, and those that may be the last.
const QUOTES: [(char, &[char]); 5] =
    [('"', &['"']), ('\'', &['\'']), ('`', &['`', '\'']), ('‘', &['’']), ('“', &['”'])];

/// Words with a slash that are no file names, as in "Input/output error".
const NO_FILES: [&str; 3] = ["i/o", "input/output", "read/write"];

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

    /// Returns the text to report instead of a message, such as why a transfer failed. `<name>` replaces these names and the last part of
    /// each path, quoted parts, and words with a slash.
    pub fn message(&self, message: &str, names: [&str; 2]) -> String {
        if self.key.is_none() {
            return message.to_owned();
        }
        let mut message = message.to_owned();
        for name in names {
            let last = name.rsplit('/').next().unwrap_or(name);
            message = without_name(&without_name(&message, name), last);
        }
        without_paths(&without_quotations(&message)).replace(HIDDEN, "<name>")
    }
}

/// Hides a name where it is not part of a longer word.
fn without_name(text: &str, name: &str) -> String {
    if name.is_empty() {
        return text.to_owned();
    }
    let mut hidden = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(name) {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if !ends_in_word(before) && !begins_in_word(after) {
            hidden += &text[from..at];
            hidden.push(HIDDEN);
            from = at + name.len();
        }
    }
    hidden + &text[from..]
}

/// Hides quoted parts. One without an end extends to the end of the text.
fn without_quotations(text: &str) -> String {
    let mut hidden = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        let is_apostrophe = letter == '\'' && ends_in_word(&hidden);
        match QUOTES.iter().find(|(first, _)| *first == letter && !is_apostrophe) {
            Some((_, last)) => {
                hidden.push(HIDDEN);
                rest = after_quotation(after, last);
            }
            None => {
                hidden.push(letter);
                rest = after;
            }
        }
    }
    hidden
}

/// Returns what follows the end of a quotation: a mark that is not escaped, and not inside a word.
fn after_quotation<'a>(text: &'a str, last: &[char]) -> &'a str {
    let mut ends = text.match_indices(last).map(|(at, mark)| (&text[..at], &text[at + mark.len()..]));
    ends.find(|(quoted, after)| !quoted.ends_with('\\') && !begins_in_word(after))
        .map_or("", |(_, after)| after)
}

/// Hides words with a slash, without the punctuation around them.
fn without_paths(text: &str) -> String {
    let mut hidden = String::new();
    for piece in text.split_inclusive(char::is_whitespace) {
        let word =
            piece.trim_matches(|letter: char| letter.is_whitespace() || "()[]{}<>,;:.!?".contains(letter));
        let is_path = word.contains(['/', '\\']) && !NO_FILES.contains(&word.to_lowercase().as_str());
        match is_path {
            true => hidden += &piece.replacen(word, &HIDDEN.to_string(), 1),
            false => hidden += piece,
        }
    }
    hidden
}

fn begins_in_word(text: &str) -> bool {
    text.chars().next().is_some_and(char::is_alphanumeric)
}

fn ends_in_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(char::is_alphanumeric)
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
    fn messages_have_no_names_but_their_reasons() {
        let folder = tempfile::tempdir().unwrap();
        let hashed = Privacy::hashed(&folder.path().join("salt")).unwrap();
        let cases = [
            (
                "[sender] link_stat \"missing.bin\" (in data) failed: No such file or directory (2)",
                "[sender] link_stat <name> (in data) failed: No such file or directory (2)",
            ),
            (
                "Failed to copy: open /home/ada/x: permission denied",
                "Failed to copy: open <name>: permission denied",
            ),
            ("can't open 'it isn't' of ada: it isn't there", "can't open <name> of <name>: it isn't there"),
            ("cannot stat `a b': Input/output error", "cannot stat <name>: Input/output error"),
            ("run 7.tar failed (data/run 7.tar), i/o timeout", "<name> failed (<name>), i/o timeout"),
            ("\"a\\\" b\", ‘x’s’ and \"cut off in the", "<name>, <name> and <name>"),
            ("HTTP status 404, not adapted", "HTTP status 404, not adapted"),
            ("C:\\data is full; ../ada.", "<name> is full; ..<name>."),
            ("", ""),
        ];
        for (message, expected) in cases {
            assert_eq!(hashed.message(message, ["ada", "data/run 7.tar"]), expected);
            assert_eq!(Privacy::clear().message(message, ["ada", "data/run 7.tar"]), message);
        }
        assert_eq!(hashed.message("no name", ["", ""]), "no name");
        assert_eq!(hashed.message("no name", ["name", "a/name"]), "no <name>");
    }

    #[test]
    fn other_contents_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("salt");
        fs::write(&path, "secret").unwrap();
        assert!(Privacy::hashed(&path).unwrap_err().to_string().contains("expected a salt"));
    }
}
