#![allow(missing_docs)]
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::core::emulation::Emulation;
use thalweg_emulator::schemes::drop_tail::drop_tail;
use thalweg_emulator::{Packet, Request};
use thalweg_network::topology::LinkSpec;
use thalweg_network::topology::shapes::rack;
use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Nanos};
fn main() {
    let n: usize = std::env::args().nth(2).map_or(32, |a| a.parse().unwrap());
    let topology = rack(n as u32, LinkSpec { rate: BitRate(10_000_000_000), delay: Nanos::ZERO }).unwrap();
    let blueprint = Blueprint::new(&topology, 1500, 1);
    let mut e = Emulation::new(&blueprint, |route, shape| drop_tail(route, shape, &Default::default())).unwrap();
    let shard = e.shard_mut();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let lambda = 0.8 * n as f64;
    let mut cdf = vec![]; let mut p = (-lambda).exp(); let mut c = 0.0;
    for k in 0..4096 { c += p; cdf.push((c * 4294967296.0) as u64); p *= lambda / (k + 1) as f64; }
    let slots: u64 = std::env::args().nth(1).map_or(4_000_000, |a| a.parse().unwrap());
    let mut dropped = Vec::new();
    let t = std::time::Instant::now();
    let mut injected = 0u64; let mut got = 0u64; let mut sum = 0u64;
    for _ in 0..slots {
        let u = rng.next_u64() >> 32;
        let k = cdf.partition_point(|&c| c <= u);
        shard.inject((0..k).map(|_| {
            let r = rng.next_u64();
            let s = ((r as u32 as u64 * n as u64) >> 32) as u16;
            let d0 = (((r >> 32) * (n as u64 - 1)) >> 32) as u16;
            let d = d0 + (d0 >= s) as u16;
            Request { packet: Packet::new(EndpointId(s), EndpointId(d), r as u32, 0, 1538), remaining: 0 }
        }));
        injected += k as u64;
        shard.step();
        for batch in shard.delivered() { got += batch.len() as u64; for p in batch { sum += p.destination().0 as u64; } }
        shard.take_dropped(&mut dropped); dropped.clear();
    }
    let s = t.elapsed().as_secs_f64();
    println!("{injected} injected {got} delivered {:.1} M/s  {:.2} ns each; {sum} in flight {}", got as f64 / s / 1e6, s * 1e9 / got as f64, shard.in_flight());
}
