//! The fields of nfdump, and where Thalweg has them. Generates `docs/reference/nfdump-fields.md`.
//!
//! A test sends a record with every field to nfcapd, and compares what nfdump prints with the columns named here.

use std::fmt::Write;

/// A field of nfdump.
#[derive(Clone, Copy, Debug)]
pub struct NfdumpField {
    /// Tags of `-o fmt:`, separated by blanks.
    pub tags: &'static str,
    /// Names in `-o json`, separated by blanks; empty if it has none.
    pub json: &'static str,
    /// The column of `flows`; empty if there is none.
    pub column: &'static str,
    /// Terms of the filter language; empty if there is none.
    pub terms: &'static str,
    /// What differs, or why there is no column.
    pub note: &'static str,
}

const fn field(
    tags: &'static str,
    json: &'static str,
    column: &'static str,
    terms: &'static str,
    note: &'static str,
) -> NfdumpField {
    NfdumpField { tags, json, column, terms, note }
}

/// Fields of nfdump 1.7, in the order of its manual.
pub const FIELDS: &[NfdumpField] = &[
    field("%nfv", "", "format", "", "`netflow9` for `Nv9`"),
    field("%ts %tfs %tsr", "first", "flow_start", "", "times have microseconds"),
    field("%te %ter", "last", "flow_end", "", ""),
    field("%tr %trr", "received", "received", "", ""),
    field("%td", "", "", "duration", "`flow_end` - `flow_start`"),
    field("%pr", "proto", "protocol", "proto", ""),
    field("%sa %sap", "src4_addr src6_addr", "src", "src ip, src net", ""),
    field("%da %dap", "dst4_addr dst6_addr", "dst", "dst ip, dst net", ""),
    field("%sp", "src_port", "src_port", "src port", ""),
    field("%dp", "dst_port", "dst_port", "dst port", ""),
    field(
        "%it %ic",
        "icmp_type icmp_code",
        "icmp_type_code",
        "icmp-type, icmp-code",
        "type times 256 plus code",
    ),
    field("%sn %dn", "src_net dst_net", "", "src net, dst net", "address and prefix length"),
    field("%nh", "ip4_next_hop ip6_next_hop", "next_hop", "next ip", "empty for 0.0.0.0"),
    field("%nhb", "bgp4_next_hop bgp6_next_hop", "bgp_next_hop", "bgpnext ip", "empty for 0.0.0.0"),
    field("%ra", "ip4_router ip6_router", "exporter", "router ip", ""),
    field("%sas", "src_as", "src_as", "src as", ""),
    field("%das", "dst_as", "dst_as", "dst as", ""),
    field("%nas", "next_as", "next_as", "next as", ""),
    field("%pas", "prev_as", "previous_as", "prev as", ""),
    field("%in", "input_snmp", "ingress_interface", "in if", ""),
    field("%out", "output_snmp", "egress_interface", "out if", ""),
    field("", "", "ingress_interface_name", "in if name", "`-s inam`"),
    field("", "", "egress_interface_name", "out if name", "`-s onam`"),
    field("%pkt %ipkt", "in_packets", "packets", "packets, in packets", ""),
    field("%byt %ibyt", "in_bytes", "bytes", "bytes, in bytes", ""),
    field("%opkt %obyt", "out_packets out_bytes", "", "", "a reverse direction is a row of its own"),
    field("%fl", "aggr_flows", "", "flows", "1 per row"),
    field("%flg", "tcp_flags", "tcp_flags", "flags", "a number, not letters"),
    field("%tos %stos", "src_tos", "tos", "tos, src tos", ""),
    field("%dtos", "dst_tos", "post_tos", "dst tos", ""),
    field(
        "%dir",
        "direction",
        "flow_direction",
        "flowdir",
        "nfdump does not tell an unknown direction from ingress; `collect` does: 255",
    ),
    field("%smk", "src_mask", "src_prefix_length", "src mask", ""),
    field("%dmk", "dst_mask", "dst_prefix_length", "dst mask", ""),
    field("%fwd", "fwd_status", "forwarding_status", "fwdstat", ""),
    field("%svln", "src_vlan", "vlan_id", "src vlan", ""),
    field("%dvln", "dst_vlan", "post_vlan_id", "dst vlan", ""),
    field("%ismc", "in_src_mac", "src_mac", "in src mac", "empty for zeros"),
    field("%odmc", "out_dst_mac", "post_dst_mac", "out dst mac", "empty for zeros"),
    field("%idmc", "in_dst_mac", "dst_mac", "in dst mac", "empty for zeros"),
    field("%osmc", "out_src_mac", "post_src_mac", "out src mac", "empty for zeros"),
    field(
        "%mpls %mpls1 %mpls2 %mpls3 %mpls4 %mpls5 %mpls6 %mpls7 %mpls8 %mpls9 %mpls10",
        "mpls_1 mpls_2 mpls_3 mpls_4 mpls_5 mpls_6 mpls_7 mpls_8 mpls_9 mpls_10",
        "mpls_labels",
        "mpls label1, mpls exp1, mpls eos, mpls any",
        "one text, without unused entries",
    ),
    field("%ivrf", "ingress_vrf", "ingress_vrf_id", "ingress vrf", ""),
    field("%evrf", "egress_vrf", "egress_vrf_id", "egress vrf", ""),
    field("", "", "ingress_vrf_name", "ingress vrf name", "`-s ivrfnam`"),
    field("", "", "egress_vrf_name", "egress vrf name", "`-s evrfnam`"),
    field("%odid", "", "observation_domain_id", "observation domain id", "decimal"),
    field("%opid", "", "observation_point_id", "observation point id", "decimal"),
    field("%sc %gsap", "", "src_country", "src geo", "from `--mmdb`"),
    field("%dc %gdap", "", "dst_country", "dst geo", "from `--mmdb`"),
    field("", "", "min_ttl", "min ttl", "nfdump 1.7.4 and later"),
    field("", "", "max_ttl", "max ttl", "nfdump 1.7.4 and later"),
    field("", "", "customer_vlan_id", "customer vlan", "nfdump 1.7.3 and later"),
    field("", "", "flow_end_reason", "", "nfdump 1.7.1 and later"),
    field("%bps %pps %bpp", "", "", "bps, pps, bpp", "computed from columns"),
    field("%cnt %exp", "export_sysid", "", "", "numbers of nfdump's files; the exporter is `exporter`"),
    field("%eng", "", "observation_domain_id", "observation domain id", "NetFlow v5: type times 256 plus ID"),
    field("%lbl", "label", "", "", "set by nfdump's users"),
    field("%sloc %dloc", "", "", "", "region and city: none"),
    field("%ipl %opl %ja3 %sni %nbid %nbnam", "", "", "", "payload and applications: none"),
    field("%cl %sl %al", "", "", "", "latencies of nprobe: none"),
    field(
        "%nfc %evt %xevt %sgt %msec %iacl %eacl %xsa %xda %xsp %xdp %xsap %xdap %uname",
        "",
        "",
        "",
        "events of firewalls: none",
    ),
    field("%nevt %nsa %nda %nsp %ndp %pbstart %pbend %pbstep %pbsize", "", "", "", "events of NAT: none"),
];

