//! Unmodified applications send through an endpoint, to an arbiter of the test. One set-up of two namespaces for all checks. Needs
//! root, iproute2, ping, tcpdump and iperf3.

mod allocations;
mod applications;
mod echo_arbiter;
mod endpoint_thread;
mod failures;
mod network;

use std::io::Write as _;

use network::Network;

/// Reports a skipped test on standard error directly, because the test runner captures `eprintln!`.
fn skip(reason: &str) {
    let _ = std::io::stderr().write_all(format!("skipped: endpoint: {reason}\n").as_bytes());
}

#[test]
fn unmodified_applications_send_through_an_endpoint() {
    let Some(network) = Network::new() else { return };
    applications::check(&network);
    failures::check(&network);
}

/// No test: the endpoint that `failures` starts as a process and kills.
#[test]
fn endpoint_of_another_process() {
    if let Ok(namespace) = std::env::var(failures::CHILD_NAMESPACE) {
        failures::run_until_killed(&namespace);
    }
}
