//! The maps of the redirecting program, with the structures of `redirect.bpf.c`.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thalweg_control::isolate::message::FlowCounters;
use thalweg_linux::bpf::{AnyMap, Map, PerCpuMap, Program};
use thalweg_linux::tc::queue::Queue;
use thalweg_wire::{Bytes, FlowKey, IpVersion, Protocol, Timestamp};

/// Lengths of `struct flow`, `struct redirection`, `struct counters`, `struct totals` and `struct previous`.
const FLOW: usize = 40;
const REDIRECTION: usize = 24;
const COUNTERS: usize = 24;
const TOTALS: usize = 24;
const PREVIOUS: usize = 1_024;

/// The only key of the arrays.
const ZERO: [u8; 4] = [0; 4];

/// Entries that one sweep looks at.
const SWEPT: usize = 1_024;

/// Offsets in `struct previous`.
const KIND_LENGTH: usize = 16;
const OPTIONS_AT: usize = KIND_LENGTH + 8;

/// `struct redirection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// By the monotonic clock.
    pub(super) expires: Timestamp,
    /// The class.
    pub(super) class: u32,
    /// Release the flow if this many packets were redirected.
    pub(super) release_at: Option<u64>,
}

/// Sums over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) redirected: u64,
    pub(super) expired: u64,
    pub(super) released: u64,
}

/// The maps of a loaded program.
#[derive(Debug)]
pub(super) struct Maps {
    redirections: Map<FLOW, REDIRECTION>,
    counters: Map<FLOW, COUNTERS>,
    totals: PerCpuMap<4, TOTALS>,
    previous: Map<4, PREVIOUS>,
    capacity: u32,
    /// Where the next sweep begins.
    swept: Option<[u8; FLOW]>,
}

impl Maps {
    /// Takes the maps of a loaded object.
    ///
    /// # Errors
    /// If a map is missing or has another layout.
    pub(super) fn new(mut maps: BTreeMap<String, AnyMap>) -> io::Result<Maps> {
        let mut take = |name: &str| {
            let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no map {name}"));
            maps.remove(name).ok_or_else(missing)
        };
        let redirections = take("redirections")?;
        let capacity = redirections.spec().max_entries;
        Ok(Maps {
            redirections: redirections.try_into()?,
            counters: take("flow_counters")?.try_into()?,
            totals: take("totals")?.try_into()?,
            previous: take("previous")?.try_into()?,
            capacity,
            swept: None,
        })
    }

    /// Opens the maps of a program that an earlier run loaded.
    ///
    /// # Errors
    /// If this process lacks the privilege, or a map is missing or has another layout.
    pub(super) fn of(program: &Program) -> io::Result<Maps> {
        let maps = program.map_ids()?.into_iter().map(AnyMap::by_id).collect::<io::Result<Vec<AnyMap>>>()?;
        Maps::new(maps.into_iter().map(|map| (map.name().to_owned(), map)).collect())
    }

    /// The maximum number of redirections.
    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Redirects a flow, or changes its entry. Its counters are kept.
    pub(super) fn set(&mut self, key: &FlowKey, entry: Entry) -> io::Result<()> {
        let flow = bytes_of(key);
        if self.counters.get(&flow)?.is_none() {
            self.counters.set(&flow, &[0; COUNTERS])?;
        }
        self.redirections.set(&flow, &entry.bytes())
    }

    /// Gives many flows the same entry. Their counters are kept.
    pub(super) fn set_many(&mut self, keys: impl Iterator<Item = FlowKey>, entry: Entry) -> io::Result<()> {
        let flows: Vec<[u8; FLOW]> = keys.map(|key| bytes_of(&key)).collect();
        self.redirections.set_many(&flows, &vec![entry.bytes(); flows.len()])
    }

    /// Returns the entry of a flow.
    pub(super) fn get(&self, key: &FlowKey) -> io::Result<Option<Entry>> {
        Ok(self.redirections.get(&bytes_of(key))?.map(|bytes| Entry::read(&bytes)))
    }

    /// Returns the counters of a flow.
    pub(super) fn counters(&self, key: &FlowKey) -> io::Result<Option<FlowCounters>> {
        Ok(self.counters.get(&bytes_of(key))?.map(counters))
    }

