//! How many bytes a flow has.

pub mod distribution;
mod published;
mod text;

pub use distribution::{Point, PointsError, SizeDistribution};
pub use published::{PUBLISHED, Published, UnknownSizes};
pub use text::SizesError;

use super::alias::Alias;
use super::random::Random;
use super::{UNBOUNDED, WorkloadError, checked_dscp};

/// Where the sizes of one class of flows come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// All flows have so many bytes; [`UNBOUNDED`] is without end.
    Fixed(u64),
    /// Each flow draws from a distribution.
    Drawn(SizeDistribution),
}

impl Sizes {
    /// Mean in bytes; infinite if flows do not end.
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
    /// Differentiated services code point of their packets, 0 to 63.
    pub dscp: u8,
    /// How many of all flows are of this class, in proportion to the other classes' weights.
    pub weight: f64,
}

/// Flows of one class or several: 80 % of 1.5 KB with one code point and 20 % of 10 MB with another (Flexplane,
/// section 5.2), for example.
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
    /// A size of 0, a code point above 63, or weights that add up to nothing.
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
        // A class without weight has no part in the mean, even if its flows do not end.
        let weighted = classes.iter().filter(|class| class.weight > 0.0);
        let mean = weighted.map(|class| class.sizes.mean() * (class.weight / sum)).sum();
        Ok(FlowSizes { classes: classes.into(), choice, mean })
    }

    /// Mean in bytes over all classes; infinite if there are flows that do not end.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The classes.
    pub fn classes(&self) -> &[SizeClass] {
        &self.classes
    }

    /// Bytes and code point of a flow.
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
