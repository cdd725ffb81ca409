//! Sends frames of many TCP flows into one end of a veth pair, at a constant rate, with the kernel's generator of XDP frames.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use thalweg_linux::bpf::{MappedRegion, Object, Program, ProgramKind};
use thalweg_wire::MacAddress;

/// Compiled from `sender.bpf.c` by `scripts/bpf.sh`.
const PROGRAM: &[u8] = include_bytes!("sender.bpf.o");

/// Flows that the program has room for.
pub const MOST_FLOWS: u32 = 16_384;

/// The length of a frame in bytes without its checksum: about the mean on a busy link.
pub const FRAME: usize = 800;

/// Ethernet, IPv4 and TCP.
const HEADERS: usize = 14 + 20 + 20;

/// Frames that the kernel hands over together.
const BATCH: u32 = 64;

/// Frames for one call of the kernel, whose set-up takes tens of milliseconds.
const EACH_CALL: u32 = 1 << 20;

/// Offsets in `struct setting_value`.
const INTERVAL: usize = 16;
const SENT: usize = 32;

/// A flow: its addresses and ports of both ends, the source first.
#[derive(Clone, Copy, Debug)]
pub struct SentFlow {
    /// Ethernet.
    pub ethernet: [MacAddress; 2],
    /// IPv4.
    pub ip: [Ipv4Addr; 2],
    /// TCP.
    pub ports: [u16; 2],
}

/// A program with its flows.
pub struct Sender {
    program: Program,
    setting: MappedRegion,
    frame: Vec<u8>,
}

impl Sender {
    /// Creates a sender of these flows in turn, to the interface of this index.
    pub fn new(flows: &[SentFlow], interface: u32) -> anyhow::Result<Sender> {
        let object = Object::read(PROGRAM)?;
        let maps = object.create_maps()?;
        let region = |name: &str| -> anyhow::Result<MappedRegion> {
            let map = maps.get(name).with_context(|| format!("no map {name}"))?;
            Ok(MappedRegion::try_from(map.try_clone()?)?)
        };
        let values = region("flows")?;
        for (number, flow) in flows.iter().enumerate() {
            values.write(number, &flow.bytes());
        }
        let setting = [interface, flows.len() as u32, (FRAME - HEADERS) as u32, 0];
        let values = region("setting")?;
        values.write(0, &setting.map(u32::to_ne_bytes).concat());
        let program = object.load_with("send_frame", ProgramKind::Xdp, &maps)?;
        Ok(Sender { program, setting: values, frame: frame() })
    }

    /// Sends `rate` frames per second for a time. Returns their number. A sender that falls behind does not catch up.
    pub fn send(&self, rate: u64, time: Duration) -> anyhow::Result<u64> {
        self.setting.store_u32(0, INTERVAL, (1_000_000_000 / rate) as u32);
        let (start, before) = (Instant::now(), self.sent());
        while start.elapsed() < time {
            self.program.send(&self.frame, EACH_CALL, BATCH).context("cannot send frames")?;
        }
        Ok(self.sent() - before)
    }

    /// Sends frames as fast as they are taken.
    pub fn send_count(&self, frames: u32) -> anyhow::Result<()> {
        self.setting.store_u32(0, INTERVAL, 0);
        self.program.send(&self.frame, frames, BATCH).context("cannot send frames")
    }

    fn sent(&self) -> u64 {
        let mut words = [0];
        self.setting.read(0, SENT, &mut words);
        words[0]
    }
}

impl SentFlow {
    /// Returns the value of `struct flow`.
    fn bytes(&self) -> Vec<u8> {
        let [source, destination] = self.ethernet;
        let mut bytes = [destination.0, source.0].concat();
        bytes.extend(self.ip.map(|ip| ip.octets()).concat());
        bytes.extend(self.ports.map(u16::to_be_bytes).concat());
        bytes.extend([0; 8]);
        bytes
    }
}

/// Returns what all frames have in common. Checksums are zero: a collector does not see whole packets, so it looks at none.
fn frame() -> Vec<u8> {
    let mut frame = vec![0; FRAME];
    frame[12..14].copy_from_slice(&[8, 0]);
    let length = ((FRAME - 14) as u16).to_be_bytes();
    frame[14..24].copy_from_slice(&[0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, 6]);
    // Data offset 5, ACK, window.
    frame[46..50].copy_from_slice(&[0x50, 0x10, 0xFF, 0xFF]);
    frame
}
