//! Compiles the switch program with clang.
//!
//! clang is the only compiler asked for, and only here: without it the crate still builds, and a lab says on the way
//! up that it has no switch program. The object goes into the binary.

use std::env;
use std::path::Path;
use std::process::{Command, Output};

const SOURCE: &str = "src/ebpf/switch.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rustc-check-cfg=cfg(has_switch_program)");
    let object = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("switch.bpf.o");
    match compile(&object) {
        Ok(output) if output.status.success() => println!("cargo::rustc-cfg=has_switch_program"),
        Ok(output) => {
            for line in String::from_utf8_lossy(&output.stderr).lines() {
                println!("cargo::warning={line}");
            }
            println!("cargo::error=clang does not compile {SOURCE}");
        }
        // Said by the lab when somebody wants one, and not on every build of those who do not. Where a distribution puts
        // programs is watched, so that the crate is built again once clang is there.
        Err(_) => println!("cargo::rerun-if-changed=/usr/bin"),
    }
}

fn compile(object: &Path) -> std::io::Result<Output> {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    // Where Debian keeps <asm/types.h>, which <linux/bpf.h> wants.
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    Command::new(clang)
        .args(["-target", "bpf", "-O2", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(["-idirafter", &format!("/usr/include/{architecture}-linux-gnu")])
        .args(["-c", SOURCE, "-o"])
        .arg(object)
        .output()
}
