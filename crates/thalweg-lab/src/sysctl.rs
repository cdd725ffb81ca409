//! Kernel network parameters, per namespace and of the machine.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;

use serde::{Deserialize, Serialize};
use thalweg_linux::priority::{REAL_TIME_LIMIT, UNLIMITED};
use thalweg_linux::{KernelVersion, Namespace};
use thalweg_wire::Bytes;

use crate::error::LabError;

const FOLDER: &str = "/proc/sys";

/// The congestion controls that all namespaces may use; one list for the machine.
const ALLOWED: &str = "net/ipv4/tcp_allowed_congestion_control";

/// The congestion controls that the kernel has.
const AVAILABLE: &str = "net/ipv4/tcp_available_congestion_control";

/// The send buffer of sockets that set none of their own, in bytes; one value for the machine.
const SEND_BUFFER: &str = "net/core/wmem_default";

/// The first kernel that gives other threads a twentieth of a processor even without that limit, but only if they wait (fair server).
const FAIR_KERNEL: KernelVersion = KernelVersion { major: 6, minor: 12 };

/// The processors that may process what a new interface of the namespace receives, a mask in hexadecimal digits (since Linux 6.3).
const RECEIVE_PROCESSORS: &str = "net/core/rps_default_mask";

/// A parameter of the machine that a lab has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SysctlChange {
    name: String,
    before: String,
    after: String,
}

impl SysctlChange {
    /// Returns the change that lets hosts use `congestion_control`. It changes nothing if they may already.
    pub(crate) fn to_allow(congestion_control: &str) -> Result<SysctlChange, LabError> {
        let before = read(ALLOWED)?;
        let after = match before.split_whitespace().any(|name| name == congestion_control) {
            true => before.clone(),
            false => format!("{before} {congestion_control}"),
        };
        Ok(SysctlChange { name: ALLOWED.to_owned(), before, after })
    }

    /// Returns the change that lets a thread with real-time priority run for as long as it likes. It changes nothing if it may
    /// already; `None` for kernels that have no such limit, or protect other threads by it alone.
    pub(crate) fn to_unlimited_real_time() -> Result<Option<SysctlChange>, LabError> {
        let is_fair = KernelVersion::running().is_some_and(|version| version >= FAIR_KERNEL);
        if !is_fair || !path(REAL_TIME_LIMIT).exists() {
            return Ok(None);
        }
        let (name, before) = (REAL_TIME_LIMIT.to_owned(), read(REAL_TIME_LIMIT)?);
        Ok(Some(SysctlChange { name, before, after: UNLIMITED.to_owned() }))
    }

    /// Returns the change that gives new sockets a send buffer of at least this size; `None` if they have it already.
    pub(crate) fn to_buffer(size: Bytes) -> Result<Option<SysctlChange>, LabError> {
        let before = read(SEND_BUFFER)?;
        let is_enough = before.parse().is_ok_and(|before: u64| before >= size.0);
        let change = || SysctlChange { name: SEND_BUFFER.to_owned(), before, after: size.0.to_string() };
        Ok((!is_enough).then(change))
    }

    /// Applies the change.
    pub(crate) fn apply(&self) -> Result<(), LabError> {
        write(&self.name, &self.after)
    }

    /// Makes a `later` change of the same parameter, which another lab needs, begin where this one did. Returns whether it was one. Then it
    /// reverts both.
    pub(crate) fn give_to(&self, later: &mut SysctlChange) -> bool {
        let follows = later.name == self.name && later.before == self.after;
        if follows {
            later.before.clone_from(&self.before);
        }
        follows
    }

    /// Reverts the change, unless the parameter has been changed again.
    pub(crate) fn restore(&self) -> Result<(), LabError> {
        if read(&self.name)? == self.after { write(&self.name, &self.before) } else { Ok(()) }
    }
}

/// Returns the congestion controls that the kernel has.
pub(crate) fn congestion_controls() -> Result<Vec<String>, LabError> {
    Ok(read(AVAILABLE)?.split_whitespace().map(str::to_owned).collect())
}

/// Sets parameters of a namespace.
pub(crate) fn set_within(namespace: &Namespace, parameters: &[(&str, &str)]) -> Result<(), LabError> {
    // /proc/sys/net shows the namespace of the calling thread.
    namespace.within(|| parameters.iter().try_for_each(|(name, value)| write(name, value)))?
}

