//! Interface properties by ioctl on a socket of any family (netdevice(7)), in the network namespace of the socket.

#![expect(unsafe_code, reason = "ioctls that take pointers")]

use std::ffi::{CStr, c_int};
use std::io;
use std::mem::zeroed;
use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;
use thalweg_wire::BitRate;

use crate::socket::Socket;

/// ETHTOOL_GCHANNELS of ethtool.h: the number of queues in use.
const ETHTOOL_GET_CHANNELS: u32 = 0x3c;

/// `struct ethtool_channels` of ethtool.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Channels {
    command: u32,
    max_rx: u32,
    max_tx: u32,
    max_other: u32,
    max_combined: u32,
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// ETHTOOL_GSET of ethtool.h: the settings of the link.
const ETHTOOL_GET_SETTINGS: u32 = 0x01;

/// `struct ethtool_cmd` of ethtool.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct LinkSettings {
    command: u32,
    supported: u32,
    advertised: u32,
    /// The lower 16 bits of the speed in Mbit/s.
    speed: u16,
    duplex: u8,
    port: u8,
    phy_address: u8,
    transceiver: u8,
    negotiates: u8,
    mdio_support: u8,
    max_tx_packets: u32,
    max_rx_packets: u32,
    /// The upper 16 bits.
    speed_high: u16,
    crossover: u8,
    crossover_control: u8,
    partner_advertised: u32,
    reserved: [u32; 2],
}

impl Socket {
    /// Opens a socket for ioctls only, which needs no capability.
    pub fn for_ioctls() -> io::Result<Socket> {
        Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)
    }

    /// Returns the index of the interface `name`; ENODEV if it does not exist.
    pub fn interface_index(&self, name: &str) -> io::Result<i32> {
        let answer = self.ioctl(libc::SIOCGIFINDEX as _, request_for(name)?)?;
        // SAFETY: SIOCGIFINDEX fills this field.
        Ok(unsafe { answer.ifr_ifru.ifru_ifindex })
    }

    /// Returns the name of the interface `index`.
    pub fn interface_name(&self, index: i32) -> io::Result<String> {
        let mut request = request_for("")?;
        request.ifr_ifru.ifru_ifindex = index;
        let answer = self.ioctl(libc::SIOCGIFNAME as _, request)?;
        Ok(name_of(&answer))
    }

    /// Returns the MTU of the interface `name` in bytes.
    pub fn interface_mtu(&self, name: &str) -> io::Result<u32> {
        let answer = self.ioctl(libc::SIOCGIFMTU as _, request_for(name)?)?;
        // SAFETY: SIOCGIFMTU fills this field.
        Ok(unsafe { answer.ifr_ifru.ifru_mtu } as u32)
    }

    /// Returns the `IFF_` flags of the interface `name`.
    pub fn interface_flags(&self, name: &str) -> io::Result<c_int> {
        let answer = self.ioctl(libc::SIOCGIFFLAGS as _, request_for(name)?)?;
        // SAFETY: SIOCGIFFLAGS fills this field.
        Ok(c_int::from(unsafe { answer.ifr_ifru.ifru_flags }))
    }

    /// Returns the `ARPHRD_` type of the interface `name`.
    pub fn hardware_type(&self, name: &str) -> io::Result<u16> {
        let answer = self.ioctl(libc::SIOCGIFHWADDR as _, request_for(name)?)?;
        // SAFETY: SIOCGIFHWADDR fills this field.
        Ok(unsafe { answer.ifr_ifru.ifru_hwaddr }.sa_family)
    }

    /// Returns the number of receive queues in use at the interface `name`; 1 if its driver does not report it.
    pub fn receive_queue_count(&self, name: &str) -> io::Result<u32> {
        let mut channels = Channels { command: ETHTOOL_GET_CHANNELS, ..Channels::default() };
        let mut request = request_for(name)?;
        request.ifr_ifru.ifru_data = (&raw mut channels).cast();
        // SAFETY: the request points to the structure that this ethtool command fills.
        match unsafe { self.interface_ioctl(libc::SIOCETHTOOL as _, request) } {
            Ok(_) => Ok((channels.rx + channels.combined).max(1)),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
            Err(error) => Err(error),
        }
    }

    /// Returns the speed that the interface `name` reports; `None` if it has none, or is down. Virtual interfaces report
    /// a nominal speed.
    pub fn link_speed(&self, name: &str) -> io::Result<Option<BitRate>> {
        let mut settings = LinkSettings { command: ETHTOOL_GET_SETTINGS, ..LinkSettings::default() };
        let mut request = request_for(name)?;
        request.ifr_ifru.ifru_data = (&raw mut settings).cast();
        // SAFETY: the request points to the structure that this ethtool command fills.
        match unsafe { self.interface_ioctl(libc::SIOCETHTOOL as _, request) } {
            Ok(_) => match u32::from(settings.speed_high) << 16 | u32::from(settings.speed) {
                // SPEED_UNKNOWN is -1; some drivers report 0.
                0 | u32::MAX => Ok(None),
                megabits => Ok(Some(BitRate(u64::from(megabits) * 1_000_000))),
            },
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ioctl(&self, code: libc::Ioctl, request: libc::ifreq) -> io::Result<libc::ifreq> {
        // SAFETY: each of the ioctls above reads and writes one `ifreq` without pointers.
        unsafe { self.interface_ioctl(code, request) }
    }
}

/// Returns the interfaces in the calling thread's network namespace; empty if they cannot be listed.
pub fn interface_names() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: takes no arguments; returns null or a list that ends in an all-zero entry.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return names;
    }
    let mut entry = list;
    // SAFETY: each entry up to the all-zero one is readable and its name a C string, until the list is freed.
    unsafe {
        while !(*entry).if_name.is_null() {
            names.push(CStr::from_ptr((*entry).if_name).to_string_lossy().into_owned());
            entry = entry.add(1);
        }
        libc::if_freenameindex(list);
    }
    names
}

/// An address of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Name of the interface.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// Length of the prefix of its network.
    pub prefix_length: u8,
}

/// Returns the addresses of all interfaces in the calling thread's network namespace.
///
/// # Errors
/// If the kernel refuses.
pub fn interface_addresses() -> io::Result<Vec<InterfaceAddress>> {
    let ip_of = |address: &SockaddrStorage| {
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    };
    let addresses = getifaddrs()?.filter_map(|entry| {
        let address = ip_of(&entry.address?)?;
        let ones = match ip_of(&entry.netmask?)? {
            IpAddr::V4(mask) => mask.to_bits().count_ones(),
            IpAddr::V6(mask) => mask.to_bits().count_ones(),
        };
        Some(InterfaceAddress { interface: entry.interface_name, address, prefix_length: ones as u8 })
    });
    Ok(addresses.collect())
}

/// Returns the name of the interface in an ioctl request.
pub(crate) fn name_of(request: &libc::ifreq) -> String {
    let name: Vec<u8> = request.ifr_name.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
    String::from_utf8_lossy(&name).into_owned()
}

/// Creates an ioctl request for the interface `name`; ENODEV if the name is invalid.
pub(crate) fn request_for(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero bytes are a valid `ifreq`.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as _;
    }
    Ok(request)
}
