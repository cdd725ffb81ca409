//! Compiles the C part of the DPDK source, and links DPDK, if the feature `dpdk` is on.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "dpdk")]
    dpdk::build();
}

#[cfg(feature = "dpdk")]
mod dpdk {
    use std::process::Command;

    const SHIM: &str = "src/dpdk/shim.c";

    /// The libraries that the C part uses. DPDK loads its drivers itself, from a folder that it knows.
    const LIBRARIES: [&str; 4] = ["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_eal"];

    pub(super) fn build() {
        println!("cargo::rerun-if-changed={SHIM}");
        let mut shim = cc::Build::new();
        shim.file(SHIM).std("gnu11").opt_level(3);
        // Among them the processor that DPDK was built for, without which its headers do not compile.
        pkg_config("--cflags").split_whitespace().for_each(|flag| {
            shim.flag(flag);
        });
        shim.compile("thalweg_dpdk");
        for folder in
            pkg_config("--libs-only-L").split_whitespace().filter_map(|flag| flag.strip_prefix("-L"))
        {
            println!("cargo::rustc-link-search=native={folder}");
        }
        LIBRARIES.iter().for_each(|library| println!("cargo::rustc-link-lib={library}"));
    }

    /// Returns what pkg-config says about libdpdk.
    fn pkg_config(option: &str) -> String {
        match Command::new("pkg-config").args([option, "libdpdk"]).output() {
            Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
            _ => panic!("the feature dpdk needs DPDK: apt-get install libdpdk-dev pkg-config"),
        }
    }
}
