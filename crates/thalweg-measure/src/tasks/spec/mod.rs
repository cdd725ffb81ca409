//! The text form of tasks, as on the command line.
//!
//! | text | answers |
//! |---|---|
//! | `heavy:0.1%` | keys with at least this share of all traffic |
//! | `change:30s`, `change:30s>5%` | keys whose traffic changed from one period of 30 s to the next, by at least this share of both together (default 1 %) |
//! | `distinct:src` | the number of distinct keys |
//! | `entropy:dst` | the entropy of the distribution of packets over keys |
//! | `spread:dst>1000`, `spread:src` | addresses with more than this number of distinct peers (default 1,000) |
//! | `moments` | L1 and L2 of the keys' sizes |
//! | `hhh:1%`, `hhh:1%:dst` | hierarchical heavy hitters: prefixes with at least this share of all traffic beyond that of longer listed ones |
//!
//! After another colon each may have a key ([`KeyDefinition`]; default `5tuple`; `src` or `dst` for `hhh`) and a
//! weight, `packets` (the default) or `bytes`: `heavy:0.1%:src/24:bytes`. Several tasks are separated by commas.

mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use super::fields::ParseTaskError;
use super::key::KeyDefinition;
use super::kinds::TaskSpec;
use super::weight::Weight;

/// Formats as it is parsed, without defaults.
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

/// Formats as it is parsed.
impl fmt::Display for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let specs: Vec<String> = self.0.iter().map(TaskSpec::to_string).collect();
        f.pad(&specs.join(","))
    }
}

impl FromStr for TaskList {
    type Err = ParseTaskError;

    /// Empty text is the empty list.
    fn from_str(text: &str) -> Result<TaskList, ParseTaskError> {
        if text.trim().is_empty() {
            return Ok(TaskList::default());
        }
        text.split(',').map(|task| task.trim().parse()).collect::<Result<_, _>>().map(TaskList)
    }
}
