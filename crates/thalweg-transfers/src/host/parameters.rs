//! Parameters of this host that rarely change.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;

use thalweg_api::HostParameters;
use thalweg_linux::socket::Socket;
use thalweg_wire::{BitRate, Timestamp};

use super::{Disk, micros};

/// What an operator says about a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParameterOptions {
    /// The interface of transfers.
    pub interface: String,
    /// Directory of the data.
    pub data_directory: Option<PathBuf>,
    /// Read rate of the disk.
    pub disk_read: Option<BitRate>,
    /// Write rate of the disk.
    pub disk_write: Option<BitRate>,
}

/// Returns the parameters of this host. What cannot be read is empty or 0.
pub fn parameters(options: &ParameterOptions, now: Timestamp) -> HostParameters {
    let disk = options.data_directory.as_ref().and_then(|directory| Disk::of(directory).ok());
    let rate = |rate: Option<BitRate>| rate.map_or(0, |rate| rate.0);
    let sockets = Socket::for_ioctls().ok();
    let speed = sockets.as_ref().and_then(|socket| socket.link_speed(&options.interface).ok().flatten());
    let mtu = sockets.as_ref().and_then(|socket| socket.interface_mtu(&options.interface).ok());
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory_kib = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().trim_end_matches(" kB").parse::<u64>().ok());
    HostParameters {
        time_us: micros(now),
        addresses: addresses(),
        kernel: line("/proc/sys/kernel/osrelease"),
        cpus: std::thread::available_parallelism().map_or(0, |count| count.get() as u16),
        memory_bytes: memory_kib.unwrap_or(0) * 1_024,
        interface: options.interface.clone(),
        interface_rate_bps: rate(speed),
        mtu_bytes: mtu.unwrap_or(0),
        tcp_receive_buffer_max_bytes: last_number(&line("/proc/sys/net/ipv4/tcp_rmem")),
        tcp_send_buffer_max_bytes: last_number(&line("/proc/sys/net/ipv4/tcp_wmem")),
        socket_receive_buffer_max_bytes: last_number(&line("/proc/sys/net/core/rmem_max")),
        socket_send_buffer_max_bytes: last_number(&line("/proc/sys/net/core/wmem_max")),
        congestion_control: line("/proc/sys/net/ipv4/tcp_congestion_control"),
        data_directory: options
            .data_directory
            .as_ref()
            .map(|directory| directory.display().to_string())
            .unwrap_or_default(),
        file_system: disk.as_ref().map(|disk| disk.file_system.clone()).unwrap_or_default(),
        disk: disk.map(|disk| disk.name).unwrap_or_default(),
        disk_read_bps: rate(options.disk_read),
        disk_write_bps: rate(options.disk_write),
    }
}

/// Returns the first line of a file; empty if it cannot be read.
fn line(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

/// Returns the last number of a line, such as the maximum of `4096 131072 6291456`; 0 if there is none.
fn last_number(line: &str) -> u64 {
    line.split_whitespace().next_back().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// Returns the addresses of this network namespace, without those of the loopback interface and of links.
fn addresses() -> Vec<IpAddr> {
    let found = nix::ifaddrs::getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let ip = address
            .as_sockaddr_in()
            .map(|of| IpAddr::V4(of.ip()))
            .or_else(|| address.as_sockaddr_in6().map(|of| IpAddr::V6(of.ip())))?;
        let is_of_link = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        (!ip.is_loopback() && !is_of_link).then_some(ip)
    });
    let mut addresses: Vec<IpAddr> = found.take(20).collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_parameters() {
        let options = ParameterOptions {
            interface: "lo".to_owned(),
            data_directory: Some("/".into()),
            disk_write: Some(BitRate(8_000_000)),
            ..ParameterOptions::default()
        };
        let parameters = parameters(&options, Timestamp(7_000));
        assert_eq!(
            (parameters.time_us, parameters.disk_write_bps, parameters.disk_read_bps),
            (7, 8_000_000, 0)
        );
        assert!(parameters.cpus > 0 && parameters.memory_bytes > 1 << 20);
        assert!(parameters.tcp_receive_buffer_max_bytes > 4_096 && !parameters.kernel.is_empty());
        assert!(!parameters.file_system.is_empty());
        assert_eq!(last_number("4096\t131072\t6291456"), 6_291_456);
    }
}
