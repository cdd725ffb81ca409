//! Tokens: who may ask, and for what.
//!
//! A file of lines `NAME SCOPE SECRET`; `#` at the beginning of a line or after a space begins a comment:
//!
//! ```text
//! grafana    read   sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//! operator   write  4e1c0b7a-this-one-in-clear-5d2f
//! ```
//!
//! A secret stands there as it is, or as its SHA-256, so that the file gives no token away. Only digests are kept in
//! memory; one that is presented is hashed and compared with all of them in constant time, so that how long it takes
//! says nothing of how close it came.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ring::digest::{SHA256, digest};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};
use thiserror::Error;

/// Most bytes of a token file.
const MAX_FILE: u64 = 1 << 20;

/// Most tokens.
const MAX_TOKENS: usize = 1_024;

/// Longest name.
const MAX_NAME: usize = 64;

/// Fewest characters of a secret: 16 of base64 are 96 bits.
const LEAST_SECRET: usize = 16;

/// What a token is good for. A wider scope includes the narrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything that changes nothing.
    Read,
    /// Everything: to change the topology, to have samples written.
    Write,
}

/// Why a scope could not be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("a scope is read or write")]
pub struct ParseScopeError;

/// All tokens there are.
pub struct Tokens(Vec<Token>);

struct Token {
    scope: Scope,
    digest: [u8; 32],
}

/// Why a token file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// It cannot be read.
    #[error("cannot read the token file {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others can read it.
    #[error("the token file {} has mode {mode:04o}, so that others can read it: chmod 600 {}", file.display(), file.display())]
    Exposed {
        /// The file.
        file: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A line is wrong.
    #[error("{}:{line}: {problem}", file.display())]
    Wrong {
        /// The file.
        file: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong. No message repeats a secret.
        problem: TokenProblem,
    },
    /// It has no token.
    #[error("the token file {} has no token: expected lines NAME SCOPE SECRET", file.display())]
    Empty {
        /// The file.
        file: PathBuf,
    },
}

/// What can be wrong with a line of a token file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenProblem {
    /// Not three words.
    #[error("expected NAME SCOPE SECRET")]
    NotThreeWords,
    /// A name that cannot be shown.
    #[error("a name has at most {MAX_NAME} letters, digits and -_.@")]
    Name,
    /// Two tokens have it.
    #[error("there is another token of this name in line {first}")]
    NameTaken {
        /// The line of the first.
        first: usize,
    },
    /// Not a scope.
    #[error(transparent)]
    Scope(#[from] ParseScopeError),
    /// A secret that can be guessed.
    #[error("a secret has at least {LEAST_SECRET} characters; for a good one: openssl rand -hex 32")]
    TooShort,
    /// Not a digest.
    #[error("sha256: is to be followed by 64 hexadecimal digits")]
    Digest,
    /// A `#` where it would be unclear whether it is part of a secret.
    #[error("# within a word: a comment begins after a space, and names and secrets have none")]
    Hash,
    /// More tokens than are kept.
    #[error("more than {MAX_TOKENS} tokens")]
    TooMany,
}

impl FromStr for Scope {
    type Err = ParseScopeError;

    fn from_str(text: &str) -> Result<Self, ParseScopeError> {
        match text {
            "read" => Ok(Scope::Read),
            "write" => Ok(Scope::Write),
            _ => Err(ParseScopeError),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Scope::Read => "read",
            Scope::Write => "write",
        })
    }
}

impl Tokens {
    /// Reads a file that nobody but its owner can read or write, or a credential that systemd gives the service
    /// (systemd.exec(5), `$CREDENTIALS_DIRECTORY`): those are its user's alone by other means than their mode.
    ///
    /// # Errors
    /// If others can, or it is not a token file.
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
        let wrong = |(line, problem)| TokenFileError::Wrong { file: path.to_owned(), line, problem };
        let tokens = Tokens::parse(&text).map_err(wrong)?;
        if tokens.is_empty() {
            return Err(TokenFileError::Empty { file: path.to_owned() });
        }
        Ok(tokens)
    }

    /// Reads the text of a token file.
    ///
    /// # Errors
    /// With the first line that is wrong, from 1, and what is wrong with it.
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
                return Err((line, TokenProblem::NameTaken { first }));
            }
            if tokens.len() == MAX_TOKENS {
                return Err((line, TokenProblem::TooMany));
            }
            names.push((name, line));
            tokens.push(token);
        }
        Ok(Tokens(tokens))
    }

    /// What a token is good for; `None` if there is none like it. Takes as long for either.
    pub fn scope_of(&self, presented: &[u8]) -> Option<Scope> {
        let presented = sha256(presented);
        let mut found = 0u8;
        for token in &self.0 {
            let is_same: Choice = token.digest.ct_eq(&presented);
            let scope = match token.scope {
                Scope::Read => 1,
                Scope::Write => 2,
            };
            found.conditional_assign(&scope, is_same);
        }
        match found {
            0 => None,
            1 => Some(Scope::Read),
            _ => Some(Scope::Write),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Says nothing of what they are.
impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.len())
    }
}

/// Whether a file is in a folder, wherever links and `..` lead.
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
        return Err(TokenProblem::Hash);
    }
    let words: Vec<&str> = content.split_whitespace().collect();
    let [name, scope, secret] = words[..] else { return Err(TokenProblem::NotThreeWords) };
    let is_shown = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    if name.len() > MAX_NAME || !name.chars().all(is_shown) {
        return Err(TokenProblem::Name);
    }
    let scope = scope.parse()?;
    let digest = match secret.strip_prefix("sha256:") {
        Some(hex) => parse_digest(hex).ok_or(TokenProblem::Digest)?,
        None if secret.len() < LEAST_SECRET => return Err(TokenProblem::TooShort),
        None => sha256(secret.as_bytes()),
    };
    Ok((name, Token { scope, digest }))
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
