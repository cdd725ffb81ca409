//! Checks that the list of crates and their dependencies in `ARCHITECTURE.md` equals the manifests.
//!
//! To regenerate the list: `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-wire --test architecture`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- The list of crates, from their manifests. -->\n";
const END: &str = "<!-- End of the list of crates. -->\n";

/// The relevant part of a manifest.
#[derive(Debug, Default)]
struct Manifest {
    name: String,
    description: String,
    /// The workspace crates that it depends on, except in tests.
    uses: BTreeSet<String>,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the string after `key =` on a line.
fn string<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let value = line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim();
    value.strip_prefix('"')?.strip_suffix('"')
}

/// Returns whether a table of a manifest has dependencies, except of tests and build scripts.
fn has_dependencies(table: &str) -> bool {
    table == "dependencies" || table.starts_with("target.") && table.ends_with(".dependencies")
}

impl Manifest {
    fn parse(text: &str) -> Manifest {
        let (mut manifest, mut table) = (Manifest::default(), String::new());
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                table = header.to_owned();
                // `[dependencies.thalweg-wire]`
                if let Some((before, name)) =
                    header.rsplit_once('.').filter(|(_, name)| name.starts_with("thalweg"))
                    && has_dependencies(before)
                {
                    manifest.uses.insert(name.to_owned());
                }
            } else if table == "package" {
                if let Some(name) = string(line, "name") {
                    manifest.name = name.to_owned();
                } else if let Some(description) = string(line, "description") {
                    manifest.description = description.to_owned();
                }
            } else if has_dependencies(&table) {
                let name: String = line
                    .chars()
                    .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
                    .collect();
                if name == "thalweg" || name.starts_with("thalweg-") {
                    manifest.uses.insert(name);
                }
            }
        }
        manifest
    }
}

fn manifests() -> BTreeMap<String, Manifest> {
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let manifest = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).ok()?;
        let manifest = Manifest::parse(&text);
        assert_eq!(
            folder.file_name().unwrap().to_str().unwrap(),
            manifest.name,
            "folders are named as crates"
        );
        Some((manifest.name.clone(), manifest))
    };
    folders.filter_map(|folder| manifest(folder.unwrap().path())).collect()
}

/// Returns the crates in topological order, each after its dependencies; otherwise alphabetical.
fn lowest_first(crates: &BTreeMap<String, Manifest>) -> Vec<&Manifest> {
    let mut listed: BTreeSet<&str> = BTreeSet::new();
    let mut order = Vec::new();
    while order.len() < crates.len() {
        let is_next = |manifest: &&Manifest| {
            !listed.contains(manifest.name.as_str())
                && manifest.uses.iter().all(|used| listed.contains(used.as_str()))
        };
        let next = crates.values().find(is_next).expect("crates of a workspace have no cycle");
        listed.insert(&next.name);
        order.push(next);
    }
    order
}

fn list(crates: &BTreeMap<String, Manifest>) -> String {
    let mut list = "| crate | what it is | uses |\n|---|---|---|\n".to_owned();
    for Manifest { name, description, uses } in lowest_first(crates) {
        let short = |name: &String| name.strip_prefix("thalweg-").unwrap_or(name).to_owned();
        let uses = uses.iter().map(short).collect::<Vec<_>>().join(", ");
        let uses = if uses.is_empty() { "nothing" } else { &uses };
        list += &format!("| `{name}` | {description} | {uses} |\n");
    }
    list
}

/// Checks that a document has `expected` between two lines, or writes it there if `THALWEG_REFRESH_GOLDEN` is set.
pub(crate) fn replace_between(document: &str, begin_line: &str, end_line: &str, expected: &str) {
    let path = root().join(document);
    let page = fs::read_to_string(&path).unwrap();
    let begin =
        page.find(begin_line).unwrap_or_else(|| panic!("{document} lacks {begin_line}")) + begin_line.len();
    let end = begin + page[begin..].find(end_line).unwrap_or_else(|| panic!("{document} lacks {end_line}"));
    if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
        fs::write(&path, format!("{}{expected}{}", &page[..begin], &page[end..])).unwrap();
        return;
    }
    assert!(page[begin..end] == *expected, "{document} should contain:\n{expected}");
}

#[test]
fn the_list_of_crates_equals_the_manifests() {
    replace_between("ARCHITECTURE.md", BEGIN, END, &format!("\n{}\n", list(&manifests())));
}

#[test]
fn all_forms_of_dependencies_are_parsed() {
    let manifest = Manifest::parse(
        "[package]\nname = \"thalweg-a\"\ndescription = \"An a.\"\n[features]\nb = [\"thalweg-x/b\"]\n\
         [dependencies]\nthalweg-b.workspace = true\nthalweg-c = { path = \"../c\" }\nserde.workspace = true\n\
         [dependencies.thalweg-d]\nworkspace = true\n[target.'cfg(unix)'.dependencies]\nthalweg-e.workspace = true\n\
         [dev-dependencies]\nthalweg-f.workspace = true\n[build-dependencies]\nthalweg-g = \"1\"\n",
    );
    assert_eq!((manifest.name.as_str(), manifest.description.as_str()), ("thalweg-a", "An a."));
    let uses: Vec<_> = manifest.uses.iter().map(String::as_str).collect();
    assert_eq!(uses, ["thalweg-b", "thalweg-c", "thalweg-d", "thalweg-e"]);
}
