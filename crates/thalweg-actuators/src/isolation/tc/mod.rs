//! Isolation on this host, by traffic control of Linux: the host routes, and one of its interfaces leads to the link.
//!
//! ```text
//!   packet ──► program at the egress hook ── 5-tuple in the map? ──► skb->priority = 7468:20
//!                                                                          │
//!              HTB 7468: ──┬── 7468:10 primary (default) ◄─── no ──────────┤
//!                          └── 7468:20 scavenger         ◄─── yes ─────────┘
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `redirect.bpf.c` | the program (`redirect.bpf.o` is compiled from it by `scripts/bpf.sh`) |
//! | `maps` | its maps |
//! | `owner` | the lock against a second daemon |
//! | `plan` | classes and queues |
//!
//! **Cost**: a redirection is two writes to maps. A packet costs one lookup, a redirected one three.
//!
//! **After a crash** the queues, the program and the maps stay with the interface. Packets are still forwarded, and each
//! redirection ends when it expires. The next start finds the program at the interface, and takes it over with all
//! redirections. If it contains another program, it replaces it in one step and copies the entries.
//!
//! **One daemon per interface**: [`Tc::open`] locks the interface and changes nothing; the [start](Isolator::start) changes it, and
//! restores it if that fails.
//!
//! **Faults**: a missing or changed queue, class or program is set again. A queue with classes of someone else is left alone,
//! because it could not be set again at the end, and reported as an error.

mod maps;
mod owner;
mod plan;

use std::os::fd::AsFd as _;

use thalweg_control::isolate::message::QueueReading;
use thalweg_control::isolate::{Command, Input, Reading, RedirectionId};
use thalweg_linux::bpf::object::Loaded;
use thalweg_linux::bpf::{Object, Program, ProgramKind};
use thalweg_linux::tc::egress::{FilterPlace, FilterProgram};
use thalweg_linux::tc::queue::{Class, Queue, handle};
use thalweg_linux::{Namespace, Netlink};
use thalweg_wire::{FlowKey, Nanos, Timestamp};

use super::{Isolator, IsolatorCounters};
use maps::{Entry, Maps};
use owner::Owner;
use plan::{MAJOR, PRIMARY, SCAVENGER};
pub use plan::{QueuePlan, Queueing};

/// The object that `scripts/bpf.sh` compiled; empty if this byte order is not supported.
#[cfg(target_endian = "little")]
static OBJECT: &[u8] = include_bytes!("redirect.bpf.o");
#[cfg(not(target_endian = "little"))]
static OBJECT: &[u8] = &[];

/// The program in the object file.
const PROGRAM: &str = "redirect";

/// Where the program is attached. Others may attach programs with other priorities.
const PLACE: FilterPlace = FilterPlace { priority: 7, handle: MAJOR as u32 };

/// Start of the filter's name; a hash of the object follows.
const FILTER_NAME: &str = "thalweg-isolate-";

/// Queues without classes, which can be restored from the options that the kernel prints.
const RESTORABLE: [&str; 6] = ["pfifo", "bfifo", "pfifo_fast", "fq", "fq_codel", "tbf"];

/// Options of isolation by traffic control.
#[derive(Clone, Debug, PartialEq)]
pub struct TcOptions {
    /// The interface that leads to the link.
    pub interface: String,
    /// The queues.
    pub queues: QueuePlan,
    /// Time after which a redirection ends unless it is refreshed.
    pub expiry: Nanos,
    /// Maximum number of redirections.
    pub capacity: u32,
    /// Whether queues and program stay at the interface when the daemon stops.
    pub keeps_at_stop: bool,
}

/// Isolation by traffic control.
pub struct Tc {
    options: TcOptions,
    /// `None` after the stop.
    owner: Option<Owner>,
    netlink: Netlink,
    program: Program,
    maps: Maps,
    filter_name: String,
    /// The interface in use; `None` while it does not exist.
    interface: Option<u32>,
    /// The kernel's id of the attached program.
    attached: Option<u32>,
    adopted: Vec<FlowKey>,
    /// What the first check reports beside its repairs.
    note: Option<String>,
    repairs: u64,
    failed_checks: u64,
}

