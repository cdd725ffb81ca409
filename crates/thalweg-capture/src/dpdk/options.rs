//! Options of a DPDK port.

use super::error::DpdkError;

/// The longest packet into which the driver net_null may copy.
const MAX_COPIED_NULL: u32 = 2048;

/// The beginning of a source's name that is a DPDK port.
const PREFIX: &str = "dpdk:";

/// Options of a DPDK port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpdkOptions {
    /// The device, with its arguments: `net_af_packet0,iface=eth0` or `0000:01:00.0`.
    pub device: String,
    /// Bytes kept of each packet, 64 to 65,535. Default 192, as [`LiveOptions`](crate::live::LiveOptions).
    pub snap_length: u32,
    /// The number of packets that a receive queue can hold, a power of two from 64 to 32,768. Default 4,096: 0.28 ms at 14.88 M
    /// packets/s. A driver with fewer descriptors has fewer.
    pub descriptors: u16,
    /// Whether to receive packets that are addressed to other hosts. Default true.
    pub promiscuous: bool,
    /// A capture filter in tcpdump's language ([`crate::filter`]), which runs in this process. Default none.
    pub filter: Option<String>,
    /// The options of the EAL, such as `-l 2 -m 1024`, separated by spaces. Default `None`: no telemetry, no files that other DPDK processes
    /// would use, errors only, and for a virtual device no PCI; huge pages if 64 MiB of them are free, otherwise up to 1 GiB of normal memory.
    pub eal: Option<String>,
}

impl DpdkOptions {
    /// Creates the default options for `device`.
    pub fn new(device: impl Into<String>) -> DpdkOptions {
        DpdkOptions {
            device: device.into(),
            snap_length: 192,
            descriptors: 4096,
            promiscuous: true,
            filter: None,
            eal: None,
        }
    }

    /// Checks every value against its documented range.
    ///
    /// # Errors
    /// [`DpdkError::BadDevice`] or [`DpdkError::BadOption`] for the first value out of range.
    pub fn validate(&self) -> Result<(), DpdkError> {
        if !is_device(&self.device) {
            return Err(DpdkError::BadDevice { device: self.device.clone() });
        }
        let bad = |option, value: u32, expected| {
            Err(DpdkError::BadOption { option, value: value.to_string(), expected })
        };
        if !(64..=65_535).contains(&self.snap_length) {
            return bad("snap length", self.snap_length, "64 to 65535 bytes");
        }
        if !(self.descriptors.is_power_of_two() && (64..=32_768).contains(&self.descriptors)) {
            return bad("descriptors", self.descriptors.into(), "a power of two from 64 to 32768");
        }
        // The driver copies its pattern over the end of a packet buffer.
        let size = self.argument("size").and_then(|size| size.parse::<u32>().ok()).unwrap_or(0);
        if self.device.starts_with("net_null") && size > MAX_COPIED_NULL && self.argument("copy") == Some("1")
        {
            return bad("size of net_null with copy=1", size, "at most 2048 bytes");
        }
        Ok(())
    }

    /// Returns the value of an argument of the device.
    fn argument(&self, name: &str) -> Option<&str> {
        let arguments = self.device.split(',').skip(1).filter_map(|argument| argument.split_once('='));
        arguments.filter(|(key, _)| *key == name).map(|(_, value)| value).last()
    }

    /// Returns the length of the longest frame in bytes, as set by `framesz=`; 0 without it. The driver net_af_packet does not split
    /// frames.
    #[cfg(feature = "dpdk")]
    pub(super) fn frame_bytes(&self) -> u16 {
        let bytes = self.argument("framesz").and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0);
        u16::try_from(bytes).unwrap_or(u16::MAX)
    }

    /// Whether the device is virtual, so that DPDK need not look at PCI.
    #[cfg(feature = "dpdk")]
    pub(super) fn is_virtual(&self) -> bool {
        !is_pci_address(&self.device)
    }
}

/// Returns the device of a source's name: `dpdk:net_null0` names `net_null0`.
pub fn device_of(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX)
}

/// Whether the text is a PCI address or the name of a virtual device: a letter, and a number at the end of the name.
fn is_device(device: &str) -> bool {
    let name = device.split(',').next().unwrap_or_default();
    let is_virtual = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.ends_with(|last: char| last.is_ascii_digit())
        && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    !device.contains(['\0', ' ']) && (is_virtual || is_pci_address(device))
}

/// Whether the name is `0000:01:00.0` or `01:00.0`.
fn is_pci_address(device: &str) -> bool {
    let name = device.split(',').next().unwrap_or_default();
    let Some((address, function)) = name.split_once('.') else { return false };
    let is_hexadecimal = |part: &str| !part.is_empty() && part.chars().all(|digit| digit.is_ascii_hexdigit());
    is_hexadecimal(function)
        && (2..=3).contains(&address.split(':').count())
        && address.split(':').all(is_hexadecimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_the_prefix_is_a_dpdk_port() {
        assert_eq!(device_of("dpdk:net_pcap0,rx_pcap=/tmp/a.pcap"), Some("net_pcap0,rx_pcap=/tmp/a.pcap"));
        assert_eq!(device_of("./dpdk:net_null0"), None);
        assert_eq!(device_of("eth0"), None);
    }

    #[test]
    fn devices_are_virtual_or_pci_addresses() {
        for device in ["net_null0", "net_af_packet1,iface=eth0,qpairs=2", "0000:01:00.0", "01:00.1,a=b"] {
            assert!(DpdkOptions::new(device).validate().is_ok(), "{device}");
        }
        for device in ["", "eth", "net_null", ",iface=eth0", "01:00", "0000:01:00.", "net_null0 -m 4"] {
            let error = DpdkOptions::new(device).validate().unwrap_err();
            assert!(matches!(error, DpdkError::BadDevice { .. }), "{device}: {error}");
        }
    }

    #[test]
    fn options_out_of_range_are_refused() {
        let valid = DpdkOptions::new("net_null0");
        assert!(DpdkOptions::new("net_null0,size=5000,copy=0").validate().is_ok());
        for invalid in [
            DpdkOptions { snap_length: 63, ..valid.clone() },
            DpdkOptions { snap_length: 65_536, ..valid.clone() },
            DpdkOptions { descriptors: 100, ..valid.clone() },
            DpdkOptions { descriptors: 32, ..valid.clone() },
            DpdkOptions::new("net_null0,size=5000,copy=1"),
        ] {
            assert!(matches!(invalid.validate(), Err(DpdkError::BadOption { .. })), "{invalid:?}");
        }
    }
}
