//! A flow's entry in the flow table: one cache line for both directions.

use bytemuck::{Pod, Zeroable};

use thalweg_wire::{Direction, FlowKey, HashSeed, IpVersion, Protocol, TcpFlags};

/// The table's key of a flow: 16 bytes that both directions share.
///
/// IPv4 fits completely: `low` is the lower endpoint (address, port) and the protocol, `high` the higher one. For
/// IPv6, `low` is a hash of everything and `high` has ports and protocol with [`Words::V6`]; the addresses are beside
/// the table and are compared when these words match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) low: u64,
    pub(super) high: u64,
}

/// Both addresses of an IPv6 flow, the lower endpoint's first; each in two halves, high first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct V6Addresses {
    pub(super) low: [u64; 2],
    pub(super) high: [u64; 2],
}

impl Words {
    /// Marks the words of an IPv6 flow; a bit that IPv4 does not use in `high`.
    const V6: u64 = 1 << 63;

    /// Returns the words of a flow, and the direction of `key`.
    #[inline(always)]
    pub(super) fn of(key: &FlowKey, seed: &HashSeed) -> (Words, Direction) {
        let (src, dst) = key.address_words();
        match key.version() {
            IpVersion::V4 => {
                let src = src[1] << 16 | u64::from(key.src_port);
                let dst = dst[1] << 16 | u64::from(key.dst_port);
                let protocol = u64::from(key.protocol.0) << 48;
                let direction = if src <= dst { Direction::Forward } else { Direction::Reverse };
                (Words { low: src.min(dst) | protocol, high: src.max(dst) }, direction)
            }
            IpVersion::V6 => Words::of_v6(key, seed),
        }
    }

    fn of_v6(key: &FlowKey, seed: &HashSeed) -> (Words, Direction) {
        let (key, direction) = key.canonical();
        let ports = u64::from(key.src_port) << 16 | u64::from(key.dst_port);
        let high = Words::V6 | u64::from(key.protocol.0) << 32 | ports;
        (Words { low: key.symmetric_hash(seed), high }, direction)
    }

    #[inline(always)]
    pub(super) fn is_v6(self) -> bool {
        self.high & Words::V6 != 0
    }

    /// Returns the hash for the index; for IPv6 it is already computed.
    #[inline(always)]
    pub(super) fn hash(self, seed: &HashSeed) -> u64 {
        if self.is_v6() { self.low } else { seed.hash_words(self.low, self.high) }
    }

    /// Returns the key in canonical form. `v6` is used for IPv6 only.
    pub(super) fn key(self, v6: &V6Addresses) -> FlowKey {
        if self.is_v6() {
            let number = |half: [u64; 2]| u128::from(half[0]) << 64 | u128::from(half[1]);
            let (low_port, high_port) = ((self.high >> 16) as u16, self.high as u16);
            let protocol = Protocol((self.high >> 32) as u8);
            return FlowKey::v6(number(v6.low), number(v6.high), low_port, high_port, protocol);
        }
        let protocol = Protocol((self.low >> 48) as u8);
        FlowKey::v4(
            (self.low >> 16) as u32,
            (self.high >> 16) as u32,
            self.low as u16,
            self.high as u16,
            protocol,
        )
    }
}

impl V6Addresses {
    /// Returns the addresses of an IPv6 key in canonical order.
    pub(super) fn of(key: &FlowKey) -> V6Addresses {
        let (low, high) = key.canonical().0.address_words();
        V6Addresses { low, high }
    }
}

/// One flow. Arrays are indexed by [`Direction`]: from the lower endpoint, from the higher one.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub(super) struct Entry {
    pub(super) low: u64,
    pub(super) high: u64,
    /// Nanoseconds since the epoch.
    pub(super) first: u64,
    pub(super) last: u64,
    /// Bytes and packets since the entry began, regardless of active timeouts; packets modulo 2^32.
    pub(super) bytes: [u64; 2],
    pub(super) packets: [u32; 2],
    /// The detector's track; for a free entry, the next free one.
    pub(super) track: u32,
    pub(super) tcp_flags: [u8; 2],
    state: u16,
}

