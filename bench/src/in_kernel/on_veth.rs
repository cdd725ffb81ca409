//! The same programs at XDP of an interface: the end of a veth pair into which the kernel's generator sends frames.
//!
//! The time of a frame includes the generator, both ends of the pair, and the network stack that drops the frame in the end, because no
//! address is its own. So only differences between programs are of use.

use std::time::Instant;

use thalweg_sketch::Probability;
use thalweg_wire::MacAddress;

use super::traffic::Traffic;
use super::{Contender, contenders};
use crate::results::Table;
use crate::row;
use crate::statistics::median;
use crate::veth::{Sender, SentFlow, VethPair};

/// XDP_FLAGS_DRV_MODE of linux/if_link.h: in the driver, not on packets of the network stack.
const IN_DRIVER: u32 = 1 << 2;

/// Frames for each program and round.
const FRAMES: u32 = 1 << 20;

/// Whether a program runs here: each without sampling and at 1/64.
fn is_chosen(contender: &Contender) -> bool {
    contender.probability.is_none_or(|p| [0, 6].iter().any(|&log2| Probability::new(log2) == Some(p)))
}

/// Runs all programs in turn, once more than `runs` rounds. Returns nanoseconds per frame.
pub(super) fn measure(traffic: &Traffic, runs: usize) -> anyhow::Result<Table> {
    let pair = VethPair::create()?;
    let [receiver, sender] = pair.indices()?;
    let flow = SentFlow {
        ethernet: [MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2])],
        ip: [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()],
        ports: [1, 2],
    };
    let sender = Sender::new(&[flow], sender)?;
    let mut contenders: Vec<Contender> = contenders(traffic)?.into_iter().filter(is_chosen).collect();
    for round in 0..=runs {
        for contender in &mut contenders {
            let _attached = contender.program.attach_xdp(receiver as i32, IN_DRIVER)?;
            sender.send_count(FRAMES / 16)?;
            let start = Instant::now();
            sender.send_count(FRAMES)?;
            // The first round fills caches and hash maps.
            if round > 0 {
                contender.ns.push(start.elapsed().as_nanos() as f64 / f64::from(FRAMES));
            }
        }
    }
    let mut rows =
        Table::new(["contender", "p", "ns per frame", "M frames/s", "ns over pass", "least", "most"]);
    let pass = contenders[0].ns.clone();
    for Contender { name, probability, ns, .. } in contenders {
        // Of each round, so that slow changes of the machine do not count.
        let mut over: Vec<f64> = ns.iter().zip(&pass).map(|(ns, pass)| ns - pass).collect();
        over.sort_by(f64::total_cmp);
        row!(
            rows,
            name,
            probability.map_or(String::new(), |p| p.to_string()),
            format!("{:.1}", median(&ns)),
            format!("{:.2}", 1_000.0 / median(&ns)),
            format!("{:.1}", median(&over)),
            format!("{:.1}", over[0]),
            format!("{:.1}", over[over.len() - 1])
        );
    }
    Ok(rows)
}
