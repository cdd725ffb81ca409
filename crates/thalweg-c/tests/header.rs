//! The header in `include/` is that of the sources. THALWEG_REFRESH_GOLDEN=1 writes it anew.

#![cfg(target_os = "linux")]

use std::path::Path;

#[test]
fn the_header_is_current() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_folder.join("tests/cbindgen.toml")).unwrap();
    // In this order.
    let source = ["status", "sketch", "options", "update", "query", "save"];
    let builder = source.iter().fold(cbindgen::Builder::new().with_config(config), |builder, name| {
        builder.with_src(crate_folder.join(format!("src/{name}.rs")))
    });
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap().replace("// # Safety\n// ", "// Pointers: ");
    let path = crate_folder.join("include/thalweg_sketch.h");
    if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(made == found, "run THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-c");
}

#[test]
fn all_modules_are_in_the_header() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let header = std::fs::read_to_string(sources.join("../include/thalweg_sketch.h")).unwrap();
    for entry in std::fs::read_dir(sources).unwrap() {
        let source = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for name in source.split("extern \"C\" fn ").skip(1) {
            let name = name.split('(').next().unwrap();
            assert!(header.contains(&format!("{name}(")), "{name}");
        }
    }
}
