//! Names of what records can be grouped by, as `--by` of `thalweg flows top`.

use std::str::FromStr;

use thalweg_wire::nearest::nearest;

use super::{Key, KeyColumn};

/// A dimension: its name, its columns, and those of the other end with the name of the key.
type Dimension = (&'static str, &'static [&'static str], Option<(&'static str, &'static str)>);

/// The dimensions of `python/thalweg/dimensions.py`, in its order, without `mpls-labels`: a stack is no number.
const DIMENSIONS: [Dimension; 49] = [
    ("src", &["src"], None),
    ("dst", &["dst"], None),
    ("address", &["src"], Some(("dst", "address"))),
    ("pair", &["src", "dst"], None),
    ("src-port", &["src_port"], None),
    ("dst-port", &["dst_port"], None),
    ("port", &["src_port"], Some(("dst_port", "port"))),
    ("protocol", &["protocol"], None),
    ("src-as", &["src_as"], None),
    ("dst-as", &["dst_as"], None),
    ("as", &["src_as"], Some(("dst_as", "as"))),
    ("as-pair", &["src_as", "dst_as"], None),
    ("exporter", &["exporter"], None),
    ("ingress-interface", &["exporter", "ingress_interface"], None),
    ("egress-interface", &["exporter", "egress_interface"], None),
    ("next-hop", &["next_hop"], None),
    ("tos", &["tos"], None),
    ("vlan", &["vlan_id"], None),
    ("post-vlan", &["post_vlan_id"], None),
    ("customer-vlan", &["customer_vlan_id"], None),
    ("src-mac", &["src_mac"], None),
    ("dst-mac", &["dst_mac"], None),
    ("mac", &["src_mac"], Some(("dst_mac", "mac"))),
    ("post-src-mac", &["post_src_mac"], None),
    ("post-dst-mac", &["post_dst_mac"], None),
    ("forwarding-status", &["forwarding_status"], None),
    ("ingress-vrf", &["ingress_vrf_id", "ingress_vrf_name"], None),
    ("egress-vrf", &["egress_vrf_id", "egress_vrf_name"], None),
    ("bgp-next-hop", &["bgp_next_hop"], None),
    ("next-as", &["next_as"], None),
    ("previous-as", &["previous_as"], None),
    ("exporter-name", &["exporter_name"], None),
    ("ingress-interface-name", &["exporter", "ingress_interface_name"], None),
    ("egress-interface-name", &["exporter", "egress_interface_name"], None),
    ("src-country", &["src_country"], None),
    ("dst-country", &["dst_country"], None),
    ("country", &["src_country"], Some(("dst_country", "country"))),
    ("tcp-flags", &["tcp_flags"], None),
    ("icmp-type-code", &["icmp_type_code"], None),
    ("src-prefix-length", &["src_prefix_length"], None),
    ("dst-prefix-length", &["dst_prefix_length"], None),
    ("post-tos", &["post_tos"], None),
    ("min-ttl", &["min_ttl"], None),
    ("max-ttl", &["max_ttl"], None),
    ("flow-direction", &["flow_direction"], None),
    ("flow-end-reason", &["flow_end_reason"], None),
    ("observation-domain", &["exporter", "observation_domain_id"], None),
    ("observation-point", &["exporter", "observation_point_id"], None),
    ("format", &["format"], None),
];

/// Dimensions that records are grouped by.
#[derive(Clone, Debug)]
pub struct Dimensions {
    key: Vec<Key>,
    names: Vec<&'static str>,
    is_per_router: bool,
}

/// Why dimensions are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DimensionError {
    /// An unknown name.
    #[error("invalid dimension {name:?}: expected one of {}{}", DIMENSIONS.map(|(name, ..)| name).join(", "), suggestion(name))]
    Unknown {
        /// The name.
        name: String,
    },
    /// More than one of those that take either end.
    #[error(
        "only one of address, port, as, mac and country is allowed; combine src-port, dst-as and so on instead"
    )]
    Either,
    /// Two dimensions have the same column.
    #[error("duplicate column {0}")]
    Duplicate(&'static str),
}