/// The counts of an entry at its last active timeout: kept beside the table, because few flows reach one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Exported {
    /// The entry's bytes when the last record was exported.
    pub(super) bytes: [u64; 2],
    pub(super) packets: [u32; 2],
    /// The time of the flow's first packet, nanoseconds since the epoch.
    pub(super) first: u64,
}

/// Bits of an entry's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct State(u16);

impl State {
    /// The entry has a flow.
    pub(super) const OCCUPIED: State = State(1);
    /// The initiator is the higher endpoint.
    pub(super) const INITIATOR_IS_HIGH: State = State(2);
    /// TCP has ended the flow: RST, or FIN in both directions.
    pub(super) const CLOSING: State = State(4);
    /// A part of the flow has been exported already.
    pub(super) const SPLIT: State = State(8);

    /// The slot is in the order of ages, and in that of flows that TCP has ended. These two belong to the slot and
    /// outlive its flow.
    pub(super) const AGED: State = State(64);
    pub(super) const LINGERING: State = State(128);

    /// The detector verifies each packet of a direction of this flow.
    pub(super) const WATCHED: State = State(256);
    /// One of those that need a look before or after a packet is counted.
    pub(super) const EXCEPTIONAL: State = State(State::CLOSING.0 | State::WATCHED.0);

    /// The flag that a direction is a cheetah.
    #[inline(always)]
    pub(super) const fn cheetah(direction: Direction) -> State {
        State(16 << direction as u16)
    }
}

impl Entry {
    #[inline(always)]
    pub(super) fn is(&self, state: State) -> bool {
        self.state & state.0 != 0
    }

    #[inline(always)]
    pub(super) fn set(&mut self, state: State) {
        self.state |= state.0;
    }

    pub(super) fn clear(&mut self, state: State) {
        self.state &= !state.0;
    }

    /// Clears all bits except those that belong to the slot.
    pub(super) fn wipe(&mut self) {
        let kept = self.state & (State::AGED.0 | State::LINGERING.0);
        *self = Entry { state: kept, ..Entry::zeroed() };
    }

    pub(super) fn words(&self) -> Words {
        Words { low: self.low, high: self.high }
    }

    /// Returns the direction of the initiator.
    pub(super) fn initiator(&self) -> Direction {
        if self.is(State::INITIATOR_IS_HIGH) { Direction::Reverse } else { Direction::Forward }
    }

    /// Whether TCP ended the flow: RST from either side, or FIN from both.
    pub(super) fn tcp_ended(&self) -> bool {
        let [forward, reverse] = self.tcp_flags.map(TcpFlags);
        (forward | reverse).contains(TcpFlags::RST)
            || forward.contains(TcpFlags::FIN) && reverse.contains(TcpFlags::FIN)
    }
}

const _: () = assert!(size_of::<Entry>() == 64, "an entry is one cache line");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_flow_key_in_words_decodes_to_the_same_key_and_direction(
            v6 in any::<bool>(), src in any::<u128>(), dst in any::<u128>(),
            ports in any::<(u16, u16)>(), protocol in any::<u8>(),
        ) {
            let key = if v6 {
                FlowKey::v6(src, dst, ports.0, ports.1, Protocol(protocol))
            } else {
                FlowKey::v4(src as u32, dst as u32, ports.0, ports.1, Protocol(protocol))
            };
            let seed = HashSeed::new(9);
            let (words, direction) = Words::of(&key, &seed);
            prop_assert_eq!((words.key(&V6Addresses::of(&key)), direction), key.canonical());
            prop_assert_eq!(Words::of(&key.reversed(), &seed).0, words);
            prop_assert_eq!(words.is_v6(), v6);
        }
    }
}
