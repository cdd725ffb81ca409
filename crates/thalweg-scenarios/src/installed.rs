//! The rules installed in the switches of a lab: read back and changed.

use thalweg_control::routes::{Change, Rule, Rules};
use thalweg_lab::{Lab, TableEntry};

use super::error::ScenarioError;

/// Reads the rules of all switches.
///
/// # Errors
/// If the lab no longer exists.
pub(super) fn installed(lab: &Lab) -> Result<Rules, ScenarioError> {
    let mut rules = Rules::new();
    for TableEntry { router, mac: address, port, rewrite } in lab.tables()?.entries()? {
        let rule = Some(Rule { port, write_back: rewrite });
        rules.apply(&Change { router, address, rule });
    }
    Ok(rules)
}

/// Applies changes in order.
///
/// # Errors
/// If a switch refuses a change; the changes before it stay.
pub(super) fn apply_changes(lab: &Lab, changes: &[Change]) -> Result<(), ScenarioError> {
    let mut tables = lab.tables()?;
    for &Change { router, address: mac, rule } in changes {
        match rule {
            Some(Rule { port, write_back: rewrite }) => {
                tables.set(&TableEntry { router, mac, port, rewrite })?;
            }
            None => {
                tables.remove(router, mac)?;
            }
        }
    }
    Ok(())
}
