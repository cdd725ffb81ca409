//! What a lab is to look like, as the command line says it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use thalweg_lab::{DEFAULT_RATE, LabError, Plan, Prefix};
use thalweg_network::Topology;
use thalweg_wire::BitRate;

use super::error::ScenarioError;

/// The plan of a lab of this name or file. Links have the rate given, else those of the file, else 100 Mbit/s.
///
/// # Errors
/// If there is no such topology, or no lab can have it.
pub fn plan(shape: &str, rate: Option<BitRate>, prefix: Prefix) -> Result<Plan, ScenarioError> {
    let named_rate = rate.unwrap_or(DEFAULT_RATE);
    let plan = match shape {
        "leaf-spine" => Plan::leaf_spine(named_rate).map_err(LabError::from)?,
        "fat-tree-4" => Plan::fat_tree_4(named_rate).map_err(LabError::from)?,
        file => Plan { rate, ..Plan::new(read(Path::new(file))?) },
    };
    Ok(Plan { prefix, ..plan })
}

fn read(path: &Path) -> Result<Arc<Topology>, ScenarioError> {
    let name = path.display().to_string();
    let text =
        fs::read_to_string(path).map_err(|source| ScenarioError::Topology { name: name.clone(), source })?;
    let topology = match path.extension() {
        Some(extension) if extension == "json" => Topology::from_json(&text, &name)?,
        _ => Topology::from_toml(&text, &name)?,
    };
    Ok(Arc::new(topology))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_named_or_files() {
        let sizes = |shape| {
            let plan = plan(shape, None, Prefix::default()).unwrap();
            (plan.topology.endpoints().len(), plan.topology.routers().len())
        };
        assert_eq!((sizes("leaf-spine"), sizes("fat-tree-4")), ((6, 5), (16, 20)));
        let missing = plan("no-such-file.toml", None, Prefix::default()).unwrap_err().to_string();
        assert!(
            missing.starts_with("there is no topology \"no-such-file.toml\": expected `leaf-spine`"),
            "{missing}"
        );
    }
}
