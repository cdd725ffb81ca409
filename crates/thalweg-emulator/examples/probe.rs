#![allow(missing_docs)]
use thalweg_emulator::build::ForScheme;
use thalweg_emulator::core::blueprint::Blueprint;
use thalweg_emulator::core::parallel::Driver;
use thalweg_emulator::router::{Router, Routing, Shape};
use thalweg_emulator::schemes::list::Scheme;
use thalweg_emulator::workloads::open_loop::*;
use thalweg_network::topology::LinkSpec;
use thalweg_network::topology::shapes::rack;
use thalweg_network::EndpointId;
use thalweg_wire::{BitRate, Nanos};
struct Go(u64, usize, bool);
impl ForScheme for Go {
    type Output = ();
    fn with<R: Router + 'static>(self, make: impl Fn(Routing, Shape<'_>) -> R + Sync) {
        let topology = rack(self.1 as u32, LinkSpec { rate: BitRate(10_000_000_000), delay: Nanos::ZERO }).unwrap();
        let blueprint = Blueprint::new(&topology, 1500, 1);
        let mut shard = blueprint.build(make).unwrap();
        let kinds: Vec<(PacketKind, f64)> = if self.2 { (0..256u32).map(|n| (PacketKind { length: 1_538, traffic_class: 0, remaining: n * 40_000 }, 1.0)).collect() } else { vec![(PacketKind { length: 1538, traffic_class: 2, remaining: 1538 }, 1.0)] };
        let senders = PoissonSenders::new(&Rack { first: EndpointId(0), endpoints: self.1, network: self.1, destinations: Destinations::Uniform, load: 0.8, slot_bytes: 1538, mix: PacketMix::mixed(&kinds).unwrap(), seed: 1 }).unwrap();
        let mut driver = Racks::new(vec![senders]);
        let t = std::time::Instant::now();
        for _ in 0..self.0 { driver.slot(&mut shard); shard.step(); }
        let s = t.elapsed().as_secs_f64();
        let got = driver.delivered.packets;
        println!("{got} delivered {:.1} M/s  {:.2} ns each", got as f64 / s / 1e6, s * 1e9 / got as f64);
    }
}
fn main() {
    let arg = |n: usize, d: u64| std::env::args().nth(n).map_or(d, |a| a.parse().unwrap());
    let name = std::env::args().nth(3).unwrap_or("droptail".into());
    Scheme::default_of(&name).unwrap().apply(Go(arg(1, 1_000_000), arg(2, 32) as usize, name == "pfabric"));
}
