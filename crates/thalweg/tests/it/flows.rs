//! `thalweg flows` hands over to Python: what it finds, what it says if there is none. Interpreters are scripts here.

#![cfg(unix)]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

/// A script that is being written while another thread starts a program cannot be run: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// A script in the place of an interpreter: `-P -c PROBE` ends with `probe`, all else shows its arguments and ends with 3.
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
fn arguments_go_through_as_they_are_and_the_exit_code_comes_back() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
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
fn an_interpreter_without_the_package_is_named_with_the_remedy() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = TempDir::new().unwrap();
    let python = interpreter(folder.path(), 1);
    let output = flows(&python, &["top", "records"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with(&format!("thalweg: THALWEG_PYTHON is {}", python.display())), "{error}");
    assert!(error.contains("pip install"), "{error}");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
    let output = flows(&folder.path().join("missing"), &[]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot be started"));
}
