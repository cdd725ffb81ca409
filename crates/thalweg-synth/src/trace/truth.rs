//! The ground truth: exact bytes per window, and the rows of the CSV file.
//!
//! A window is half open, `(t - T, t]`. The maximum over all windows of length T is reached by one that ends at a packet,
//! so only those are counted.

use std::collections::VecDeque;
use std::io::{self, Write};

use thalweg_wire::{FlowKey, Timestamp};

use super::connection::Side;
use super::planted::PlantedKind;

/// The packets in `(t - T, t]`, and the sum of their bytes.
#[derive(Clone, Debug)]
pub(super) struct SlidingWindow {
    length_ns: u64,
    packets: VecDeque<(Timestamp, u32)>,
    bytes: u64,
}

impl SlidingWindow {
    /// Returns an empty window of length T.
    pub(super) fn new(length_ns: u64) -> SlidingWindow {
        SlidingWindow { length_ns, packets: VecDeque::new(), bytes: 0 }
    }

    /// Moves the end to `time`, adds a packet there, and returns the bytes in the window.
    pub(super) fn add(&mut self, time: Timestamp, bytes: u32) -> u64 {
        while let Some(&(first, its_bytes)) = self.packets.front()
            && time.since(first).0 >= self.length_ns
        {
            self.bytes -= u64::from(its_bytes);
            self.packets.pop_front();
        }
        self.packets.push_back((time, bytes));
        self.bytes += u64::from(bytes);
        self.bytes
    }
}

/// The reason to count a direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Background traffic that could exceed R*T/2 in a window.
    Background,
    /// The data of a planted flow.
    Planted(PlantedKind),
    /// Acknowledgements of a planted flow: with low R*T and a data rate many times R, they can be as much as a cheetah.
    Acknowledgements,
}

impl Role {
    /// Returns the name in the truth's first column.
    const fn name(self) -> &'static str {
        match self {
            Role::Background => "background",
            Role::Planted(kind) => kind.name(),
            Role::Acknowledgements => "acknowledgements",
        }
    }
}

/// Totals of one direction of a flow.
#[derive(Clone, Debug)]
pub(super) struct Account {
    role: Role,
    /// The sending side.
    pub(super) side: Side,
    first: Timestamp,
    last: Timestamp,
    packets: u64,
    bytes: u64,
    window: SlidingWindow,
    max_window_bytes: u64,
    crossed: Option<Timestamp>,
}

impl Account {
    /// Returns empty totals with windows of `window_ns`.
    pub(super) fn new(role: Role, side: Side, window_ns: u64) -> Account {
        Account {
            role,
            side,
            first: Timestamp::default(),
            last: Timestamp::default(),
            packets: 0,
            bytes: 0,
            window: SlidingWindow::new(window_ns),
            max_window_bytes: 0,
            crossed: None,
        }
    }

    /// Adds a packet of this direction; `threshold` is R*T in bytes.
    pub(super) fn add(&mut self, time: Timestamp, bytes: u32, threshold: u64) {
        if self.packets == 0 {
            self.first = time;
        }
        self.last = time;
        self.packets += 1;
        self.bytes += u64::from(bytes);
        let in_window = self.window.add(time, bytes);
        self.max_window_bytes = self.max_window_bytes.max(in_window);
        if in_window > threshold && self.crossed.is_none() {
            self.crossed = Some(time);
        }
    }

    /// Whether some window held more than R*T.
    pub(super) const fn is_cheetah(&self) -> bool {
        self.crossed.is_some()
    }

    /// Whether the direction gets a row: it was planted, or some window held more than half of R*T.
    pub(super) const fn has_row(&self, threshold: u64) -> bool {
        matches!(self.role, Role::Planted(_)) || self.max_window_bytes > threshold / 2
    }

    /// Whether it is as planned: planted flows as their kind says, background below R*T.
    pub(super) const fn is_as_planned(&self) -> bool {
        match self.role {
            Role::Background => !self.is_cheetah(),
            Role::Planted(kind) => self.is_cheetah() == kind.is_cheetah(),
            Role::Acknowledgements => true,
        }
    }
}

const HEADER: &str = "kind,flow,src,dst,src_port,dst_port,protocol,first_ns,last_ns,packets,bytes,\
                      max_window_bytes,cheetah,crossed_ns";

/// Writes the rows of the truth.
pub(super) struct TruthWriter<'a, W> {
    out: &'a mut W,
}

impl<'a, W: Write> TruthWriter<'a, W> {
    /// Writes the header line.
    pub(super) fn new(out: &'a mut W) -> io::Result<TruthWriter<'a, W>> {
        writeln!(out, "{HEADER}")?;
        Ok(TruthWriter { out })
    }

    /// Writes the row of direction `key` of flow number `flow`.
    pub(super) fn row(&mut self, flow: u64, key: &FlowKey, account: &Account) -> io::Result<()> {
        let kind = account.role.name();
        let (src, dst, protocol) = (key.src(), key.dst(), key.protocol.0);
        let (first, last) = (account.first.0, account.last.0);
        let Account { packets, bytes, max_window_bytes, .. } = account;
        let cheetah = u8::from(account.is_cheetah());
        let crossed = account.crossed.map_or(String::new(), |time| time.0.to_string());
        writeln!(
            self.out,
            "{kind},{flow},{src},{dst},{},{},{protocol},{first},{last},{packets},{bytes},\
             {max_window_bytes},{cheetah},{crossed}",
            key.src_port, key.dst_port
        )
    }

    /// Writes the buffered rest.
    pub(super) fn finish(self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_leaves_the_window_after_exactly_t() {
        let mut window = SlidingWindow::new(100);
        assert_eq!(window.add(Timestamp(1_000), 10), 10);
        assert_eq!(window.add(Timestamp(1_099), 20), 30);
        assert_eq!(window.add(Timestamp(1_100), 40), 60, "(1000, 1100] has no packet at 1000");
        assert_eq!(window.add(Timestamp(1_250), 5), 5);
    }

    #[test]
    fn the_exact_threshold_is_not_a_cheetah() {
        let mut account = Account::new(Role::Background, Side::Client, 100);
        account.add(Timestamp(10), 600, 1_000);
        account.add(Timestamp(20), 400, 1_000);
        assert!(!account.is_cheetah());
        account.add(Timestamp(109), 1, 1_000);
        assert_eq!(account.crossed, Some(Timestamp(109)));
    }
}
