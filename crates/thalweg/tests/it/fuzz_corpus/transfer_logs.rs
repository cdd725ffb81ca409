//! Logs of transfer programs: what real programs wrote, shortened, and lines of the mappings that `fuzz::transfer_logs` has.

/// Maximum size of a seed in bytes.
const MAX_BYTES: usize = 6_000;

/// Includes a log of a real program.
macro_rules! log {
    ($name:literal) => {
        (
            $name,
            shortened(include_bytes!(concat!(
                "../../../../thalweg-transfers/src/logs/golden/",
                $name,
                ".log"
            ))),
        )
    };
}

pub(super) fn logs() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        log!("gridftp"),
        log!("gridftp-main"),
        log!("xrootd"),
        log!("rsync-daemon"),
        log!("rsync-client"),
        log!("rsync-syslog"),
        log!("xferlog-vsftpd"),
        log!("xferlog-proftpd"),
        log!("vsftpd"),
        log!("nginx"),
        log!("nginx-combined"),
        log!("rclone"),
        log!("sftp-server"),
        log!("sftp-server-iso"),
        log!("scp"),
        log!("iperf3-client"),
        log!("mapping-nginx-json"),
        log!("mapping-curl-csv"),
        (
            "csv",
            b"3,1795896900.5,2026-11-28T20:15:02Z,get,0\n\"3\",1795896900,2026-11-28 20:15:02,put,7\n"
                .to_vec(),
        ),
        ("json", br#"{"stats":{"bytes":3},"time":"Nov 28 20:15:02","ms":2500}"#.to_vec()),
        ("empty", Vec::new()),
        ("not-utf-8", b"2026/11/28 20:15:00 [17] rsync on \xff from \xfe (192.0.2.7)\n".to_vec()),
    ]
}

/// Cuts a log after a line.
fn shortened(log: &[u8]) -> Vec<u8> {
    let end = match log.get(..MAX_BYTES) {
        Some(begin) => begin.iter().rposition(|byte| *byte == b'\n').map_or(MAX_BYTES, |last| last + 1),
        None => log.len(),
    };
    log[..end].to_vec()
}
