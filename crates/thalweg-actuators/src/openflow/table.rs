//! The flow table of a switch as read back, and its differences from the entries that were sent.

use std::collections::{BTreeMap, BTreeSet};

use thalweg_control::routes::{Rule, RuleFaults};
use thalweg_wire::openflow::Body;
use thalweg_wire::openflow::multipart::FlowStats;

use super::entries::{self, Entry, EntryKey, ReadEntry};
use super::ports::SwitchPorts;

/// Thalweg's entries in a switch.
#[derive(Debug, Default)]
pub(super) struct TableContents {
    /// Entries as Thalweg writes them.
    pub(super) entries: BTreeMap<EntryKey, Rule>,
    /// Entries with the match of one of Thalweg's, but other contents.
    changed: BTreeSet<EntryKey>,
    /// Flow-mods that delete the other entries with Thalweg's cookies.
    strays: Vec<Body>,
}

impl TableContents {
    /// Classifies the entries of a switch with these ports.
    pub(super) fn of(flows: &[FlowStats], ports: &SwitchPorts) -> TableContents {
        let mut contents = TableContents::default();
        for flow in flows {
            match entries::read(flow, ports) {
                ReadEntry::Ours(key, rule) => drop(contents.entries.insert(key, rule)),
                ReadEntry::Changed(key) => drop(contents.changed.insert(key)),
                ReadEntry::Stray(delete) => contents.strays.push(Body::FlowMod(*delete)),
            }
        }
        contents
    }

    /// Replaces the entries of these keys by those that were sent: the read-back may be older.
    pub(super) fn overlay(&mut self, keys: &BTreeSet<EntryKey>, sent: &BTreeMap<EntryKey, Rule>) {
        for key in keys {
            self.changed.remove(key);
            match sent.get(key) {
                Some(&rule) => self.entries.insert(*key, rule),
                None => self.entries.remove(key),
            };
        }
    }

    /// Counts the differences from the entries that were sent.
    pub(super) fn faults(&self, sent: &BTreeMap<EntryKey, Rule>) -> RuleFaults {
        let mut faults = RuleFaults { foreign: self.strays.len() as u64, ..RuleFaults::default() };
        for (key, rule) in sent {
            match self.entries.get(key) {
                Some(found) => faults.changed += u64::from(found != rule),
                None if self.changed.contains(key) => faults.changed += 1,
                None => faults.missing += 1,
            }
        }
        let unsent = self.entries.keys().chain(&self.changed).filter(|key| !sent.contains_key(key));
        faults.foreign += unsent.count() as u64;
        faults
    }

    /// Returns whether there are entries that Thalweg would not write.
    pub(super) fn has_strays(&self) -> bool {
        !(self.strays.is_empty() && self.changed.is_empty())
    }

    /// Returns flow-mods that delete what writing the wanted entries does not replace.
    pub(super) fn deletions(&self, ports: &SwitchPorts, is_wanted: impl Fn(&EntryKey) -> bool) -> Vec<Body> {
        let unwanted = self.changed.iter().filter(|key| !is_wanted(key));
        let deletions = unwanted.filter_map(|&key| Entry { key, rule: None }.flow_mod(ports));
        self.strays.iter().cloned().chain(deletions).collect()
    }
}
