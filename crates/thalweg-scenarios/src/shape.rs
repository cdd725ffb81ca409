//! The topology of a lab, as the command line names it.

use std::path::Path;
use std::sync::Arc;

use thalweg_config::{Format, read_text};
use thalweg_lab::{DEFAULT_RATE, LabError, Plan, Prefix};
use thalweg_network::Topology;
use thalweg_wire::BitRate;

use super::error::ScenarioError;

/// Returns the plan for a shape's name, with `-` or `_`, or a topology file. Links have `rate` if given, else the file's rates, else 100
/// Mbit/s.
///
/// # Errors
/// If no shape or file has this name, or the file is not a valid topology.
pub fn plan(shape: &str, rate: Option<BitRate>, prefix: Prefix) -> Result<Plan, ScenarioError> {
    let named_rate = rate.unwrap_or(DEFAULT_RATE);
    let plan = match shape.replace('_', "-").as_str() {
        "leaf-spine" => Plan::leaf_spine(named_rate).map_err(LabError::from)?,
        "fat-tree-4" => Plan::fat_tree_4(named_rate).map_err(LabError::from)?,
        _ => Plan { rate, ..Plan::new(read(Path::new(shape))?) },
    };
    Ok(Plan { prefix, ..plan })
}

fn read(path: &Path) -> Result<Arc<Topology>, ScenarioError> {
    let name = path.display().to_string();
    let text = read_text(path).map_err(|source| ScenarioError::Topology { name: name.clone(), source })?;
    Ok(Arc::new(Topology::from_text(&text, &name, Format::of(path))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_is_a_name_or_a_file() {
        let sizes = |shape| {
            let plan = plan(shape, None, Prefix::default()).unwrap();
            (plan.topology.endpoints().len(), plan.topology.routers().len())
        };
        assert_eq!((sizes("leaf-spine"), sizes("fat-tree-4")), ((6, 5), (16, 20)));
        let missing = plan("no-such-file.toml", None, Prefix::default()).unwrap_err().to_string();
        assert!(
            missing.starts_with("unknown topology \"no-such-file.toml\": expected `leaf-spine`"),
            "{missing}"
        );
    }
}
