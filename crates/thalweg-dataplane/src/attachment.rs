//! Attaches a program to an interface.
//!
//! XDP in the driver comes first, because it sees frames before the kernel allocates memory for them. If another XDP
//! program is attached, or the driver has no XDP, the ingress of tc is used: it runs beside others. XDP in the generic mode
//! copies frames of several buffers and slows the host down, so it is used on request only. A link attaches the program
//! while a process has it open, or while it is pinned.

use std::io;

use thalweg_linux::bpf::Link;
use thalweg_linux::netdevice::interface_names;
use thalweg_linux::socket::Socket;

use crate::error::DataplaneError;
use crate::hook::{Hook, HookChoice};
use crate::kernel_sketches::{Entry, KernelSketches};

/// Flags of linux/if_link.h.
const XDP_GENERIC: u32 = 1 << 1;
const XDP_DRIVER: u32 = 1 << 2;

/// ARPHRD_ETHER and ARPHRD_LOOPBACK of linux/if_arp.h: both have Ethernet headers.
const ETHERNET_TYPES: [u16; 2] = [1, 772];

/// An attached program. Dropping it detaches the program, unless it is pinned.
#[derive(Debug)]
pub struct Attachment {
    interface: String,
    hook: Hook,
    /// Why this hook, if it is not the first choice.
    reason: Option<String>,
    pub(crate) link: Link,
}

impl Attachment {
    /// Attaches the sketches to an interface.
    ///
    /// # Errors
    /// If the interface does not exist or has no Ethernet frames, the hook cannot be used, or a privilege is missing.
    pub fn new(
        kernel: &KernelSketches,
        interface: &str,
        choice: HookChoice,
    ) -> Result<Attachment, DataplaneError> {
        let index = ethernet_index(interface)?;
        let attach_error =
            |hook| move |source| DataplaneError::Attach { interface: interface.to_owned(), hook, source };
        let attached =
            |hook, link, reason| Attachment { interface: interface.to_owned(), hook, reason, link };
        if choice == HookChoice::Tc {
            let link = attach_tc(kernel, index)?.map_err(attach_error(Hook::Tc))?;
            return Ok(attached(Hook::Tc, link, None));
        }
        let refused = match attach_xdp(kernel, index, XDP_DRIVER)? {
            Ok(link) => return Ok(attached(Hook::Xdp, link, None)),
            Err(error) => error,
        };
        if choice == HookChoice::Xdp {
            if is_busy(&refused) {
                return Err(attach_error(Hook::Xdp)(refused));
            }
            let link = attach_xdp(kernel, index, XDP_GENERIC)?.map_err(attach_error(Hook::GenericXdp))?;
            let reason = format!("the driver refuses XDP ({refused})");
            return Ok(attached(Hook::GenericXdp, link, Some(reason)));
        }
        let reason = match is_busy(&refused) {
            true => "another XDP program is attached".to_owned(),
            false => format!("the driver refuses XDP ({refused})"),
        };
        let link = attach_tc(kernel, index)?.map_err(attach_error(Hook::Tc))?;
        Ok(attached(Hook::Tc, link, Some(reason)))
    }

    /// The attachment of a pinned link.
    pub(crate) fn of_link(interface: String, link: Link, is_xdp: bool) -> Attachment {
        let hook = if is_xdp { Hook::Xdp } else { Hook::Tc };
        Attachment { interface, hook, reason: None, link }
    }

    /// Returns the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the hook.
    pub fn hook(&self) -> Hook {
        self.hook
    }

    pub(crate) fn is_xdp(&self) -> bool {
        self.hook != Hook::Tc
    }

    /// Returns why this hook was chosen, if it is not the first choice.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Whether the program is still attached: the interface exists, and nobody has detached it.
    pub fn is_attached(&self) -> bool {
        self.link.target().is_ok_and(|target| target.interface.is_some())
    }

    /// Detaches the program at once, even if it is pinned.
    ///
    /// # Errors
    /// If this process lacks the privilege.
    pub fn detach(&self) -> io::Result<()> {
        self.link.detach()
    }
}

fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// Attaches the XDP program for frames in one buffer, which is faster: the length of a frame in several buffers takes a
/// function call. A driver with a larger MTU refuses it; then the other one is attached.
fn attach_xdp(kernel: &KernelSketches, index: i32, flags: u32) -> Result<io::Result<Link>, DataplaneError> {
    match kernel.load(Entry::Xdp)?.attach_xdp(index, flags) {
        Err(error) if !is_busy(&error) => match kernel.load(Entry::XdpMultiBuffer) {
            Ok(program) => Ok(program.attach_xdp(index, flags)),
            // The first error tells more.
            Err(_) => Ok(Err(error)),
        },
        attached => Ok(attached),
    }
}

fn attach_tc(kernel: &KernelSketches, index: i32) -> Result<io::Result<Link>, DataplaneError> {
    Ok(kernel.load(Entry::Ingress)?.attach_to_ingress(index))
}

/// Returns the index of an interface that has Ethernet frames.
pub(crate) fn ethernet_index(interface: &str) -> Result<i32, DataplaneError> {
    let no_interface =
        |_| DataplaneError::NoInterface { interface: interface.to_owned(), existing: interface_names() };
    let socket = Socket::for_ioctls().map_err(DataplaneError::Map)?;
    let index = socket.interface_index(interface).map_err(no_interface)?;
    let hardware_type = socket.hardware_type(interface).map_err(no_interface)?;
    match ETHERNET_TYPES.contains(&hardware_type) {
        true => Ok(index),
        false => Err(DataplaneError::NotEthernet { interface: interface.to_owned(), hardware_type }),
    }
}