impl Tc {
    /// Locks the interface, and loads the program or takes over that of an earlier run. Queues and program of the interface change only at
    /// the [start](Isolator::start). Needs CAP_NET_ADMIN and CAP_BPF, and CAP_SYS_ADMIN to open the maps of an earlier run; without
    /// it, their redirections are dropped. `namespace` is that of the interface, `None` for that of the calling thread.
    ///
    /// A missing interface is not an error: [`Isolator::maintain`] sets it up when it appears.
    ///
    /// # Errors
    /// A message, if another daemon owns the interface, it has a queue of someone else, or the program cannot be loaded.
    pub fn open(options: TcOptions, namespace: Option<&Namespace>, now: Timestamp) -> Result<Tc, String> {
        if OBJECT.is_empty() {
            return Err("this build contains no program for big-endian machines".to_owned());
        }
        let netlink = match namespace {
            None => Netlink::open().map_err(|error| format!("cannot open a netlink socket: {error}"))?,
            Some(namespace) => Netlink::open_within(namespace).map_err(|error| error.to_string())?,
        };
        let filter_name = format!("{FILTER_NAME}{:016x}", hash(OBJECT));
        let interface = netlink.interface(&options.interface).ok();
        let owner = Owner::claim(&options.interface, interface, namespace)?;
        if let Some(interface) = interface {
            check_root(&root_queue(&netlink, interface)?, &options.interface)?;
        }
        let earlier = match interface {
            Some(interface) => earlier_program(&netlink, interface).map_err(|error| error.to_string())?,
            None => None,
        };
        let (program, maps, note) = obtain(earlier.as_ref(), &filter_name, options.capacity)?;
        let mut tc = Tc {
            options,
            owner: Some(owner),
            netlink,
            program,
            maps,
            filter_name,
            interface,
            attached: None,
            adopted: Vec::new(),
            note,
            repairs: 0,
            failed_checks: 0,
        };
        let entries = tc.maps.all().map_err(|error| error.to_string())?;
        tc.adopted =
            entries.iter().filter(|(_, entry, _)| entry.expires > now).map(|(key, ..)| *key).collect();
        for (key, ..) in entries.iter().filter(|(_, entry, _)| entry.expires <= now) {
            tc.maps.remove(key).map_err(|error| error.to_string())?;
        }
        Ok(tc)
    }

    /// Undoes what the start has changed at an interface that had none of our queues before. Returns `error`, and what could not be
    /// undone.
    fn undo(&mut self, error: String) -> String {
        match self.tear_down() {
            Ok(()) => error,
            Err(remains) => format!("{error}; what was changed could not be undone: {remains}"),
        }
    }

    /// Returns the interface in use.
    pub fn interface(&self) -> Option<u32> {
        self.interface
    }

    /// Sets up what is missing or changed at the interface. Returns what that was.
    fn set_up(&mut self) -> Result<Vec<String>, String> {
        let interface = self.find_interface()?;
        let mut repaired = Vec::new();
        self.set_up_root(interface, &mut repaired)?;
        self.set_up_classes(interface, &mut repaired)?;
        self.set_up_program(interface, &mut repaired)?;
        Ok(repaired)
    }

    /// Finds the interface: by its name, else the one in use, which was renamed.
    fn find_interface(&mut self) -> Result<u32, String> {
        let interfaces = self.netlink.interfaces().map_err(|error| error.to_string())?;
        let named = interfaces.iter().find(|interface| interface.name == self.options.interface);
        let in_use = interfaces.iter().find(|interface| Some(interface.index) == self.interface);
        let found = named.or(in_use).map(|interface| interface.index);
        if found != self.interface {
            self.attached = None;
        }
        self.interface = found;
        found.ok_or_else(|| format!("interface {} does not exist", self.options.interface))
    }

    fn set_up_root(&mut self, interface: u32, repaired: &mut Vec<String>) -> Result<(), String> {
        let root = root_queue(&self.netlink, interface)?;
        if is_ours(&root) {
            return self.check_priorities(interface, repaired);
        }
        check_root(&root, &self.options.interface)?;
        let previous = Some(&root).filter(|root| root.handle != 0);
        self.maps.remember(previous).map_err(|error| error.to_string())?;
        self.set_root(interface)?;
        repaired.push(format!("queue htb {MAJOR:x}: instead of {}", root.kind));
        Ok(())
    }

