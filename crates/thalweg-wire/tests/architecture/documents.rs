//! Lists in documents are complete: guides, unsafe code, modules.
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

/// The modules that `ARCHITECTURE.md` lists for each crate: the words in backquotes in the first column of its tables. After
/// `meter::entry`, `ages` stands for `meter::ages` if there is no `ages`.
fn listed_modules(page: &str) -> Vec<(String, Vec<String>)> {
    let (mut found, mut krate) = (Vec::new(), None);
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### ").or_else(|| line.strip_prefix("## ")) {
            let name = heading.split([':', ' ']).next().unwrap_or_default();
            krate = name.starts_with("thalweg").then(|| name.to_owned());
        } else if let (Some(krate), Some(row)) = (&krate, line.strip_prefix("| `")) {
            let first = row.split(" | ").next().unwrap_or_default();
            let names: Vec<&str> = first.split('`').step_by(2).collect();
            let parent = names[0].rsplit_once("::").map_or("", |(parent, _)| parent);
            let candidates = |name: &&str| vec![(*name).to_owned(), format!("{parent}::{name}")];
            found.extend(names.iter().map(|name| (krate.clone(), candidates(name))));
        }
    }
    found
}

#[test]
fn modules_in_the_architecture_exist() {
    let page = read("ARCHITECTURE.md");
    let modules = listed_modules(&page);
    assert!(modules.len() > 100, "tables of modules were found");
    for (krate, module) in modules {
        let source = root().join("crates").join(&krate).join("src");
        let exists = |path: String| {
            source.join(&path).with_extension("rs").is_file() || source.join(path).join("mod.rs").is_file()
        };
        let is_module = module.iter().any(|name| exists(name.replace("::", "/")));
        assert!(is_module, "ARCHITECTURE.md lists {} under {krate}: there is no such module", module[0]);
    }
}
