//! The interface of the default route.

use std::fs;

/// Returns the interface of the default route of IPv4, otherwise of IPv6, otherwise any but the loopback interface.
pub fn default_interface() -> Option<String> {
    let ipv4 = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let ipv6 = fs::read_to_string("/proc/net/ipv6_route").unwrap_or_default();
    default_of(&ipv4, &ipv6).or_else(|| {
        let counters = fs::read_to_string("/proc/net/dev").unwrap_or_default();
        let mut names = counters.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()));
        names.find(|name| *name != "lo").map(str::to_owned)
    })
}

/// Reads the routes of the kernel: `/proc/net/route` begins with name, destination, gateway, flags, ..., the mask in column 7;
/// `/proc/net/ipv6_route` has the destination in column 0, its length in column 1, the name last.
fn default_of(ipv4: &str, ipv6: &str) -> Option<String> {
    let of_ipv4 = ipv4.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let is_default = *fields.get(1)? == "00000000" && *fields.get(7)? == "00000000";
        is_default.then(|| fields[0].to_owned())
    });
    of_ipv4.or_else(|| {
        ipv6.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let name = *fields.last()?;
            (*fields.get(1)? == "00" && name != "lo").then(|| name.to_owned())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_route_names_the_interface() {
        let ipv4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                    eth1\t000A0A0A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
                    eth0\t00000000\t010A0A0A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
        assert_eq!(default_of(ipv4, ""), Some("eth0".to_owned()));
        let zeros = "00000000000000000000000000000000";
        let ipv6 = format!(
            "{zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200       lo\n\
             {zeros} 00 {zeros} 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     ens3\n"
        );
        assert_eq!(default_of("", &ipv6), Some("ens3".to_owned()));
        assert_eq!(default_of("", ""), None);
    }
}
