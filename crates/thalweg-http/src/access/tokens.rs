//! API tokens and their scopes.
//!
//! The token file has lines `NAME SCOPE SECRET`. A `#` at the start of a line or after a space starts a comment:
//!
//! ```text
//! grafana    read   sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! operator   write  4e1c0b7a-this-one-in-clear-5d2f
//! dtn1       report sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752
//! ```
//!
//! A secret is in clear text, or its SHA-256, so that the file does not reveal it. Only digests are kept in memory. The digest of a
//! presented token is compared with all of them in constant time, so that the time reveals nothing.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use thalweg_api::is_token_name;
use thiserror::Error;

/// Maximum size of a token file in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Maximum number of tokens.
const MAX_TOKENS: usize = 1_024;

/// Minimum length of a secret: 16 characters of base64 are 96 bits.
const MIN_SECRET: usize = 16;

/// The scope of a token. `Write` includes the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Reports in the name of the token, such as those of a transfer host, and nothing else.
    Report,
    /// Requests that change nothing.
    Read,
    /// All requests, such as changing the topology or dumping samples.
    Write,
}

/// An unknown scope.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown scope: expected report, read or write")]
pub struct ParseScopeError;

/// A list of tokens.
pub struct Tokens(Vec<Token>);

/// A token without its secret.
pub struct Token {
    /// Its name.
    pub name: Arc<str>,
    /// Its scope.
    pub scope: Scope,
    digest: [u8; 32],
}

/// Why a token file is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("cannot read the token file {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Other users can read the file.
    #[error("token file {} is accessible to other users (mode {mode:04o}): run chmod 600 {}", file.display(), file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Mode of the file.
        mode: u32,
    },
    /// A line is invalid.
    #[error("{}:{line}: {problem}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The problem. No message repeats a secret.
        problem: TokenProblem,
    },
    /// The file has no token.
    #[error("no token in {}: expected lines NAME SCOPE SECRET", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
}

/// A problem in a line of a token file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenProblem {
    /// The line does not have three words.
    #[error("expected NAME SCOPE SECRET")]
    Format,
    /// The name is too long or has other characters.
    #[error("invalid name: expected at most 64 letters, digits and -_.@")]
    Name,
    /// An earlier token has the name.
    #[error("duplicate name: already used in line {first}")]
    DuplicateName {
        /// Line of the earlier token.
        first: usize,
    },
    /// The scope is unknown.
    #[error(transparent)]
    Scope(#[from] ParseScopeError),
    /// The secret is too short.
    #[error("secret too short: expected at least {MIN_SECRET} characters, such as from openssl rand -hex 32")]
    TooShort,
    /// The digest is invalid.
    #[error("invalid digest: expected sha256: and 64 hexadecimal digits")]
    Digest,
    /// A `#` that may be a part of a secret or a comment.
    #[error("# within a word: comments start after a space, and names and secrets must not contain #")]
    MisplacedHash,
    /// There are too many tokens.
    #[error("more than {MAX_TOKENS} tokens")]
    TooMany,
}

impl FromStr for Scope {
    type Err = ParseScopeError;

    fn from_str(text: &str) -> Result<Self, ParseScopeError> {
        match text {
            "report" => Ok(Scope::Report),
            "read" => Ok(Scope::Read),
            "write" => Ok(Scope::Write),
            _ => Err(ParseScopeError),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Scope::Report => "report",
            Scope::Read => "read",
            Scope::Write => "write",
        })
    }
}

impl Scope {
    /// Whether a token with this scope permits requests that need another.
    pub fn includes(self, wanted: Scope) -> bool {
        self == Scope::Write || self == wanted
    }
}

impl Tokens {
    /// Reads a token file. Only its owner may have access, unless it is a credential of systemd (systemd.exec(5),
    /// `$CREDENTIALS_DIRECTORY`), which systemd protects by other means.
    ///
    /// # Errors
    /// If other users have access, or the file is invalid.
    pub fn load(path: &Path) -> Result<Tokens, TokenFileError> {
        let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
        Tokens::load_with(path, credentials.as_deref())
    }

    pub(super) fn load_with(path: &Path, credentials: Option<&Path>) -> Result<Tokens, TokenFileError> {
        let unreadable = |source| TokenFileError::Unreadable { file: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let mode = metadata.mode() & 0o7777;
        if mode & 0o077 != 0 && !credentials.is_some_and(|folder| is_within(path, folder)) {
            return Err(TokenFileError::Exposed { file: path.to_owned(), mode });
        }
        let mut text = String::new();
        let mut limited = std::io::Read::take(file, MAX_FILE);
        std::io::Read::read_to_string(&mut limited, &mut text).map_err(unreadable)?;
        let invalid = |(line, problem)| TokenFileError::Invalid { file: path.to_owned(), line, problem };
        let tokens = Tokens::parse(&text).map_err(invalid)?;
        if tokens.is_empty() {
            return Err(TokenFileError::Empty { file: path.to_owned() });
        }
        Ok(tokens)
    }

    /// Parses the text of a token file.
    ///
    /// # Errors
    /// Returns the first invalid line, from 1, and its problem.
    pub fn parse(text: &str) -> Result<Tokens, (usize, TokenProblem)> {
        let mut tokens = Vec::new();
        let mut names: Vec<(&str, usize)> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let content = without_comment(text).trim();
            if content.is_empty() {
                continue;
            }
            let (name, token) = parse_line(content).map_err(|problem| (line, problem))?;
            if let Some(&(_, first)) = names.iter().find(|(taken, _)| *taken == name) {
                return Err((line, TokenProblem::DuplicateName { first }));
            }
            if tokens.len() == MAX_TOKENS {
                return Err((line, TokenProblem::TooMany));
            }
            names.push((name, line));
            tokens.push(token);
        }
        Ok(Tokens(tokens))
    }

    /// Returns the token with this secret; `None` if it is unknown. The comparisons take constant time.
    pub fn find(&self, presented: &[u8]) -> Option<&Token> {
        let presented = sha256(presented);
        let mut found = u32::MAX;
        for (number, token) in (0..).zip(&self.0) {
            let is_same: Choice = token.digest.ct_eq(&presented);
            found.conditional_assign(&number, is_same);
        }
        self.0.get(found as usize)
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Does not reveal the tokens.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.len())
    }
}

/// Whether a file is in a directory, after resolving links and `..`.
fn is_within(path: &Path, folder: &Path) -> bool {
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(path), Ok(folder)) => path.starts_with(folder),
        _ => false,
    }
}

fn without_comment(line: &str) -> &str {
    let begins = |&(at, _): &(usize, &str)| line[..at].chars().next_back().is_none_or(char::is_whitespace);
    line.match_indices('#').find(begins).map_or(line, |(at, _)| &line[..at])
}

fn parse_line(content: &str) -> Result<(&str, Token), TokenProblem> {
    if content.contains('#') {
        return Err(TokenProblem::MisplacedHash);
    }
    let words: Vec<&str> = content.split_whitespace().collect();
    let [name, scope, secret] = words[..] else { return Err(TokenProblem::Format) };
    if !is_token_name(name) {
        return Err(TokenProblem::Name);
    }
    let scope = scope.parse()?;
    let digest = match secret.strip_prefix("sha256:") {
        Some(hex) => parse_digest(hex).ok_or(TokenProblem::Digest)?,
        None if secret.len() < MIN_SECRET => return Err(TokenProblem::TooShort),
        None => sha256(secret.as_bytes()),
    };
    Ok((name, Token { name: name.into(), scope, digest }))
}

fn parse_digest(hex: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if hex.len() != 64 || !hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in digest.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(digest)
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}
