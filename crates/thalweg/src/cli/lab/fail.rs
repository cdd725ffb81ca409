//! `thalweg lab fail`, `thalweg lab repair`.

use anyhow::Context;
use clap::Args;
use thalweg_lab::Lab;

use super::PrefixArgs;
use thalweg_scenarios::part::Part;

/// Have a link or a switch fail.
///
/// A link that fails carries nothing, and its ends see no carrier. A switch that fails has no links, and has forgotten its
/// table and its counters when it comes back.
#[derive(Args, Debug)]
pub(super) struct FailArgs {
    #[command(flatten)]
    part: PartArgs,
}

/// Repair what has failed.
///
/// A switch gets the entries back that all switches had when the lab came up.
#[derive(Args, Debug)]
pub(super) struct RepairArgs {
    #[command(flatten)]
    part: PartArgs,

    /// Leave a switch's table empty: a controller is to fill it.
    #[arg(long)]
    empty: bool,
}

#[derive(Args, Debug)]
struct PartArgs {
    /// A switch (`leaf0`), a host for its link (`h0`), or a link by its ends (`leaf0-spine1`) or a port (`leaf0:p2`).
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
    fn find(&self) -> anyhow::Result<(Lab, Part)> {
        let lab = Lab::find(&self.prefix.prefix)?;
        let part = Part::named(lab.topology(), &self.name)?;
        Ok((lab, part))
    }
}