    /// Rebuilds the queues if a class has another priority: a class with queued packets keeps its old one.
    fn check_priorities(&self, interface: u32, repaired: &mut Vec<String>) -> Result<(), String> {
        let classes = self.netlink.classes(interface).map_err(|error| error.to_string())?;
        let has_other_priority = self.options.queues.classes().iter().any(|class| {
            let found = find_class(&classes, class.minor);
            found.is_some_and(|found| !class.has_priority(&found.options))
        });
        if has_other_priority {
            self.netlink.delete_root_queue(interface).map_err(|error| error.to_string())?;
            self.set_root(interface)?;
            repaired.push("classes with other priorities".to_owned());
        }
        Ok(())
    }

    fn set_root(&self, interface: u32) -> Result<(), String> {
        self.netlink.set_root_htb(interface, MAJOR, PRIMARY).map_err(|error| error.to_string())
    }

    fn set_up_classes(&self, interface: u32, repaired: &mut Vec<String>) -> Result<(), String> {
        let failed = |error: thalweg_linux::NetlinkError| error.to_string();
        let present = self.netlink.classes(interface).map_err(failed)?;
        for class in self.options.queues.classes() {
            let found = find_class(&present, class.minor);
            if found.is_none_or(|found| !class.has_options(&found.options)) {
                self.netlink.set_htb_class(interface, MAJOR, &class).map_err(failed)?;
                repaired.push(format!("class {MAJOR:x}:{:x}", class.minor));
            }
        }
        let present = self.netlink.queues(interface).map_err(failed)?;
        for (parent, own, limit) in self.options.queues.leaves() {
            let is_right = |queue: &&Queue| {
                queue.parent == Some(parent)
                    && queue.handle == own
                    && queue.kind == "bfifo"
                    && queue.options.starts_with(&u32::try_from(limit.0).unwrap_or(u32::MAX).to_ne_bytes())
            };
            if !present.iter().any(|queue| is_right(&queue)) {
                self.netlink.set_fifo(interface, parent, own, limit).map_err(failed)?;
                repaired.push(format!("queue of class {MAJOR:x}:{:x}", parent & 0xffff));
            }
        }
        Ok(())
    }

    fn set_up_program(&mut self, interface: u32, repaired: &mut Vec<String>) -> Result<(), String> {
        let failed = |error: thalweg_linux::NetlinkError| error.to_string();
        let found = |programs: Vec<FilterProgram>| {
            programs.into_iter().find(|program| program.place == PLACE).map(|program| program.program)
        };
        let present = found(self.netlink.egress_programs(interface).map_err(failed)?);
        if present.is_some() && present == self.attached {
            return Ok(());
        }
        self.netlink
            .set_egress_program(interface, PLACE, self.program.as_fd(), &self.filter_name)
            .map_err(failed)?;
        self.attached = found(self.netlink.egress_programs(interface).map_err(failed)?);
        if present != self.attached {
            repaired.push("program at the egress hook".to_owned());
        }
        Ok(())
    }

    fn entry(&self, now: Timestamp) -> Entry {
        let class = handle(MAJOR, SCAVENGER);
        Entry { expires: now + self.options.expiry, class, release_at: None }
    }

    fn redirect(&mut self, id: RedirectionId, key: &FlowKey, now: Timestamp) -> Input {
        if self.interface.is_none() {
            return Input::Failed(id, format!("interface {} does not exist", self.options.interface));
        }
        match self.maps.set(key, self.entry(now)) {
            Ok(()) => Input::Redirected(id),
            Err(error) => Input::Failed(id, format!("cannot write the map of redirections: {error}")),
        }
    }

    /// Counts a failed extension: the redirection expires, and a reading shows that it is missing.
    fn count_failed(&mut self, extended: std::io::Result<()>) {
        self.failed_checks += u64::from(extended.is_err());
    }

