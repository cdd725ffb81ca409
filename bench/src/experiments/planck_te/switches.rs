//! The tables of all switches, changed rule by rule.

use std::collections::VecDeque;
use std::sync::Arc;

use thalweg_control::routes::reachability::broken_paths;
use thalweg_control::routes::{Change, Rules};
use thalweg_emulator::Network;
use thalweg_network::routing::ForwardingTable;
use thalweg_network::{LinkState, RouterId, Topology};

/// The rules installed in the switches, and pending changes.
#[derive(Clone, Debug)]
pub(super) struct Switches {
    topology: Arc<Topology>,
    tables: Vec<ForwardingTable>,
    installed: Rules,
    pending: VecDeque<Change>,
}

impl Switches {
    /// Creates switches with these tables installed.
    pub(super) fn new(topology: &Arc<Topology>, tables: &[ForwardingTable]) -> Switches {
        let installed = Rules::of_tables(topology, tables);
        Switches {
            topology: Arc::clone(topology),
            tables: tables.to_vec(),
            installed,
            pending: VecDeque::new(),
        }
    }

    /// Returns the installed rules.
    pub(super) fn installed(&self) -> &Rules {
        &self.installed
    }

    /// Queues changes, in this order.
    pub(super) fn queue(&mut self, changes: Vec<Change>) {
        self.pending = changes.into();
    }

    /// Discards pending changes.
    pub(super) fn discard_pending(&mut self) {
        self.pending.clear();
    }

    /// Returns the number of pending changes.
    pub(super) fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Applies the next change.
    pub(super) fn step(&mut self, network: &mut dyn Network) -> anyhow::Result<()> {
        let Some(change) = self.pending.pop_front() else { return Ok(()) };
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

    /// Clears the rules of a switch.
    pub(super) fn clear_rules(&mut self, router: RouterId) {
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

    /// Returns the number of broken paths, over all pairs and addresses.
    pub(super) fn broken_paths(&self, links: &LinkState) -> usize {
        broken_paths(&self.topology, links, &self.installed, (self.tables[0].addresses()) as u8).len()
    }
}
