//! What the switches of a lab have installed: read back as rules, and brought to what is wanted.

use thalweg_control::routes::{Change, Rule, Rules};
use thalweg_lab::{Lab, TableEntry};

use super::error::ScenarioError;

/// The rules that all switches have.
///
/// # Errors
/// If the lab is gone.
pub(super) fn installed(lab: &Lab) -> Result<Rules, ScenarioError> {
    let mut rules = Rules::new();
    for TableEntry { router, mac: address, port, rewrite } in lab.tables()?.entries()? {
        let rule = Some(Rule { port, write_back: rewrite });
        rules.apply(&Change { router, address, rule });
    }
    Ok(rules)
}

/// Carries changes out, in their order.
///
/// # Errors
/// If a switch refuses one; those before it are made.
pub(super) fn carry_out(lab: &Lab, changes: &[Change]) -> Result<(), ScenarioError> {
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
