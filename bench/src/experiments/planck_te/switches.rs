//! The tables of all switches, set rule by rule.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_control::routes::reachability::broken_paths;
use thalweg_control::routes::{Change, Rules};
use thalweg_emulator::Network;
use thalweg_network::routing::ForwardingTable;
use thalweg_network::{LinkState, RouterId, Topology};

/// What switches have installed, and what is still to be done.
#[derive(Clone, Debug)]
pub(super) struct Switches {
    topology: Arc<Topology>,
    tables: Vec<ForwardingTable>,
    installed: Rules,
    to_do: VecDeque<Change>,
}

impl Switches {
    /// All of it is installed.
    pub(super) fn new(topology: &Arc<Topology>, tables: &[ForwardingTable]) -> Switches {
        let installed = Rules::of_tables(topology, tables);
        Switches {
            topology: Arc::clone(topology),
            tables: tables.to_vec(),
            installed,
            to_do: VecDeque::new(),
        }
    }

    /// What switches have, as it is read back.
    pub(super) fn installed(&self) -> &Rules {
        &self.installed
    }

    /// Begins to change rules, in this order.
    pub(super) fn aim(&mut self, changes: Vec<Change>) {
        self.to_do = changes.into();
    }

    /// What is still to be done is not.
    pub(super) fn give_up(&mut self) {
        self.to_do.clear();
    }

    /// Rules that are still to be changed.
    pub(super) fn to_do(&self) -> usize {
        self.to_do.len()
    }

    /// Changes the next rule.
    pub(super) fn step(&mut self, network: &mut dyn Network) -> anyhow::Result<()> {
        let Some(change) = self.to_do.pop_front() else { return Ok(()) };
        if let Some((endpoint, address)) = self.topology.endpoint_with_mac(change.address) {
            let table = &mut self.tables[change.router.index()];
            match change.rule {
                Some(rule) => table.set(endpoint, address, rule.port)?,
                None => table.clear(endpoint, address)?,
            };
            network.set_forwarding(change.router, Some(table.clone()));
        }
        self.installed.apply(&change);
        Ok(())
    }

    /// A switch has lost what it had.
    pub(super) fn lose(&mut self, router: RouterId) {
        let lost: Vec<Change> = self
            .installed
            .iter()
            .filter(|(at, ..)| *at == router)
            .map(|(router, address, _)| Change { router, address, rule: None })
            .collect();
        lost.iter().for_each(|change| self.installed.apply(change));
        let table = &mut self.tables[router.index()];
        *table = ForwardingTable::new(
            table.endpoints() as u16,
            (table.addresses() - 1) as u8,
            table.ports() as u16,
        );
    }

    /// How many pairs, by how many of their addresses, do not arrive over links that are up.
    pub(super) fn astray(&self, links: &LinkState) -> usize {
        broken_paths(&self.topology, links, &self.installed, (self.tables[0].addresses()) as u8).len()
    }
}