    /// Returns the counters of a flow; `None` unless the program redirects it, which it does not do without counters.
    pub(super) fn redirected(&self, key: &FlowKey, now: Timestamp) -> io::Result<Option<FlowCounters>> {
        match self.get(key)? {
            Some(entry) if entry.expires > now => self.counters(key),
            _ => Ok(None),
        }
    }

    /// Removes the entries that have expired, among the next ones.
    pub(super) fn sweep(&mut self, now: Timestamp) -> io::Result<()> {
        let part = self.redirections.entries_after(self.swept.as_ref(), SWEPT)?;
        // After the last part comes the first.
        self.swept = part.last().filter(|_| part.len() == SWEPT).map(|(flow, _)| *flow);
        for (flow, entry) in &part {
            if Entry::read(entry).expires <= now {
                self.remove_flow(flow)?;
            }
        }
        Ok(())
    }

    /// Removes a flow.
    pub(super) fn remove(&mut self, key: &FlowKey) -> io::Result<()> {
        self.remove_flow(&bytes_of(key))
    }

    fn remove_flow(&mut self, flow: &[u8; FLOW]) -> io::Result<()> {
        self.redirections.remove(flow)?;
        self.counters.remove(flow).map(drop)
    }

    /// Returns all entries, with their counters; `None` if someone else has removed them.
    pub(super) fn all(&self) -> io::Result<Vec<(FlowKey, Entry, Option<FlowCounters>)>> {
        let counted: HashMap<[u8; FLOW], [u8; COUNTERS]> = self.counters.entries()?.into_iter().collect();
        let all = self.redirections.entries()?.into_iter().filter_map(|(flow, entry)| {
            Some((key_of(&flow)?, Entry::read(&entry), counted.get(&flow).copied().map(counters)))
        });
        Ok(all.collect())
    }

    /// Copies all entries and the previous queue from the maps of another program.
    pub(super) fn copy_from(&mut self, other: &Maps) -> io::Result<()> {
        for (key, entry, _) in other.all()?.into_iter().take(self.capacity as usize) {
            let flow = bytes_of(&key);
            if let Some(counters) = other.counters.get(&flow)? {
                self.counters.set(&flow, &counters)?;
            }
            self.redirections.set(&flow, &entry.bytes())?;
        }
        match other.previous.get(&ZERO)? {
            Some(previous) => self.previous.set(&ZERO, &previous),
            None => Ok(()),
        }
    }

    /// Returns the totals.
    pub(super) fn totals(&self) -> io::Result<Totals> {
        let mut sum = Totals::default();
        for bytes in self.totals.get(&ZERO)?.unwrap_or_default() {
            sum.redirected += u64_at(&bytes, 0);
            sum.expired += u64_at(&bytes, 8);
            sum.released += u64_at(&bytes, 16);
        }
        Ok(sum)
    }

    /// Remembers the queue that the interface had before, even after this process has died. `None` for the default queue
    /// of the kernel.
    ///
    /// # Errors
    /// If its description is too long, or the kernel returns an error.
    pub(super) fn remember(&mut self, queue: Option<&Queue>) -> io::Result<()> {
        let mut bytes = [0; PREVIOUS];
        if let Some(queue) = queue {
            let (kind, options) = (queue.kind.as_bytes(), &queue.options[..]);
            if kind.len() >= KIND_LENGTH || options.len() > PREVIOUS - OPTIONS_AT {
                let reason = format!("the options of queue {} are too long to restore", queue.kind);
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
            bytes[..kind.len()].copy_from_slice(kind);
            bytes[KIND_LENGTH..KIND_LENGTH + 4].copy_from_slice(&queue.handle.to_ne_bytes());
            bytes[KIND_LENGTH + 4..OPTIONS_AT].copy_from_slice(&(options.len() as u32).to_ne_bytes());
            bytes[OPTIONS_AT..OPTIONS_AT + options.len()].copy_from_slice(options);
        }
        self.previous.set(&ZERO, &bytes)
    }

    /// Returns the queue that the interface had before; `None` for the default queue of the kernel.
    pub(super) fn remembered(&self) -> io::Result<Option<Queue>> {
        let Some(bytes) = self.previous.get(&ZERO)? else { return Ok(None) };
        let kind: Vec<u8> = bytes[..KIND_LENGTH].iter().copied().take_while(|&byte| byte != 0).collect();
        if kind.is_empty() {
            return Ok(None);
        }
        let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("four bytes"));
        let length = (word(KIND_LENGTH + 4) as usize).min(PREVIOUS - OPTIONS_AT);
        Ok(Some(Queue {
            kind: String::from_utf8_lossy(&kind).into_owned(),
            handle: word(KIND_LENGTH),
            options: bytes[OPTIONS_AT..OPTIONS_AT + length].to_vec(),
            ..Queue::default()
        }))
    }
}