fn suggestion(name: &str) -> String {
    let known = DIMENSIONS.iter().map(|(name, ..)| *name);
    nearest(name, known).map_or_else(String::new, |known| format!("; did you mean \"{known}\"?"))
}

impl Dimensions {
    /// Returns the components of the key.
    pub fn key(&self) -> &[Key] {
        &self.key
    }

    /// Returns the names of the components.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// Whether groups belong to routers, so that a flow counts once at each router.
    pub fn is_per_router(&self) -> bool {
        self.is_per_router
    }

    /// Whether a record may belong to two groups, so that groups do not add up.
    pub fn takes_either_end(&self) -> bool {
        self.key.iter().any(|key| key.either.is_some())
    }
}

/// Reads names that are separated by commas. `_` is read as `-`.
impl FromStr for Dimensions {
    type Err = DimensionError;

    fn from_str(text: &str) -> Result<Dimensions, DimensionError> {
        let (mut key, mut names) = (Vec::<Key>::new(), Vec::new());
        for text in text.split(',') {
            let name = text.trim().replace('_', "-");
            let shown = || text.chars().take(64).collect();
            let (_, columns, either) = DIMENSIONS
                .into_iter()
                .find(|(known, ..)| *known == name)
                .ok_or_else(|| DimensionError::Unknown { name: shown() })?;
            let column = |name| KeyColumn::named(name).expect("all dimensions are of key columns");
            for name in columns {
                key.push(Key { column: column(name), either: either.map(|(other, _)| column(other)) });
                names.push(either.map_or(*name, |(_, name)| name));
            }
        }
        if key.iter().filter(|key| key.either.is_some()).count() > 1 {
            return Err(DimensionError::Either);
        }
        let mut columns: Vec<&str> = key
            .iter()
            .flat_map(|key| [Some(key.column), key.either])
            .flatten()
            .map(KeyColumn::name)
            .collect();
        columns.sort_unstable();
        if let Some(two) = columns.windows(2).find(|two| two[0] == two[1]) {
            let name = KeyColumn::named(two[0]).map_or("", KeyColumn::name);
            return Err(DimensionError::Duplicate(name));
        }
        let is_per_router = key.iter().any(|key| key.column.name().starts_with("exporter"));
        Ok(Dimensions { key, names, is_per_router })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_has_the_key_of_its_columns() {
        for (name, columns, either) in DIMENSIONS {
            let dimensions: Dimensions = name.parse().unwrap();
            assert_eq!(dimensions.key().len(), columns.len(), "{name}");
            assert_eq!(dimensions.takes_either_end(), either.is_some());
            let of_router = |column: &&str| column.starts_with("exporter");
            assert_eq!(dimensions.is_per_router(), columns.iter().any(of_router));
        }
        let both: Dimensions = "protocol, dst_port".parse().unwrap();
        assert_eq!(both.names(), ["protocol", "dst_port"]);
    }

    #[test]
    fn invalid_dimensions_are_explained() {
        let message = |text: &str| text.parse::<Dimensions>().unwrap_err().to_string();
        assert!(
            message("scr").starts_with("invalid dimension \"scr\": expected one of src, dst, address, pair,")
        );
        assert!(message("scr").ends_with("; did you mean \"src\"?"));
        assert!(message("post_vlna").ends_with("; did you mean \"post-vlan\"?"));
        assert!(message("weather").ends_with(", format"));
        assert!(message("").starts_with("invalid dimension \"\""));
        assert!(message("address,port").starts_with("only one of address, port, as, mac and country"));
        assert_eq!(message("src,pair"), "duplicate column src");
        assert_eq!(message("address,dst"), "duplicate column dst");
    }
}