const INTRODUCTION: &str = "\
# Fields of nfdump

<!-- Generated: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-records nfdump_page -->

Where each field of nfdump 1.7 is in [flow records](flow-records.md), and the terms of the [filter language](flow-filter.md) for it.
`thalweg flows import` fills these columns from nfdump's files, and `thalweg collect` from what exporters send. A test sends a record
with every field to nfcapd, and compares what nfdump prints with the columns.

| `-o fmt:` | `-o json` | column | filter | note |
|---|---|---|---|---|
";

/// Returns the page.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let code = |words: &str, separator: &str| {
        let words = words.split(separator).filter(|word| !word.is_empty());
        words.map(|word| format!("`{}`", word.trim())).collect::<Vec<_>>().join(", ")
    };
    for field in FIELDS {
        let (tags, json) = (code(field.tags, " "), code(field.json, " "));
        let (column, terms) = (code(field.column, " "), code(field.terms, ","));
        let _ = writeln!(page, "| {tags} | {json} | {column} | {terms} | {} |", field.note);
    }
    page
}

#[cfg(test)]
mod tests {
    use thalweg_measure::filter::{FlowFilter, RECORDS};
    use thalweg_wire::flow_export::RecordBatch;

    use super::*;
    use crate::schema::Dataset;

    #[test]
    fn the_nfdump_page_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/nfdump-fields.md");
        if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let is_current = std::fs::read_to_string(path).unwrap_or_default() == page();
        assert!(
            is_current,
            "update it with: THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-records nfdump_page"
        );
    }

    #[test]
    fn columns_and_terms_exist() {
        let has = |name: &str| RecordBatch::columns().iter().any(|column| column.name == name);
        for field in FIELDS {
            assert!(field.column.is_empty() || has(field.column), "{}", field.column);
            for term in field.terms.split(", ").filter(|term| !term.is_empty()) {
                let values = ["1", "10.0.0.1", "10.0.0.0/8", "tcp", "02:00:00:00:00:01", "DE", "S"];
                let mut all =
                    values.iter().map(|value| FlowFilter::compile(&format!("{term} {value}"), &RECORDS));
                assert!(all.any(|filter| filter.is_ok()), "{term}");
            }
        }
    }
}