    /// Releases a flow. With `if_packets`, the program itself compares: after the write, either it redirects no more
    /// packets, or it has redirected more than that already.
    fn release(
        &mut self,
        id: RedirectionId,
        key: &FlowKey,
        if_packets: Option<u64>,
        now: Timestamp,
    ) -> std::io::Result<Input> {
        if let Some(packets) = if_packets
            && self.maps.get(key)?.is_some_and(|entry| entry.expires > now)
        {
            self.maps.set(key, Entry { release_at: Some(packets), ..self.entry(now) })?;
            if self.maps.counters(key)?.is_some_and(|counters| counters.packets != packets) {
                self.maps.set(key, self.entry(now))?;
                return Ok(Input::StillSending(id));
            }
        }
        self.maps.remove(key)?;
        Ok(Input::Released(id))
    }

    /// Deletes program and queues, and restores the previous queue.
    fn tear_down(&mut self) -> Result<(), String> {
        let Some(interface) = self.interface else { return Ok(()) };
        let failed = |error: thalweg_linux::NetlinkError| error.to_string();
        if self.attached.take().is_some() {
            self.netlink.delete_egress_program(interface, PLACE).map_err(failed)?;
        }
        if !is_ours(&root_queue(&self.netlink, interface)?) {
            return Ok(());
        }
        match self.maps.remembered().map_err(|error| error.to_string())? {
            Some(queue) => self.netlink.set_root_queue(interface, &queue).map_err(failed),
            None => self.netlink.delete_root_queue(interface).map_err(failed),
        }
    }
}

impl Isolator for Tc {
    fn name(&self) -> &'static str {
        "tc"
    }

    fn reads_counters(&self) -> bool {
        true
    }

    /// Sets up the interface. If that fails, it is as before: as an earlier run left it, or as it was without us.
    fn start(&mut self) -> Result<(), String> {
        let Some(interface) = self.interface else { return Ok(()) };
        let was_ours = is_ours(&root_queue(&self.netlink, interface)?);
        self.set_up().map(drop).map_err(|error| match was_ours {
            true => error,
            false => self.undo(error),
        })
    }

    fn adopted(&mut self) -> Vec<FlowKey> {
        std::mem::take(&mut self.adopted)
    }

    fn execute(&mut self, command: Command, now: Timestamp) -> Option<Input> {
        match command {
            Command::Redirect(id, key) => Some(self.redirect(id, &key, now)),
            Command::Refresh(redirections) => {
                let keys = redirections.into_iter().map(|(_, key)| key);
                let extended = self.maps.set_many(keys, self.entry(now));
                self.count_failed(extended);
                None
            }
            Command::Restore(_, key) => {
                let restored = self.maps.set(&key, self.entry(now));
                self.count_failed(restored);
                None
            }
            Command::Release { id, key, if_packets } => {
                let released = self.release(id, &key, if_packets, now);
                Some(released.unwrap_or_else(|error| {
                    Input::ReleaseFailed(id, format!("cannot write the map of redirections: {error}"))
                }))
            }
        }
    }

    fn read(&mut self, flows: &[FlowKey], now: Timestamp) -> Result<Option<Reading>, String> {
        let Some(interface) = self.interface else { return Ok(None) };
        let counters = flows.iter().map(|key| Ok((*key, self.maps.redirected(key, now)?)));
        let flows = counters.collect::<std::io::Result<_>>().map_err(|error| error.to_string())?;
        let classes = self.netlink.classes(interface).map_err(|error| error.to_string())?;
        let queue = |minor| {
            let counters = find_class(&classes, minor).map(|class| class.counters).unwrap_or_default();
            QueueReading {
                sent_packets: counters.sent_packets,
                sent_bytes: counters.sent_bytes,
                dropped_packets: counters.dropped_packets,
                backlog: Some(counters.backlog),
            }
        };
        Ok(Some(Reading { scavenger: queue(SCAVENGER), primary: queue(PRIMARY), flows }))
    }

    /// Also removes entries that have expired, in parts: one is left behind where a release has failed.
    fn maintain(&mut self, now: Timestamp) -> Result<Vec<String>, String> {
        let swept = self.maps.sweep(now).map_err(|error| error.to_string());
        let mut repaired = swept.and_then(|()| self.set_up());
        if let Ok(repaired) = &mut repaired {
            repaired.extend(self.note.take());
        }
        match &repaired {
            Ok(repaired) => self.repairs += repaired.len() as u64,
            Err(_) => self.failed_checks += 1,
        }
        repaired
    }

    fn stop(&mut self) -> Result<(), String> {
        let stopped = match self.options.keeps_at_stop {
            true => Ok(()),
            false => self.tear_down(),
        };
        self.owner = None;
        stopped
    }

    fn counters(&self) -> IsolatorCounters {
        let totals = self.maps.totals().unwrap_or_default();
        IsolatorCounters {
            redirected_packets: totals.redirected,
            expired_packets: totals.expired,
            released_packets: totals.released,
            repairs: self.repairs,
            failed_checks: self.failed_checks,
            ..IsolatorCounters::default()
        }
    }
}

