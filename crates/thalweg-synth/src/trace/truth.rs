//! The truth: what moved in every window, exactly, and the rows that say so.
//!
//! A window is half open, `(t - T, t]`. The most that a flow moves in any window of length T it moves in one
//! that ends at a packet, so looking at those is looking at all.

use std::collections::VecDeque;
use std::io::{self, Write};

use thalweg_wire::{FlowKey, Timestamp};

use super::connection::Side;
use super::planted::PlantedKind;

/// Bytes of the packets in `(t - T, t]`, kept one by one.
#[derive(Clone, Debug)]
pub(super) struct SlidingWindow {
    length_ns: u64,
    packets: VecDeque<(Timestamp, u32)>,
    bytes: u64,
}

impl SlidingWindow {
    /// An empty window of length T.
    pub(super) fn new(length_ns: u64) -> SlidingWindow {
        SlidingWindow { length_ns, packets: VecDeque::new(), bytes: 0 }
    }

    /// Moves the end to `time`, adds a packet there, and returns the bytes now inside.
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

/// Why a direction is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Background traffic that could come to more than R*T/2 in a window.
    Background,
    /// The data of a planted flow.
    Planted(PlantedKind),
    /// What comes back for it: where R*T is low and the data's rate many times R, as much as a cheetah.
    Acknowledgements,
}

impl Role {
    /// The truth's first column.
    const fn name(self) -> &'static str {
        match self {
            Role::Background => "background",
            Role::Planted(kind) => kind.name(),
            Role::Acknowledgements => "acknowledgements",
        }
    }
}

/// What one direction of a flow moved.
#[derive(Clone, Debug)]
pub(super) struct Account {
    role: Role,
    /// The direction: who sends.
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
    /// Nothing yet, windows of `window_ns`.
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

    /// Whether the direction deserves a row: it was planted, or some window held more than half of R*T.
    pub(super) const fn is_told(&self, threshold: u64) -> bool {
        matches!(self.role, Role::Planted(_)) || self.max_window_bytes > threshold / 2
    }

    /// Whether it did what it was made to do: planted flows as their kind says, background below R*T.
    pub(super) const fn is_as_made(&self) -> bool {
        match self.role {
            Role::Background => !self.is_cheetah(),
            Role::Planted(kind) => self.is_cheetah() == kind.is_cheetah(),
            Role::Acknowledgements => true,
        }
    }
}

const HEADER: &str = "kind,flow,src,dst,src_port,dst_port,protocol,first_ns,last_ns,packets,bytes,\
                      max_window_bytes,cheetah,crossed_ns";

/// Writes the rows.
pub(super) struct TruthWriter<'a, W> {
    out: &'a mut W,
}

impl<'a, W: Write> TruthWriter<'a, W> {
    /// Begins with the header line.
    pub(super) fn new(out: &'a mut W) -> io::Result<TruthWriter<'a, W>> {
        writeln!(out, "{HEADER}")?;
        Ok(TruthWriter { out })
    }

    /// One row: direction `key` of flow number `flow`.
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

    /// Writes what is left.
    pub(super) fn finish(self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_leaves_its_window_exactly_when_t_has_passed() {
        let mut window = SlidingWindow::new(100);
        assert_eq!(window.add(Timestamp(1_000), 10), 10);
        assert_eq!(window.add(Timestamp(1_099), 20), 30);
        assert_eq!(window.add(Timestamp(1_100), 40), 60, "(1000, 1100] has no packet at 1000");
        assert_eq!(window.add(Timestamp(1_250), 5), 5);
    }

    #[test]
    fn exactly_the_threshold_is_no_cheetah() {
        let mut account = Account::new(Role::Background, Side::Client, 100);
        account.add(Timestamp(10), 600, 1_000);
        account.add(Timestamp(20), 400, 1_000);
        assert!(!account.is_cheetah());
        account.add(Timestamp(109), 1, 1_000);
        assert_eq!(account.crossed, Some(Timestamp(109)));
    }
}
