//! Writes a crate for a scheme of one's own: a copy of the example `least-slack` with another name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The files of the example that are copied, with their text.
const FILES: [(&str, &str); 5] = [
    ("src/lib.rs", include_str!("../../../../examples/least-slack/src/lib.rs")),
    ("src/main.rs", include_str!("../../../../examples/least-slack/src/main.rs")),
    ("tests/scheme.rs", include_str!("../../../../examples/least-slack/tests/scheme.rs")),
    ("experiment.toml", include_str!("../../../../examples/least-slack/experiment.toml")),
    ("README.md", include_str!("../../../../examples/least-slack/README.md")),
];

/// The crates of Thalweg that a scheme needs.
const CRATES: [&str; 5] =
    ["thalweg", "thalweg-config", "thalweg-emulator", "thalweg-experiment", "thalweg-network"];

/// The longest name.
const MAX_LENGTH: usize = 30;

/// Why no crate was written.
#[derive(Debug, Error)]
pub enum NewSchemeError {
    /// The name.
    #[error(
        "invalid name {name:?} of a scheme: expected 2 to {MAX_LENGTH} lower-case letters, digits and hyphens, a letter first"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// The name is that of a scheme of Thalweg.
    #[error("there is a scheme {name:?} already: choose another name")]
    Known {
        /// The name.
        name: String,
    },
    /// The folder exists.
    #[error("{} exists: choose another name, or remove it", .0.display())]
    Exists(PathBuf),
    /// The source of Thalweg is missing.
    #[error(
        "{} has no crates/thalweg-emulator: the crate depends on the source of Thalweg, name its folder with --source",
        .0.display()
    )]
    NoSource(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// Returns the folder of the source that this program was built from.
pub fn default_source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes the crate `name` into a folder of that name within `parent`, which depends on the source of Thalweg in `source`.
/// Returns the folder.
///
/// # Errors
/// If the name is invalid or in use, the folder exists, the source is missing, or a file cannot be written.
pub fn write(parent: &Path, name: &str, source: &Path) -> Result<PathBuf, NewSchemeError> {
    check(name)?;
    let source = match source.join("crates/thalweg-emulator").is_dir() {
        true => source.canonicalize().unwrap_or_else(|_| source.to_owned()),
        false => return Err(NewSchemeError::NoSource(source.to_owned())),
    };
    let folder = parent.join(name);
    if folder.exists() {
        return Err(NewSchemeError::Exists(folder));
    }
    let files = FILES.map(|(path, text)| (path, renamed(text, name)));
    let files = files.into_iter().chain([
        ("Cargo.toml", manifest(name, &source)),
        // The same versions of all dependencies as in the source.
        ("Cargo.lock", fs::read_to_string(source.join("Cargo.lock")).unwrap_or_default()),
        (".gitignore", "/target\n".to_owned()),
    ]);
    for (path, text) in files {
        let path = folder.join(path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.map_err(|source| NewSchemeError::Io { path, source })?;
    }
    Ok(folder)
}

fn check(name: &str) -> Result<(), NewSchemeError> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let words_are_whole = name.split('-').all(|word| !word.is_empty());
    let starts_with_letter = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !(2..=MAX_LENGTH).contains(&name.len())
        || !name.chars().all(is_plain)
        || !words_are_whole
        || !starts_with_letter
    {
        return Err(NewSchemeError::Name { name: name.to_owned() });
    }
    let is_known = thalweg_emulator::schemes::SCHEMES.iter().any(|known| known.name == snake(name));
    if is_known || CRATES.contains(&name) {
        return Err(NewSchemeError::Known { name: name.to_owned() });
    }
    Ok(())
}

fn snake(name: &str) -> String {
    name.replace('-', "_")
}

fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    name.split('-').map(word).collect()
}

/// Replaces the example's name in all its forms. The description of what it does stays, to be changed with the code.
fn renamed(text: &str, name: &str) -> String {
    text.replace("least-slack", name).replace("least_slack", &snake(name)).replace("LeastSlack", &camel(name))
}

fn manifest(name: &str, source: &Path) -> String {
    let dependency =
        |krate: &str| format!("{krate} = {{ path = {:?} }}\n", source.join("crates").join(krate));
    let dependencies: String = CRATES.into_iter().map(dependency).collect();
    format!(
        "[package]\n\
         name = \"{name}\"\n\
         description = \"thalweg emulate with a scheme of its own\"\n\
         version = \"0.1.0\"\n\
         edition = \"2024\"\n\
         publish = false\n\
         \n\
         [dependencies]\n\
         {dependencies}\
         \n\
         [dev-dependencies]\n\
         tempfile = \"3\"\n\
         \n\
         [workspace]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crate_has_the_new_name_everywhere() {
        let parent = tempfile::tempdir().unwrap();
        let folder = write(parent.path(), "my-own2", &default_source()).unwrap();
        let read = |path: &str| fs::read_to_string(folder.join(path)).unwrap();
        for (path, _) in FILES {
            let text = read(path).to_lowercase();
            assert!(
                !["least-slack", "least_slack", "leastslack"].iter().any(|name| text.contains(name)),
                "{path}"
            );
        }
        assert!(read("src/lib.rs").contains("pub struct MyOwn2 {"));
        assert!(read("src/main.rs").contains("use my_own2::MyOwn2;"));
        assert!(read("experiment.toml").contains("name = \"my_own2\""));
        let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
        assert_eq!(manifest["package"]["name"].as_str(), Some("my-own2"));
        for krate in CRATES {
            let path = manifest["dependencies"][krate]["path"].as_str().unwrap();
            assert!(Path::new(path).join("Cargo.toml").is_file(), "{path}");
        }
        let again = write(parent.path(), "my-own2", &default_source()).unwrap_err();
        assert!(matches!(again, NewSchemeError::Exists(_)), "{again}");
    }

    /// A dependency that the example has and the template lacks would not compile.
    #[test]
    fn the_crate_depends_on_what_the_example_depends_on() {
        let manifest = fs::read_to_string(default_source().join("examples/least-slack/Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let names: Vec<&str> =
            manifest["dependencies"].as_table().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, CRATES);
    }

    #[test]
    fn bad_names_and_a_missing_source_are_refused() {
        let parent = tempfile::tempdir().unwrap();
        for name in ["", "x", "My", "a b", "a_b", "-ab", "ab-", "a--b", "1ab", "../ab", &"a".repeat(31)] {
            let error = write(parent.path(), name, &default_source()).unwrap_err();
            assert!(matches!(error, NewSchemeError::Name { .. }), "{name}: {error}");
        }
        for name in ["droptail", "red-ecn", "thalweg"] {
            let error = write(parent.path(), name, &default_source()).unwrap_err();
            assert!(matches!(error, NewSchemeError::Known { .. }), "{name}: {error}");
        }
        let error = write(parent.path(), "fine", parent.path()).unwrap_err();
        assert!(error.to_string().contains("--source"), "{error}");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
