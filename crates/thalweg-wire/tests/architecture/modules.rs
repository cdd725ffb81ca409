//! Checks that the top-level modules of a crate do not form a cycle.
//!
//! The uses of a module are its paths with `crate` and those with `super` up to the crate root. Tests
//! are exempt.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules and the others that each uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Finds all source files in a directory tree, except tests.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.file_stem().and_then(|name| name.to_str()) {
            Some("tests") => {}
            _ if path.is_dir() => files_below(&path, found),
            _ if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            _ => {}
        }
    }
}

/// Returns the code without comments and trailing tests.
fn code_of(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod ").filter(|&end| text[end..].contains("mod tests {"));
    let lines = text[..end.unwrap_or(text.len())].lines();
    lines.map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

fn name_at(text: &str) -> &str {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    &text[..text.find(|letter| !is_of_name(letter)).unwrap_or(text.len())]
}

/// Returns the first names after each `prefix`: `a` of `crate::a::b`, `a` and `b` of `crate::{a, b::c}`.
fn names_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (place, _) in code.match_indices(prefix) {
        if code[..place]
            .ends_with(|before: char| before.is_ascii_alphanumeric() || matches!(before, '_' | ':'))
        {
            continue;
        }
        let behind = &code[place + prefix.len()..];
        let Some(group) = behind.strip_prefix('{') else {
            names.insert(name_at(behind).to_owned());
            continue;
        };
        let (mut depth, mut is_first) = (0, true);
        for (at, letter) in group.char_indices() {
            match letter {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => is_first = true,
                _ if is_first && !letter.is_whitespace() => {
                    is_first = false;
                    names.insert(name_at(&group[at..]).to_owned());
                }
                _ => {}
            }
        }
    }
    names
}

fn uses_in(source: &Path) -> Uses {
    let mut files = Vec::new();
    files_below(source, &mut files);
    let mut uses = Uses::new();
    for file in &files {
        let inner = file.strip_prefix(source).unwrap().with_extension("");
        let mut path: Vec<&str> = inner.iter().map(|part| part.to_str().unwrap()).collect();
        if path.last() == Some(&"mod") {
            path.pop();
        }
        let code = code_of(&fs::read_to_string(file).unwrap());
        let mut found = names_after(&code, "crate::");
        found.append(&mut names_after(&code, &"super::".repeat(path.len())));
        if !matches!(path[..], ["lib" | "main"]) {
            uses.entry(path[0].to_owned()).or_default().append(&mut found);
        }
    }
    let modules: BTreeSet<String> = uses.keys().cloned().collect();
    for (module, used) in &mut uses {
        used.retain(|name| modules.contains(name) && name != module);
    }
    uses
}

/// Returns the modules in cycles: repeatedly removes modules that use no other or are used by no other.
fn in_cycles(mut uses: Uses) -> Uses {
    loop {
        let used: BTreeSet<String> = uses.values().flatten().cloned().collect();
        let goes = |(module, of): (&String, &BTreeSet<String>)| {
            (of.is_empty() || !used.contains(module)).then(|| module.clone())
        };
        let gone: Vec<String> = uses.iter().filter_map(goes).collect();
        if gone.is_empty() {
            return uses;
        }
        uses.retain(|module, _| !gone.contains(module));
        uses.values_mut().for_each(|of| of.retain(|name| !gone.contains(name)));
    }
}

#[test]
fn modules_of_a_crate_have_no_cycles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut modules = 0;
    for folder in fs::read_dir(crates).unwrap() {
        let source = folder.unwrap().path().join("src");
        if source.is_dir() {
            let uses = uses_in(&source);
            modules += uses.len();
            let cycles = in_cycles(uses);
            assert!(cycles.is_empty(), "in {}: {cycles:#?}", source.display());
        }
    }
    assert!(modules > 200, "only {modules} modules were found");
}

#[test]
fn all_forms_of_paths_are_parsed() {
    let code = code_of(
        "use crate::{a, b::{c, d}, e};\nuse super::super::f::g; // crate::x\nuse super::y;\nlet i = crate::h::I;\n\
         use other_crate::z;\n#[cfg(test)]\nmod tests {\n    use crate::t;\n}\n",
    );
    let names = |prefix| names_after(&code, prefix).into_iter().collect::<Vec<_>>();
    assert_eq!(names("crate::"), ["a", "b", "e", "h"]);
    assert_eq!(names("super::super::"), ["f"]);
}

#[test]
fn only_modules_in_a_cycle_are_found() {
    let uses = |pairs: &[(&str, &[&str])]| {
        let module = |&(module, used): &(&str, &[&str])| {
            (module.to_owned(), used.iter().map(|name| (*name).to_owned()).collect())
        };
        pairs.iter().map(module).collect::<Uses>()
    };
    let with_cycle = uses(&[("a", &["b"]), ("b", &["c"]), ("c", &["b", "d"]), ("d", &[])]);
    assert_eq!(in_cycles(with_cycle).into_keys().collect::<Vec<_>>(), ["b", "c"]);
    assert!(in_cycles(uses(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])).is_empty());
}
