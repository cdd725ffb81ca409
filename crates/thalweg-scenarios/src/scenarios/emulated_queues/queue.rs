//! Lengths of the measured queue: the table `queues` of an arbiter, and what it says.

use std::path::Path;

use serde::{Deserialize, Serialize};
use thalweg_emulator::core::occupancy::Occupancy;
use thalweg_wire::Timestamp;

use crate::error::ScenarioError;

/// The table in the arbiter's folder.
const TABLE: &str = "queues.csv";

/// Lengths of a queue in packets, from samples at equal distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueueLengths {
    /// The number of samples.
    pub samples: u64,
    /// The shortest.
    pub min: u32,
    /// The 5th percentile.
    pub p5: u32,
    /// The first quartile.
    pub p25: u32,
    /// The median.
    pub median: u32,
    /// The third quartile.
    pub p75: u32,
    /// The 95th percentile.
    pub p95: u32,
    /// The longest.
    pub max: u32,
    /// The mean.
    pub mean: f64,
    /// The standard deviation.
    pub deviation: f64,
}

impl QueueLengths {
    /// Returns the lengths that the samples have.
    pub fn of(samples: &[u32]) -> QueueLengths {
        let mut occupancy = Occupancy::default();
        samples.iter().for_each(|packets| occupancy.add(*packets, 1));
        QueueLengths {
            samples: occupancy.samples(),
            min: occupancy.quantile(0.0),
            p5: occupancy.quantile(0.05),
            p25: occupancy.quantile(0.25),
            median: occupancy.quantile(0.5),
            p75: occupancy.quantile(0.75),
            p95: occupancy.quantile(0.95),
            max: occupancy.max(),
            mean: occupancy.mean(),
            deviation: occupancy.deviation(),
        }
    }
}

/// A row of the table; others of its columns are not needed.
#[derive(Deserialize)]
struct Row {
    time_ns: u64,
    packets: u32,
}

/// Reads the samples of one port between two times from the folder of an arbiter that started at `started_at`.
///
/// # Errors
/// If there is no table, or it is damaged.
pub(super) fn read(
    folder: &Path,
    started_at: Timestamp,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<u32>, ScenarioError> {
    let path = folder.join(TABLE);
    let failed = |error: csv::Error| ScenarioError::Monitoring(format!("{}: {error}", path.display()));
    let mut samples = Vec::new();
    for row in csv::Reader::from_path(&path).map_err(failed)?.deserialize() {
        let Row { time_ns, packets } = row.map_err(failed)?;
        if (from.0..until.0).contains(&(started_at.0 + time_ns)) {
            samples.push(packets);
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn samples_between_two_times_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (from, until) = (Timestamp(1_020), Timestamp(1_040));
        let read = || read(folder.path(), Timestamp(1_000), from, until);
        assert!(read().unwrap_err().to_string().contains("queues.csv"));
        let rows = "time_ns,router,port,to,packets,bytes\n10,tor0,0,h0,1,9\n20,tor0,0,h0,2,9\n30,tor0,0,h0,3,9\n40,tor0,0,h0,4,9\n";
        fs::write(folder.path().join(TABLE), rows).unwrap();
        assert_eq!(read().unwrap(), [2, 3]);
        fs::write(folder.path().join(TABLE), "time_ns,packets\n10,x\n").unwrap();
        assert!(read().unwrap_err().to_string().contains("line: 2"), "{}", read().unwrap_err());
    }

    #[test]
    fn lengths_are_those_of_the_samples() {
        let lengths = QueueLengths::of(&[4, 2, 9, 5, 4, 5, 7, 4]);
        let QueueLengths { samples, min, p5, p25, median, p75, p95, max, .. } = lengths;
        assert_eq!((samples, min, p5, p25, median, p75, p95, max), (8, 2, 2, 4, 4, 5, 9, 9));
        assert_eq!((lengths.mean, lengths.deviation), (5.0, 2.0));
    }
}
