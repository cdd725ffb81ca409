//! An attached program with its reader: sketches of one interface, pinned or not.

use thalweg_linux::socket::Socket;
use thalweg_sketch::{Key, Probability};

use crate::attachment::{Attachment, ethernet_index};
use crate::error::DataplaneError;
use crate::hook::HookChoice;
use crate::kernel_sketches::{KernelSketches, plan};
use crate::pinned::{Found, Pin, PinName};
use crate::reader::{ReadWindow, Reader, ReaderOptions};
use crate::snapshot::Snapshot;
use crate::spec::Specification;

/// Options of [`Counting::start`].
#[derive(Clone, Debug)]
pub struct CountingOptions {
    /// The interface.
    pub interface: String,
    /// The hook.
    pub hook: HookChoice,
    /// The sketches.
    pub specification: Specification,
    /// Probabilities that the reader may choose meanwhile.
    pub probabilities: Vec<Probability>,
    /// The reader.
    pub reader: ReaderOptions,
    /// Whether the interface accepts frames for other hosts meanwhile.
    pub promiscuous: bool,
    /// Pins program and memory, or continues with pinned ones.
    pub pin: Option<PinName>,
}

/// Sketches of an interface, counted in the kernel.
#[derive(Debug)]
pub struct Counting<K: Key> {
    reader: Reader<K>,
    attachment: Attachment,
    pin: Option<Pin>,
    is_resumed: bool,
    /// Open while the interface is promiscuous.
    _promiscuous: Option<Socket>,
}

impl<K: Key> Counting<K> {
    /// Loads and attaches the program, or continues with a pinned one.
    ///
    /// # Errors
    /// If the program cannot be loaded or attached, or the pinned one has other options.
    pub fn start(options: CountingOptions) -> Result<Counting<K>, DataplaneError> {
        let CountingOptions { interface, hook, specification, probabilities, reader, promiscuous, pin } =
            options;
        let accept_all = |interface: &str| promiscuous.then(|| accept_all(interface)).transpose();
        if let Some(name) = &pin {
            let (config, _, _) = plan(&specification, &probabilities);
            if let Some(found) = Pin::open(name, &specification, &config)? {
                let Found { pin, memory, link, is_xdp, before } = found;
                check_hook(name, hook, is_xdp)?;
                check_interface(name, &interface, link.target().ok().and_then(|target| target.interface))?;
                let _promiscuous = accept_all(&interface)?;
                let reader = Reader::resume(specification, config, memory, &reader, before);
                let attachment = Attachment::of_link(interface, link, is_xdp);
                return Ok(Counting { reader, attachment, pin: Some(pin), is_resumed: true, _promiscuous });
            }
        }
        // A wrong name is named before anything is loaded.
        ethernet_index(&interface)?;
        let kernel = KernelSketches::create(specification, &probabilities)?;
        let _promiscuous = accept_all(&interface)?;
        let attachment = Attachment::new(&kernel, &interface, hook)?;
        let pin = pin.map(|name| {
            let before = Snapshot::empty(kernel.specification());
            Pin::create(&name, kernel.maps(), &attachment.link, attachment.is_xdp(), &before)
        });
        let pin = pin.transpose()?;
        Ok(Counting {
            reader: Reader::new(kernel, &reader),
            attachment,
            pin,
            is_resumed: false,
            _promiscuous,
        })
    }

    /// Returns the attachment.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }

    /// Whether pinned sketches were found, and counted before.
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Returns the reader.
    pub fn reader(&self) -> &Reader<K> {
        &self.reader
    }

    /// Reads new keys; see [`Reader::poll`].
    pub fn poll(&mut self, now_ns: u64) {
        self.reader.poll(now_ns);
    }

    /// Ends the window; see [`Reader::end_window`]. A pin remembers the beginning of the next one.
    pub fn end_window(&mut self, now_ns: u64) -> ReadWindow<K> {
        let window = self.reader.end_window(now_ns);
        if let Some(pin) = &mut self.pin {
            let (before, bank) = self.reader.beginning();
            pin.save(before, bank);
        }
        window
    }
}

/// Makes an interface accept frames for other hosts until the socket is closed.
fn accept_all(interface: &str) -> Result<Socket, DataplaneError> {
    let membership = libc::packet_mreq {
        mr_ifindex: ethernet_index(interface)?,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    let open = || {
        let socket = Socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        socket.set(libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)?;
        Ok(socket)
    };
    open().map_err(|source| DataplaneError::Promiscuous { interface: interface.to_owned(), source })
}

/// Checks that pinned sketches are attached where it is requested.
fn check_hook(name: &PinName, requested: HookChoice, is_xdp: bool) -> Result<(), DataplaneError> {
    let pinned = if is_xdp { HookChoice::Xdp } else { HookChoice::Tc };
    if requested == HookChoice::Auto || requested == pinned {
        return Ok(());
    }
    let (pinned, requested) = (pinned.to_string(), requested.to_string());
    Err(DataplaneError::PinnedDiffers { name: name.to_string(), field: "--hook", pinned, requested })
}

/// Checks that pinned sketches count the requested interface.
fn check_interface(name: &PinName, requested: &str, pinned: Option<u32>) -> Result<(), DataplaneError> {
    let index = ethernet_index(requested)?;
    if pinned == u32::try_from(index).ok() {
        return Ok(());
    }
    let known = |index: u32| {
        let socket = Socket::for_ioctls().ok()?;
        socket.interface_name(i32::try_from(index).ok()?).ok()
    };
    let pinned = match pinned {
        Some(index) => known(index).unwrap_or_else(|| format!("number {index}")),
        None => "(removed since)".to_owned(),
    };
    let (name, requested) = (name.to_string(), requested.to_owned());
    Err(DataplaneError::PinnedDiffers { name, field: "interface", pinned, requested })
}
