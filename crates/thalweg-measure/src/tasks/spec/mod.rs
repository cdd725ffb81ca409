//! What is to be measured, as it is written on the command line.
//!
//! | written | asks for |
//! |---|---|
//! | `heavy:0.1%` | keys with at least this share of all traffic |
//! | `change:30s`, `change:30s>5%` | keys whose traffic has changed since the 30 s before, by at least this share of both together (1 % unless told otherwise) |
//! | `distinct:src` | the number of different keys |
//! | `entropy:dst` | the entropy of the distribution of packets over keys |
//! | `spread:dst>1000`, `spread:src` | addresses with more than this many different peers (1,000 unless told otherwise) |
//! | `moments` | L1 and L2 of the keys' sizes |
//! | `hhh:1%`, `hhh:1%:dst` | hierarchical heavy hitters: prefixes with at least this share of all traffic beyond that of longer ones |
//!
//! Behind a colon each may have a key ([`KeyDefinition`]; `5tuple` unless told otherwise; `src` or `dst` for `hhh`)
//! and what is counted, `packets` (the default) or `bytes`: `heavy:0.1%:src/24:bytes`. Several are separated by
//! commas.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use super::fields::ParseTaskError;
use super::key::KeyDefinition;
use super::kinds::TaskSpec;
use super::weight::Weight;

/// As it is read; what would be taken for granted is left out.
impl fmt::Display for TaskSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = format!("{}{}", self.name(), self.parameters());
        if !self.key_is_parameter() && self.key() != KeyDefinition::default() {
            text += &format!(":{}", self.key());
        }
        if self.weight() != Weight::default() {
            text += &format!(":{}", self.weight());
        }
        f.pad(&text)
    }
}

impl FromStr for TaskSpec {
    type Err = ParseTaskError;

    fn from_str(text: &str) -> Result<TaskSpec, ParseTaskError> {
        parse::task(text)
    }
}

/// Tasks, separated by commas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskList(pub Vec<TaskSpec>);

/// As it is read.
impl fmt::Display for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let specs: Vec<String> = self.0.iter().map(TaskSpec::to_string).collect();
        f.pad(&specs.join(","))
    }
}

impl FromStr for TaskList {
    type Err = ParseTaskError;

    /// Nothing is the empty list.
    fn from_str(text: &str) -> Result<TaskList, ParseTaskError> {
        if text.trim().is_empty() {
            return Ok(TaskList::default());
        }
        text.split(',').map(|task| task.trim().parse()).collect::<Result<_, _>>().map(TaskList)
    }
}
