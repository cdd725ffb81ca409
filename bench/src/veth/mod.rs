//! A veth pair, and a sender of frames into one of its ends.

mod sender;

use std::process::Command;

use anyhow::{Context as _, ensure};
use thalweg_linux::Netlink;

pub use sender::{FRAME, MOST_FLOWS, Sender, SentFlow};

/// The names of the ends: that which receives, and that into which frames are sent.
const ENDS: [&str; 2] = ["thalweg-bench0", "thalweg-bench1"];

/// A veth pair that is removed when dropped.
pub struct VethPair;

impl VethPair {
    /// Creates the pair, and sets both ends up.
    pub fn create() -> anyhow::Result<VethPair> {
        let [receiver, sender] = ENDS;
        ip(&["link", "add", receiver, "type", "veth", "peer", "name", sender])?;
        let pair = VethPair;
        for end in ENDS {
            ip(&["link", "set", end, "up"])?;
        }
        Ok(pair)
    }

    /// Returns the name of the end that receives.
    pub fn receiver(&self) -> &'static str {
        ENDS[0]
    }

    /// Returns the interface indices of the receiving and of the sending end.
    pub fn indices(&self) -> anyhow::Result<[u32; 2]> {
        let netlink = Netlink::open()?;
        Ok([netlink.interface(ENDS[0])?, netlink.interface(ENDS[1])?])
    }
}

impl Drop for VethPair {
    fn drop(&mut self) {
        if let Err(error) = ip(&["link", "delete", ENDS[0]]) {
            eprintln!("cannot remove {}: {error}", ENDS[0]);
        }
    }
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new("ip").args(arguments).status().context("cannot run ip")?;
    ensure!(status.success(), "ip {}: {status}", arguments.join(" "));
    Ok(())
}