impl Entry {
    fn bytes(&self) -> [u8; REDIRECTION] {
        let mut bytes = [0; REDIRECTION];
        bytes[..8].copy_from_slice(&self.expires.0.to_ne_bytes());
        bytes[8..16].copy_from_slice(&self.release_at.unwrap_or_default().to_ne_bytes());
        bytes[16..20].copy_from_slice(&self.class.to_ne_bytes());
        bytes[20..].copy_from_slice(&u32::from(self.release_at.is_some()).to_ne_bytes());
        bytes
    }

    fn read(bytes: &[u8; REDIRECTION]) -> Entry {
        let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("four bytes"));
        Entry {
            expires: Timestamp(u64_at(bytes, 0)),
            class: word(16),
            release_at: (word(20) != 0).then(|| u64_at(bytes, 8)),
        }
    }
}

fn counters(bytes: [u8; COUNTERS]) -> FlowCounters {
    let first = Some(Timestamp(u64_at(&bytes, 16))).filter(|time| time.0 > 0);
    FlowCounters { packets: u64_at(&bytes, 0), bytes: Bytes(u64_at(&bytes, 8)), first }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(*bytes[at..].first_chunk().expect("eight bytes"))
}

/// Encodes `struct flow`.
fn bytes_of(key: &FlowKey) -> [u8; FLOW] {
    let mut bytes = [0; FLOW];
    for (at, address) in [(0, key.src()), (16, key.dst())] {
        match address {
            IpAddr::V4(address) => bytes[at..at + 4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes[at..at + 16].copy_from_slice(&address.octets()),
        }
    }
    bytes[32..34].copy_from_slice(&key.src_port.to_be_bytes());
    bytes[34..36].copy_from_slice(&key.dst_port.to_be_bytes());
    bytes[36] = key.protocol.0;
    bytes[37] = key.version() as u8;
    bytes
}

/// Decodes `struct flow`; `None` if the version is unknown.
fn key_of(bytes: &[u8; FLOW]) -> Option<FlowKey> {
    let address = |at: usize| -> Option<IpAddr> {
        match bytes[37] {
            it if it == IpVersion::V4 as u8 => Some(Ipv4Addr::from(*bytes[at..].first_chunk::<4>()?).into()),
            it if it == IpVersion::V6 as u8 => Some(Ipv6Addr::from(*bytes[at..].first_chunk::<16>()?).into()),
            _ => None,
        }
    };
    let port = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    FlowKey::new(address(0)?, address(16)?, port(32), port(34), Protocol(bytes[36]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_entries_round_trip() {
        for text in ["tcp 10.0.0.1:443 > 192.0.2.2:51000", "udp [2001:db8::1]:53 > [2001:db8::2]:4096"] {
            let key: FlowKey = text.parse().unwrap();
            assert_eq!(key_of(&bytes_of(&key)), Some(key));
        }
        let bytes = bytes_of(&"tcp 10.0.0.1:443 > 192.0.2.2:51000".parse().unwrap());
        assert_eq!((&bytes[..5], &bytes[32..38]), (&[10, 0, 0, 1, 0][..], &[1, 0xbb, 0xc7, 0x38, 6, 4][..]));
        assert_eq!(key_of(&[0; FLOW]), None);
        for release_at in [None, Some(0), Some(7)] {
            let entry = Entry { expires: Timestamp(9), class: 0x7468_0020, release_at };
            assert_eq!(Entry::read(&entry.bytes()), entry);
        }
    }
}
