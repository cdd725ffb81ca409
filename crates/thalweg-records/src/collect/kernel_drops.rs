//! Datagrams that the kernel had no room for, by socket: the last column of `/proc/net/udp` (proc_pid_net(5)).
//!
//! `SO_RXQ_OVFL` counts the same, but tells it with the next datagram that does find room: what is lost last would
//! not be known.

use std::collections::BTreeMap;
use std::io;

/// The kernel's tables, as the calling thread's network namespace has them.
const TABLES: [&str; 2] = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];

/// Datagrams dropped since each socket was opened, by inode. A socket that is shut is not there.
///
/// # Errors
/// If the tables cannot be read.
pub(super) fn by_inode() -> io::Result<BTreeMap<u64, u64>> {
    let mut drops = BTreeMap::new();
    for table in TABLES {
        match std::fs::read_to_string(table) {
            Ok(text) => drops.extend(text.lines().filter_map(socket)),
            // Without IPv6 there is no table for it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(drops)
}

/// Inode and drops of a line: columns 10 and 13. The title has words there.
fn socket(line: &str) -> Option<(u64, u64)> {
    let mut columns = line.split_ascii_whitespace();
    let inode = columns.nth(9)?.parse().ok()?;
    Some((inode, columns.nth(2)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_gives_inode_and_drops_and_the_title_gives_none() {
        let title = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops";
        let line = " 1234: 0100007F:0807 00000000:0000 07 00000000:00001000 00:00000000 00000000  1000        0 56789 2 0000000000000000 4321";
        assert_eq!([title, line].map(socket), [None, Some((56789, 4321))]);
    }
}
