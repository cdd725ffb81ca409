//! `thalweg flows` runs a Python interpreter. The tests use scripts as interpreters.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

/// Serialises tests: a script cannot be run while another thread forks with its file open for writing.
static SERIAL: Mutex<()> = Mutex::new(());

/// A script as interpreter: `-P -c PROBE` exits with `probe`; otherwise it prints its arguments and exits with 3.
fn interpreter(folder: &Path, probe: u8) -> PathBuf {
    let path = folder.join("python");
    let script = format!("#!/bin/sh\n[ \"$2\" = -c ] && exit {probe}\nprintf '<%s>' \"$@\"\nexit 3\n");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

fn flows(python: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thalweg"));
    command.arg("flows").args(arguments).env("THALWEG_PYTHON", python).output().unwrap()
}

#[test]
fn arguments_and_exit_code_are_passed_through() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let python = interpreter(folder.path(), 0);
    let output = flows(&python, &["top", "records", "src ip 192.0.2.1", "-n", "3", "--json"]);
    let expected = "<-P><-m><thalweg><flows><top><records><src ip 192.0.2.1><-n><3><--json>";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(output.status.code(), Some(3));
    for help in ["--help", "-h", "--version"] {
        let output = flows(&python, &[help]);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("<-P><-m><thalweg><flows><{help}>"));
    }
}

#[test]
fn a_missing_package_is_reported_with_the_remedy() {
    let _alone = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let python = interpreter(folder.path(), 1);
    let output = flows(&python, &["top", "records"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with(&format!("thalweg: THALWEG_PYTHON={}: ", python.display())), "{error}");
    assert!(error.contains("pip install"), "{error}");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
    let output = flows(&folder.path().join("missing"), &[]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot start it"));
}
