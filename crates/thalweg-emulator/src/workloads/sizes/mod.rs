//! Flow sizes.

pub mod distribution;
mod published;
mod text;

pub use distribution::{Point, PointsError, SizeDistribution};
pub use published::{PUBLISHED, Published, UnknownSizes};
pub use text::SizesError;

use super::alias::Alias;
use super::random::Random;
use super::{UNBOUNDED, WorkloadError, checked_dscp};

/// The sizes of one class of flows.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All flows have this size; [`UNBOUNDED`] for unbounded flows.
    Fixed(u64),
    /// Each flow draws from a distribution.
    Drawn(SizeDistribution),
}

impl Sizes {
    /// The mean in bytes; infinite for unbounded flows.
    pub fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed(UNBOUNDED) => f64::INFINITY,
            Sizes::Fixed(bytes) => *bytes as f64,
            Sizes::Drawn(distribution) => distribution.mean(),
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Drawn(distribution) => distribution.sample(random.unit()),
        }
    }
}

/// One class of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeClass {
    /// Their sizes.
    pub sizes: Sizes,
    /// The differentiated services code point of their packets, 0 to 63.
    pub dscp: u8,
    /// The frequency of this class relative to the others.
    pub weight: f64,
}

/// Flows of one or several classes, for example 80 % of 1.5 KB with one code point and 20 % of 10 MB with another
/// (Flexplane, section 5.2).
#[derive(Clone, Debug)]
pub struct FlowSizes {
    classes: Box<[SizeClass]>,
    choice: Alias,
    mean: f64,
}

impl FlowSizes {
    /// All flows of one class, with code point 0.
    ///
    /// # Errors
    /// [`WorkloadError::Empty`] if the size is 0.
    pub fn of(sizes: Sizes) -> Result<FlowSizes, WorkloadError> {
        FlowSizes::mixed(vec![SizeClass { sizes, dscp: 0, weight: 1.0 }])
    }

    /// Flows of several classes.
    ///
    /// # Errors
    /// If a size is 0, a code point exceeds 63, or all weights are zero.
    pub fn mixed(classes: Vec<SizeClass>) -> Result<FlowSizes, WorkloadError> {
        if classes.iter().any(|class| class.sizes == Sizes::Fixed(0)) {
            return Err(WorkloadError::Empty("a flow"));
        }
        for class in &classes {
            checked_dscp(class.dscp)?;
        }
        let weights: Vec<f64> = classes.iter().map(|class| class.weight).collect();
        let choice = Alias::new(&weights)?;
        let sum: f64 = weights.iter().sum();
        // A class without weight does not affect the mean, even if its flows are unbounded.
        let weighted = classes.iter().filter(|class| class.weight > 0.0);
        let mean = weighted.map(|class| class.sizes.mean() * (class.weight / sum)).sum();
        Ok(FlowSizes { classes: classes.into(), choice, mean })
    }

    /// The mean in bytes over all classes; infinite with unbounded flows.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The classes.
    pub fn classes(&self) -> &[SizeClass] {
        &self.classes
    }

    /// Draws the size and code point of a flow.
    pub fn draw(&self, random: &mut Random) -> (u64, u8) {
        let class = match &*self.classes {
            [only] => only,
            several => &several[self.choice.draw(random.bits())],
        };
        (class.sizes.draw(random), class.dscp)
    }
}

#[cfg(test)]
mod tests;
