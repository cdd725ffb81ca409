//! Datagrams dropped by the kernel, by socket: the last column of `/proc/net/udp` (proc_pid_net(5)).
//!
//! `SO_RXQ_OVFL` counts the same but reports it with the next datagram that is received, so the last drops would be
//! missed.

use std::collections::BTreeMap;
use std::io;

/// Socket tables of the calling thread's network namespace.
const TABLES: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];

/// Returns the number of datagrams dropped since each open socket was created, by inode.
///
/// # Errors
/// If the tables cannot be read.
pub(super) fn by_inode() -> io::Result<BTreeMap<u64, u64>> {
    let mut drops = BTreeMap::new();
    for table in TABLES {
        match std::fs::read_to_string(table) {
            Ok(text) => drops.extend(text.lines().filter_map(socket)),
            // The table is absent without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(drops)
}

/// Parses a line: returns inode (column 10) and drops (column 13). The header line has no numbers there.
fn socket(line: &str) -> Option<(u64, u64)> {
    let mut columns = line.split_ascii_whitespace();
    let inode = columns.nth(9)?.parse().ok()?;
    Some((inode, columns.nth(2)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_inode_and_drops_and_the_header_is_skipped() {
        let title = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops";
        let line = " 1234: 0100007F:0807 00000000:0000 07 00000000:00001000 00:00000000 00000000  1000        0 56789 2 0000000000000000 4321";
        assert_eq!([title, line].map(socket), [None, Some((56789, 4321))]);
    }
}