/// Returns the root queue of an interface.
fn root_queue(netlink: &Netlink, interface: u32) -> Result<Queue, String> {
    let queues = netlink.queues(interface).map_err(|error| error.to_string())?;
    Ok(queues.into_iter().find(|queue| queue.parent.is_none()).unwrap_or_default())
}

/// Whether a root queue is ours.
fn is_ours(root: &Queue) -> bool {
    root.kind == "htb" && root.handle == handle(MAJOR, 0)
}

/// Checks that a root queue is ours, or can be set again as it was.
fn check_root(root: &Queue, interface: &str) -> Result<(), String> {
    let can_restore = root.handle == 0 || RESTORABLE.contains(&root.kind.as_str());
    match can_restore || is_ours(root) {
        true => Ok(()),
        false => Err(format!(
            "{interface} has the queue {} {:x}: of someone else. It is left as it is, because Thalweg could not set it again with its classes \
             and filters, and no flow is redirected. To let Thalweg use {interface}, delete that queue: tc qdisc del dev {interface} root",
            root.kind,
            root.handle >> 16,
        )),
    }
}

/// Returns the program that an earlier run attached.
fn earlier_program(
    netlink: &Netlink,
    interface: u32,
) -> Result<Option<FilterProgram>, thalweg_linux::NetlinkError> {
    let is_ours = |it: &FilterProgram| it.place == PLACE && it.name.starts_with(FILTER_NAME);
    // An interface without the hook has no programs.
    Ok(netlink.egress_programs(interface).unwrap_or_default().into_iter().find(is_ours))
}

/// Takes over the program of an earlier run, if it is the same and its maps are as large. Otherwise loads the program, and
/// copies the entries of the earlier one. Also returns a note if that was not possible.
fn obtain(
    earlier: Option<&FilterProgram>,
    filter_name: &str,
    capacity: u32,
) -> Result<(Program, Maps, Option<String>), String> {
    let opened = earlier.map(|earlier| {
        let program = Program::by_id(earlier.program)?;
        let maps = Maps::of(&program)?;
        Ok::<_, std::io::Error>((program, maps))
    });
    // Without CAP_SYS_ADMIN, or with the maps of another version, the program is replaced without its entries.
    let (opened, note) = match opened.transpose() {
        Ok(opened) => (opened, None),
        Err(error) => (
            None,
            Some(format!("redirections of an earlier run, which cannot be opened and are dropped: {error}")),
        ),
    };
    if let (Some((_, maps)), Some(earlier)) = (&opened, earlier)
        && earlier.name == filter_name
        && maps.capacity() == capacity
    {
        let (program, maps) = opened.expect("it was matched");
        return Ok((program, maps, None));
    }
    let (program, mut maps) = load(capacity)?;
    if let Some((_, earlier)) = &opened {
        maps.copy_from(earlier).map_err(|error| format!("cannot copy redirections: {error}"))?;
    }
    Ok((program, maps, note))
}

fn load(capacity: u32) -> Result<(Program, Maps), String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot load the redirecting program: {error}");
    let mut object = Object::read(OBJECT).map_err(|error| failed(&error))?;
    for map in ["redirections", "flow_counters"] {
        object.set_max_entries(map, capacity).map_err(|error| failed(&error))?;
    }
    let Loaded { program, maps } =
        object.load(PROGRAM, ProgramKind::Classifier).map_err(|error| failed(&error))?;
    Ok((program, Maps::new(maps).map_err(|error| failed(&error))?))
}

fn find_class(classes: &[Class], minor: u16) -> Option<&Class> {
    classes.iter().find(|class| class.handle == handle(MAJOR, minor))
}

/// FNV-1a (Fowler, Noll and Vo), which names versions of the program.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
