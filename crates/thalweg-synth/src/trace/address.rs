//! Unique flow keys.
//!
//! A bijection assigns client number `n` its own address and port, so its 5-tuple is unique with any server. Clients
//! and servers are in disjoint blocks, so no key is another one reversed. All blocks are private, shared or for
//! documentation, so none belongs to a real host.
//!
//! | hosts | IPv4 | IPv6 |
//! |---|---|---|
//! | clients | 10.0.0.0/8 | 2001:db8::/33 |
//! | servers | 100.64.0.0/10 | 2001:db8:8000::/33 |
//! | flood | 172.16.0.0/12 | none |

use thalweg_wire::{FlowKey, Protocol};

use crate::random::Random;

const CLIENTS_V4: u32 = 0x0A00_0000;
const SERVERS_V4: u32 = 0x6440_0000;
const SERVER_BITS_V4: u32 = 22;
const FLOOD_V4: u32 = 0xAC10_0000;
const FLOOD_BITS_V4: u32 = 20;
const CLIENTS_V6: u128 = 0x2001_0DB8 << 96;
const SERVERS_V6: u128 = 0x2001_0DB8_8000 << 80;
/// Clients use the upper half of the ports, like ephemeral ports of real stacks.
const CLIENT_PORT_BITS: u32 = 15;
/// There are `2^16` servers; the k-th is chosen with a probability proportional to about `1/k`.
const SERVER_OCTAVES: u64 = 16;
/// Server ports, drawn from ten entries; zero stands for any port above 1023.
const TCP_PORTS: [u16; 10] = [443, 443, 443, 443, 443, 443, 80, 80, 22, 0];
const UDP_PORTS: [u16; 10] = [443, 443, 443, 443, 53, 53, 53, 123, 0, 0];

/// Assigns flow keys.
pub(super) struct Addresses {
    seed: u64,
    /// Bits of a client's number: address and port combined.
    client_bits: u32,
    next_client: u64,
    next_flood: u64,
}

impl Addresses {
    /// Returns a generator of keys for `flows` flows; about eight share a client address.
    pub(super) fn new(seed: u64, flows: u64) -> Addresses {
        let address_bits = (u64::BITS - flows.leading_zeros()).saturating_sub(3).clamp(8, 24);
        let client_bits = address_bits + CLIENT_PORT_BITS;
        debug_assert!(flows <= 1 << client_bits);
        Addresses { seed, client_bits, next_client: 0, next_flood: 0 }
    }

    /// Returns the key of the next flow, from client to server.
    pub(super) fn next_key(&mut self, is_v6: bool, protocol: Protocol, random: &mut Random) -> FlowKey {
        let number = permute(self.next_client, self.client_bits, self.seed);
        self.next_client += 1;
        let port = 0x8000 | (number as u16 & 0x7FFF);
        let address = (number >> CLIENT_PORT_BITS) as u32;
        let server = scatter(random.octave(SERVER_OCTAVES) as u32);
        let ports = if protocol == Protocol::UDP { UDP_PORTS } else { TCP_PORTS };
        let server_port = match ports[random.below(10) as usize] {
            0 => 1024 + random.below(31 << 10) as u16,
            port => port,
        };
        if is_v6 {
            // Each client has a /64, and an interface identifier that looks like a privacy address.
            let interface = u128::from(u64::from(address).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let client = CLIENTS_V6 | u128::from(address) << 64 | interface;
            FlowKey::v6(client, SERVERS_V6 | u128::from(server), port, server_port, protocol)
        } else {
            // Scatters the client's number over the block: odd factors are bijections modulo 2^24.
            let client = CLIENTS_V4 | (address.wrapping_mul(0x009E_3779) & 0x00FF_FFFF);
            FlowKey::v4(client, SERVERS_V4 | server, port, server_port, protocol)
        }
    }

    /// Returns the key of the next flood flow: random source, destination and ports, half TCP, half UDP.
    pub(super) fn next_flood_key(&mut self, random: &mut Random) -> FlowKey {
        let number = permute(self.next_flood, FLOOD_BITS_V4 + 16, self.seed);
        self.next_flood += 1;
        let bits = random.bits();
        let server = SERVERS_V4 | (bits as u32 & ((1 << SERVER_BITS_V4) - 1));
        let protocol = if bits >> 63 == 0 { Protocol::TCP } else { Protocol::UDP };
        FlowKey::v4(FLOOD_V4 | (number >> 16) as u32, server, number as u16, (bits >> 32) as u16, protocol)
    }
}

/// A bijection of `0..2^bits` without visible pattern: each step (adding, multiplying by an odd number, xoring with a
/// shifted copy) is invertible.
fn permute(number: u64, bits: u32, seed: u64) -> u64 {
    let mask = (1 << bits) - 1;
    let mut x = number.wrapping_add(seed) & mask;
    for factor in [0xBF58_476D_1CE4_E5B9u64, 0x94D0_49BB_1331_11EB] {
        x = x.wrapping_mul(factor) & mask;
        x ^= x >> (bits / 2);
    }
    x
}

/// Scatters servers over their block: an odd factor is a bijection modulo `2^22`.
const fn scatter(server: u32) -> u32 {
    server.wrapping_mul(0x0019_E377) & ((1 << SERVER_BITS_V4) - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn client_addresses_and_ports_are_unique() {
        let mut random = Random::new(9);
        for flows in [1u64, 300, 100_000] {
            let mut addresses = Addresses::new(u64::MAX, flows);
            let mut seen = HashSet::new();
            for number in 0..flows {
                let protocol = if number.is_multiple_of(3) { Protocol::UDP } else { Protocol::TCP };
                let key = addresses.next_key(number.is_multiple_of(5), protocol, &mut random);
                // The client alone makes the key unique: servers and protocols repeat.
                assert!(seen.insert((key.src(), key.src_port)), "{key}");
                let key = addresses.next_flood_key(&mut random);
                assert!(seen.insert((key.src(), key.src_port)), "{key}");
            }
        }
    }

    #[test]
    fn the_permutation_is_a_bijection() {
        for bits in [8, 15, 16] {
            let images: HashSet<u64> = (0..1 << bits).map(|number| permute(number, bits, 77)).collect();
            assert_eq!(images.len(), 1 << bits);
            assert!(images.iter().all(|image| image >> bits == 0));
        }
    }
}
