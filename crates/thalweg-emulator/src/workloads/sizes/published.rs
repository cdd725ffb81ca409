//! Published distributions. Each is a file in this folder that names its source.

use thiserror::Error;

use super::SizeDistribution;
use crate::workloads::Named;

/// A published distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// Its name and description.
    pub named: Named,
    text: &'static str,
}

macro_rules! published {
    ($($name:literal, $summary:literal;)+) => {
        /// All published distributions.
        pub const PUBLISHED: &[Published] = &[
            $(Published {
                named: Named { name: $name, summary: $summary },
                text: include_str!(concat!($name, ".csv")),
            },)+
        ];
    };
}

published! {
    "web_search", "web search (DCTCP 2010), as in Flexplane and pFabric: mean 1.67 MB, at most 29.2 MB";
    "web_search_hpcc", "web search (DCTCP 2010), as in HPCC: mean 1.71 MB, at most 30 MB";
    "data_mining", "data mining (VL2 2009), as in Flexplane and pFabric, whole packets: mean 7.47 MB, at most 973 MB";
    "data_mining_fine", "data mining (VL2 2009), as in ABM, from 100 bytes: mean 5.04 MB, at most 1 GB";
    "hadoop", "Hadoop at Facebook (2015), as in HPCC: mean 120 kB, at most 10 MB";
    "cache", "key-value cache at Facebook (2012), as in Homa: mean 185 B, at most 1 MB";
    "storage", "storage at Alibaba (2019), as in HPCC: mean 40.9 kB, at most 2 MB";
}

/// An unknown name of a distribution.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no distribution of flow sizes is called `{name}`: expected {}", names())]
pub struct UnknownSizes {
    /// The name.
    pub name: String,
}

impl SizeDistribution {
    /// The published distribution `name`.
    ///
    /// # Errors
    /// [`UnknownSizes`] if there is none.
    pub fn published(name: &str) -> Result<SizeDistribution, UnknownSizes> {
        let found = PUBLISHED.iter().find(|published| published.named.name == name);
        found.map(Published::distribution).ok_or_else(|| UnknownSizes { name: name.to_owned() })
    }
}

impl Published {
    /// The distribution.
    pub fn distribution(&self) -> SizeDistribution {
        SizeDistribution::from_text(self.text).expect("a test reads every file that is built in")
    }
}

fn names() -> String {
    let names: Vec<&str> = PUBLISHED.iter().map(|published| published.named.name).collect();
    names.join(", ")
}
