//! `thalweg lab fail`, `thalweg lab repair`.

use anyhow::Context;
use clap::Args;
use thalweg_lab::Lab;

use super::PrefixArgs;
use thalweg_scenarios::component::Component;

/// Fail a link or a switch.
///
/// A failed link drops all packets, and both ends lose carrier. A failed switch loses all links, its table and its
/// counters.
#[derive(Args, Debug)]
pub(super) struct FailArgs {
    #[command(flatten)]
    part: PartArgs,
}

/// Repair a failed link or switch.
///
/// Restores the initial table of a switch.
#[derive(Args, Debug)]
pub(super) struct RepairArgs {
    #[command(flatten)]
    part: PartArgs,

    /// Leave the switch's table empty, for a controller to fill.
    #[arg(long)]
    empty: bool,
}

#[derive(Args, Debug)]
struct PartArgs {
    /// Switch (`leaf0`), host (`h0`, its link), or link by its ends (`leaf0-spine1`) or port (`leaf0:p2`, or by its name in the topology file).
    #[arg(value_name = "PART")]
    name: String,

    #[command(flatten)]
    prefix: PrefixArgs,
}

impl FailArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let (lab, part) = self.part.find()?;
        Ok(part.fail(&lab)?)
    }
}

impl RepairArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let (lab, part) = self.part.find()?;
        part.repair(&lab, self.empty).with_context(|| format!("cannot repair {}", self.part.name))
    }
}

impl PartArgs {
    fn find(&self) -> anyhow::Result<(Lab, Component)> {
        let lab = Lab::find(&self.prefix.prefix)?;
        let part = Component::find(lab.topology(), &self.name)?;
        Ok((lab, part))
    }
}
