//! What a socket of any family can ask about an interface (netdevice(7)). The answers concern the network namespace that the
//! socket was opened in.

#![expect(unsafe_code, reason = "requests that point to structures")]

use std::ffi::{CStr, c_int};
use std::io;
use std::mem::zeroed;

use crate::socket::Socket;

/// ETHTOOL_GCHANNELS of ethtool.h: how many queues are in use.
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

impl Socket {
    /// A socket for questions alone, which needs no capability.
    pub fn for_ioctls() -> io::Result<Socket> {
        Socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)
    }

    /// The index of the interface `name`; ENODEV if there is none.
    pub fn interface_index(&self, name: &str) -> io::Result<i32> {
        let answer = self.ioctl(libc::SIOCGIFINDEX as _, request_for(name)?)?;
        // SAFETY: SIOCGIFINDEX fills this field.
        Ok(unsafe { answer.ifr_ifru.ifru_ifindex })
    }

    /// The name of the interface `index`.
    pub fn interface_name(&self, index: i32) -> io::Result<String> {
        let mut request = request_for("")?;
        request.ifr_ifru.ifru_ifindex = index;
        let answer = self.ioctl(libc::SIOCGIFNAME as _, request)?;
        let name: Vec<u8> = answer.ifr_name.iter().map(|&c| c as u8).take_while(|&c| c != 0).collect();
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// The `IFF_` flags of the interface `name`.
    pub fn interface_flags(&self, name: &str) -> io::Result<c_int> {
        let answer = self.ioctl(libc::SIOCGIFFLAGS as _, request_for(name)?)?;
        // SAFETY: SIOCGIFFLAGS fills this field.
        Ok(c_int::from(unsafe { answer.ifr_ifru.ifru_flags }))
    }

    /// The `ARPHRD_` type of the interface `name`.
    pub fn hardware_type(&self, name: &str) -> io::Result<u16> {
        let answer = self.ioctl(libc::SIOCGIFHWADDR as _, request_for(name)?)?;
        // SAFETY: SIOCGIFHWADDR fills this field.
        Ok(unsafe { answer.ifr_ifru.ifru_hwaddr }.sa_family)
    }

    /// How many receive queues the interface `name` has in use; 1 if its driver does not tell.
    pub fn receive_queue_count(&self, name: &str) -> io::Result<u32> {
        let mut channels = Channels { command: ETHTOOL_GET_CHANNELS, ..Channels::default() };
        let mut request = request_for(name)?;
        request.ifr_ifru.ifru_data = (&raw mut channels).cast();
        // SAFETY: the request points to what this command of ethtool fills.
        match unsafe { self.ask(libc::SIOCETHTOOL as _, request) } {
            Ok(_) => Ok((channels.rx + channels.combined).max(1)),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
            Err(error) => Err(error),
        }
    }

    fn ioctl(&self, what: libc::Ioctl, request: libc::ifreq) -> io::Result<libc::ifreq> {
        // SAFETY: each of the requests above reads and writes one `ifreq`, and no pointer in it.
        unsafe { self.ask(what, request) }
    }
}

/// The interfaces of the calling thread's network namespace; none if they cannot be listed.
pub fn interface_names() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: takes nothing; returns null or a list that an all-zero entry ends.
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

/// A request that concerns the interface `name`; ENODEV if no interface can have that name.
fn request_for(name: &str) -> io::Result<libc::ifreq> {
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