/// Lets one processor process all packets of a flow, at every interface that is created in the namespace from now on, as a network
/// card with several queues does. Without it, packets of a virtual link are processed where their sender runs, and when that
/// changes, they can overtake each other. The processor `without` has other work. Kernels that cannot do this are left as they are.
pub(crate) fn keep_flows_in_order(namespace: &Namespace, without: Option<usize>) -> Result<(), LabError> {
    if !path(RECEIVE_PROCESSORS).exists() {
        return Ok(());
    }
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let all = |processor: &usize| Some(*processor) != without;
    set_within(namespace, &[(RECEIVE_PROCESSORS, &mask_of((0..processors).filter(all)))])
}

/// Keeps packets of the namespace's bridges from the machine's packet filter, if the kernel would hand them to it.
pub(crate) fn keep_filters_out(namespace: &Namespace) -> Result<(), LabError> {
    let filters =
        ["arptables", "iptables", "ip6tables"].map(|name| format!("net/bridge/bridge-nf-call-{name}"));
    let present: Vec<(&str, &str)> =
        filters.iter().filter(|name| path(name).exists()).map(|name| (name.as_str(), "0")).collect();
    set_within(namespace, &present)
}

/// Disables IPv6, which would announce addresses on its own: links carry only what hosts send.
pub(crate) fn silence_ipv6(namespace: &Namespace) -> Result<(), LabError> {
    if !has_ipv6() {
        return Ok(());
    }
    let parameters = [("net/ipv6/conf/all/disable_ipv6", "1"), ("net/ipv6/conf/default/disable_ipv6", "1")];
    set_within(namespace, &parameters)
}

/// Whether the kernel has IPv6.
pub(crate) fn has_ipv6() -> bool {
    path("net/ipv6").exists()
}

/// Raises the largest buffers of TCP connections of a namespace to at least this size. The kernel still begins with small ones, and
/// grows them as needed.
pub(crate) fn raise_tcp_buffers(namespace: &Namespace, size: Bytes) -> Result<(), LabError> {
    namespace.within(|| {
        ["net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"].iter().try_for_each(|name| {
            let sizes = read(name)?;
            match with_maximum(&sizes, size.0) {
                Some(raised) => write(name, &raised),
                None => Ok(()),
            }
        })
    })?
}

/// Returns the three sizes of a TCP buffer with this maximum; `None` if it is as large already.
fn with_maximum(sizes: &str, maximum: u64) -> Option<String> {
    let [least, initial, now] = sizes.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
    let is_enough = now.parse().is_ok_and(|now: u64| now >= maximum);
    (!is_enough).then(|| format!("{least} {initial} {maximum}"))
}

/// Returns the mask of processors, in groups of 32, the highest first.
fn mask_of(processors: impl Iterator<Item = usize>) -> String {
    let mut groups = vec![0_u32];
    for processor in processors {
        groups.resize(groups.len().max(processor / 32 + 1), 0);
        groups[processor / 32] |= 1 << (processor % 32);
    }
    groups.iter().rev().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(",")
}

fn read(name: &str) -> Result<String, LabError> {
    let path = path(name);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text.trim_end().to_owned()),
        Err(source) => Err(LabError::Sysctl { path, source }),
    }
}

fn write(name: &str, value: &str) -> Result<(), LabError> {
    let path = path(name);
    fs::write(&path, value).map_err(|source| LabError::Sysctl { path, source })
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maximum_of_a_buffer_is_only_raised() {
        let sizes = "4096\t131072\t6291456";
        assert_eq!(with_maximum(sizes, 6_291_456), None);
        assert_eq!(with_maximum(sizes, 6_291_457).unwrap(), "4096 131072 6291457");
        assert_eq!(with_maximum("", 1), None);
    }

    #[test]
    fn the_last_of_several_labs_reverts_their_changes() {
        let change = |before: &str, after: &str| {
            let [name, before, after] = ["a", before, after].map(str::to_owned);
            SysctlChange { name, before, after }
        };
        let (first, mut second, mut other) = (change("1", "2"), change("2", "2"), change("3", "4"));
        assert!(!first.give_to(&mut other), "not what the first left");
        assert!(first.give_to(&mut second));
        assert_eq!((second, other), (change("1", "2"), change("3", "4")));
    }

    #[test]
    fn a_mask_has_a_bit_for_each_processor() {
        let masks = [1, 2, 31, 32, 33, 64, 70].map(|count| mask_of(0..count));
        let expected =
            ["1", "3", "7fffffff", "ffffffff", "1,ffffffff", "ffffffff,ffffffff", "3f,ffffffff,ffffffff"];
        assert_eq!(masks, expected);
        assert_eq!(mask_of([0, 40].into_iter()), "100,1");
    }
}
