//! Lists in documents are complete: documents, unsafe code, modules.
//!
//! The list of unsafe code is written anew by `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-wire --test architecture`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::crates::{replace_between, root};

const UNSAFE_BEGIN: &str = "<!-- The files with unsafe code, from their attributes. -->\n";
const UNSAFE_END: &str = "<!-- End of the files with unsafe code. -->\n";

/// Lines of the README. A longer one is not read.
const MAX_README_LINES: usize = 150;

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files below `folder` with this ending, sorted.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for path in fs::read_dir(&next).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_document_is_listed() {
    for (folder, index, prefix) in [
        ("docs/guides", "docs/README.md", "guides/"),
        ("docs/how-to", "docs/README.md", "how-to/"),
        ("docs/reference", "docs/README.md", "reference/"),
        ("docs/decisions", "docs/decisions/README.md", ""),
    ] {
        let listed = read(index);
        for path in files(&root().join(folder), "md") {
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_listed = name == "README.md" || listed.contains(&format!("]({prefix}{name})"));
            assert!(is_listed, "{index} has no link to {folder}/{name}");
        }
    }
}

#[test]
fn the_readme_is_short() {
    let lines = read("README.md").lines().count();
    assert!(lines <= MAX_README_LINES, "{lines} lines, at most {MAX_README_LINES}");
}

/// The reason in `unsafe_code, reason = "..."`, on one line or several.
fn unsafe_reason(source: &str) -> Option<&str> {
    let after = &source[source.find("unsafe_code,")?..];
    let reason = &after[after.find("reason = \"")? + "reason = \"".len()..];
    Some(&reason[..reason.find('"')?])
}

fn unsafe_table() -> String {
    let mut table = "\n| file | reason |\n|---|---|\n".to_owned();
    for krate in files(&root().join("crates"), "toml") {
        let folder = krate.parent().unwrap();
        if !folder.join("src").is_dir() {
            continue;
        }
        for path in files(&folder.join("src"), "rs") {
            if let Some(reason) = unsafe_reason(&fs::read_to_string(&path).unwrap()) {
                let name = path.strip_prefix(root().join("crates")).unwrap().display();
                table += &format!("| `{name}` | {reason} |\n");
            }
        }
    }
    table + "\n"
}

#[test]
fn the_list_of_unsafe_code_is_complete() {
    replace_between("ARCHITECTURE.md", UNSAFE_BEGIN, UNSAFE_END, &unsafe_table());
    // A file without the attribute does not compile, unless it relaxes the lint in another way.
    for path in files(&root().join("crates"), "rs") {
        let source = fs::read_to_string(&path).unwrap();
        let relaxes = source.lines().any(|line| line.trim_start().starts_with("#![allow(unsafe_code"));
        assert!(!relaxes, "{}: write expect(unsafe_code, reason = \"...\")", path.display());
    }
}

/// The first sentence of a module's documentation, with links as plain code.
fn first_sentence(source: &str) -> String {
    let lines = source.lines().take_while(|line| line.starts_with("//!")).map(|line| line[3..].trim());
    let paragraph: Vec<&str> =
        lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    let end = paragraph.match_indices(". ").map(|(at, _)| at).find(|&at| !paragraph[..at].ends_with(" al"));
    let sentence = paragraph[..end.unwrap_or(paragraph.len())].trim_end_matches('.');
    without_links(sentence).replace('|', "\\|")
}

/// Replaces `[text](target)` and [`text`] by the text.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('[') {
        let (before, after) = rest.split_at(start);
        let is_code = before.matches('`').count() % 2 == 1; // As in `[control]`.
        let Some(end) = after.find(']').filter(|_| !is_code) else {
            plain += &rest[..=start];
            rest = &after[1..];
            continue;
        };
        plain += before;
        plain += &after[1..end];
        rest = &after[end + 1..];
        if let Some(target) = rest.strip_prefix('(') {
            rest = target.split_once(')').map_or("", |(_, rest)| rest);
        }
    }
    plain + rest
}

/// The modules at the top of a crate, by name, with the first sentence of each.
fn modules(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join("src")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_owned();
        let file = if entry.is_dir() { entry.join("mod.rs") } else { entry };
        let is_rust = file.extension().is_some_and(|extension| extension == "rs");
        if is_rust && file.is_file() && !["lib", "main", "tests"].contains(&name.as_str()) {
            found.push((name, first_sentence(&fs::read_to_string(file).unwrap())));
        }
    }
    found.sort();
    found
}

#[test]
fn the_list_of_modules_is_complete() {
    let mut page = "# Modules\n\n<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-wire --test architecture -->\n\n\
         The modules at the top of each crate, with the first sentence of their documentation.\n\
         [ARCHITECTURE.md](../../ARCHITECTURE.md) explains how the crates fit together, and\n\
         `cargo doc --workspace --no-deps --document-private-items --open` has the whole documentation.\n"
        .to_owned();
    let mut folders: Vec<PathBuf> =
        fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        page += &format!(
            "\n## {}\n\n| module | contents |\n|---|---|\n",
            folder.file_name().unwrap().to_str().unwrap()
        );
        for (name, sentence) in modules(&folder) {
            assert!(!sentence.is_empty(), "{}: module {name} has no documentation", folder.display());
            page += &format!("| `{name}` | {sentence} |\n");
        }
    }
    let path = root().join("docs/reference/modules.md");
    if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
        fs::write(path, page).unwrap();
        return;
    }
    assert!(read("docs/reference/modules.md") == page, "docs/reference/modules.md is out of date");
}
