//! The text of `--version`: the version and the optional features of this build.

use std::sync::LazyLock;

/// An optional feature of the build.
struct Feature {
    name: &'static str,
    is_built: bool,
    does: &'static str,
}

const FEATURES: [Feature; 3] = [
    Feature { name: "dpdk", is_built: cfg!(feature = "dpdk"), does: "watches DPDK ports" },
    Feature { name: "kafka", is_built: cfg!(feature = "kafka"), does: "sends flow records to Kafka" },
    Feature {
        name: "kafka-tls",
        is_built: cfg!(feature = "kafka-tls"),
        does: "sends flow records to Kafka over TLS, with SASL/SCRAM",
    },
];

/// Returns the text of `--version`. `-V` prints only the version.
pub(super) fn long() -> &'static str {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| format!("{}{}", env!("CARGO_PKG_VERSION"), described(&FEATURES)));
    &TEXT
}

/// Lists the features, and the command that builds the missing ones.
fn described(features: &[Feature]) -> String {
    let mut text = String::from("\n\nFeatures of this build:");
    for Feature { name, is_built, does } in features {
        let sign = if *is_built { '+' } else { '-' };
        text += &format!("\n  {sign}{name:<10}  {does}");
    }
    let missing: Vec<_> = features.iter().filter(|one| !one.is_built).map(|one| one.name).collect();
    if !missing.is_empty() {
        let missing = missing.join(",");
        text += &format!(
            "\n\nTo add the missing features: cargo build --release -p thalweg --features {missing}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_features_show_their_build_command() {
        let features = |first, second| {
            [("one", first), ("two", second)].map(|(name, is_built)| Feature {
                name,
                is_built,
                does: "works",
            })
        };
        let text = described(&features(true, false));
        assert!(text.contains("\n  +one         works\n  -two         works\n"), "{text}");
        assert!(text.ends_with("--features two"), "{text}");
        assert!(described(&features(false, false)).ends_with("--features one,two"));
        assert!(!described(&features(true, true)).contains("cargo"));
    }
}
