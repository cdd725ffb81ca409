//! Giving up privileges for good, once everything that needs them is open.
//!
//! Capturing needs CAP_NET_RAW to open its sockets and nothing to read from them. What parses hostile bytes
//! afterwards should be able to do no harm: [`drop_privileges`] leaves it no capability in any set
//! (capabilities(7)), no way to regain one by executing a program (PR_SET_NO_NEW_PRIVS), and, if it runs as
//! root, another user's identity.
//!
//! Which user: the one who started a set-user-ID program, else the one who called `sudo`, so that files and
//! the terminal remain theirs; else `nobody`. Whatever root alone may open has to be open by then.

#![expect(unsafe_code, reason = "system calls that change the process's identity")]

use std::fmt;
use std::io;

use caps::errors::CapsError;
use caps::{CapSet, Capability};
use libc::{gid_t, uid_t};
use thiserror::Error;

/// The user and group `nobody` where the password file does not name it.
const OVERFLOW_ID: u32 = 65_534;

/// What [`drop_privileges`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Capabilities that were in force and are no longer.
    pub capability_count: usize,
    /// Capabilities that were kept.
    pub kept: Vec<Capability>,
    /// The user as whom the process ran, and as whom it runs now.
    pub user: UserChange,
    /// Whether programs that it executes are barred from all other capabilities as well. Not possible without
    /// CAP_SETPCAP, and not needed: PR_SET_NO_NEW_PRIVS bars them too.
    pub is_bounding_set_empty: bool,
}

/// What became of the process's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// It was not root, and stays who it is.
    None,
    /// It was root, and is this user and group now.
    To {
        /// User.
        uid: u32,
        /// Group; there are no supplementary ones.
        gid: u32,
    },
    /// It is root still, without capabilities: the container it runs in has no other user, or does not let
    /// it change. It can still open root's files.
    Refused,
}

/// Why privileges could not be dropped. The process may have kept some, and should end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// Other threads run already, and would keep their capabilities.
    #[error("privileges must be dropped before threads start; {thread_count} are running")]
    ThreadsRunning {
        /// Threads, the calling one included.
        thread_count: usize,
    },
    /// There is no such user.
    #[error("there is no user {name:?}")]
    NoUser {
        /// The name.
        name: String,
    },
    /// A system call failed.
    #[error("cannot {step}: {source}")]
    System {
        /// What was tried, to be read after "cannot".
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A set of capabilities could not be read or emptied.
    #[error("cannot empty the {set:?} set of capabilities: {source}")]
    Capabilities {
        /// Which set.
        set: CapSet,
        /// What went wrong.
        source: CapsError,
    },
    /// A set of capabilities is not empty though it was emptied.
    #[error("the {set:?} set of capabilities is not empty")]
    StillPrivileged {
        /// Which set.
        set: CapSet,
    },
}

/// Drops every privilege of the process, for good. To be called when the sockets and files are open and
/// **before any thread starts**: capabilities belong to threads, and new threads inherit those of the one
/// that starts them.
///
/// # Errors
/// When a privilege would remain; the process should then end. That it could not change its user within a
/// container is told in the result.
pub fn drop_privileges() -> Result<Dropped, PrivilegeError> {
    drop_privileges_except(Keep::Nothing, None)
}

/// What [`drop_privileges_except`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// No capability at all.
    Nothing,
    /// Those that opening an interface takes, as far as the process has them: CAP_NET_RAW, and for AF_XDP CAP_NET_ADMIN,
    /// CAP_BPF and CAP_IPC_LOCK. For a daemon that opens an interface again when it comes back.
    Capture,
}

impl Keep {
    const fn capabilities(self) -> &'static [Capability] {
        match self {
            Keep::Nothing => &[],
            Keep::Capture => &[
                Capability::CAP_NET_RAW,
                Capability::CAP_NET_ADMIN,
                Capability::CAP_BPF,
                Capability::CAP_IPC_LOCK,
            ],
        }
    }
}

/// Drops every privilege of the process but those in `keep`, for good. Root becomes `user`, if one is named; else as
/// [`drop_privileges`]. What is kept is neither inheritable nor ambient: no program that is executed gets it.
///
/// # Errors
/// As [`drop_privileges`], and if there is no such user.
pub fn drop_privileges_except(keep: Keep, user: Option<&str>) -> Result<Dropped, PrivilegeError> {
    refuse_if_threads_run()?;
    let held = read(CapSet::Permitted)?;
    let kept: caps::CapsHashSet =
        keep.capabilities().iter().copied().filter(|it| held.contains(it)).collect();
    let before = read(CapSet::Effective)?.len();
    // In this order: emptying the bounding set and changing the user need capabilities themselves.
    let is_bounding_set_empty = empty_bounding_set(&kept);
    let at = |set| move |source| PrivilegeError::Capabilities { set, source };
    // Without this the permitted set is emptied with the change of the user.
    if !kept.is_empty() {
        caps::securebits::set_keepcaps(true).map_err(at(CapSet::Permitted))?;
    }
    let user = leave_root(user)?;
    for set in [CapSet::Ambient, CapSet::Inheritable] {
        caps::clear(None, set).map_err(at(set))?;
    }
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(at(set))?;
    }
    if !kept.is_empty() {
        caps::securebits::set_keepcaps(false).map_err(at(CapSet::Permitted))?;
    }
    bar_new_privileges()?;
    let nothing = caps::CapsHashSet::new();
    for (set, allowed) in [
        (CapSet::Ambient, &nothing),
        (CapSet::Inheritable, &nothing),
        (CapSet::Effective, &kept),
        (CapSet::Permitted, &kept),
    ] {
        if !read(set)?.is_subset(allowed) {
            return Err(PrivilegeError::StillPrivileged { set });
        }
    }
    let kept: Vec<Capability> = keep.capabilities().iter().copied().filter(|it| kept.contains(it)).collect();
    Ok(Dropped { capability_count: before.saturating_sub(kept.len()), kept, user, is_bounding_set_empty })
}

/// Leaves the calling thread, and threads that it starts from now on, no capability; others keep theirs. For a thread that
/// reads what strangers send while others capture.
///
/// # Errors
/// If it keeps any.
pub fn drop_thread_capabilities() -> Result<(), PrivilegeError> {
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(|source| PrivilegeError::Capabilities { set, source })?;
        if !read(set)?.is_empty() {
            return Err(PrivilegeError::StillPrivileged { set });
        }
    }
    Ok(())
}

/// Whether the calling thread may open an interface: it has CAP_NET_RAW.
pub fn can_capture() -> bool {
    caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_RAW).unwrap_or(false)
}

fn refuse_if_threads_run() -> Result<(), PrivilegeError> {
    // Without /proc nobody can tell, and the caller's word has to do.
    let thread_count = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if thread_count > 1 { Err(PrivilegeError::ThreadsRunning { thread_count }) } else { Ok(()) }
}

fn read(set: CapSet) -> Result<caps::CapsHashSet, PrivilegeError> {
    caps::read(None, set).map_err(|source| PrivilegeError::Capabilities { set, source })
}

/// Whether it has nothing but `kept` afterwards.
fn empty_bounding_set(kept: &caps::CapsHashSet) -> bool {
    let mut known: Vec<Capability> = caps::runtime::thread_all_supported().into_iter().collect();
    known.sort_by_key(Capability::index);
    known.into_iter().filter(|capability| !kept.contains(capability)).all(|capability| {
        let is_present = caps::has_cap(None, CapSet::Bounding, capability).unwrap_or(true);
        !is_present || caps::drop(None, CapSet::Bounding, capability).is_ok()
    })
}

/// Becomes another user if the process is root in any way.
fn leave_root(user: Option<&str>) -> Result<UserChange, PrivilegeError> {
    // SAFETY: these take nothing and cannot fail.
    let (real, effective) = unsafe { (libc::getuid(), libc::geteuid()) };
    if real != 0 && effective != 0 {
        return Ok(UserChange::None);
    }
    let (uid, gid) = match user {
        Some(name) => user_named(name)?,
        None => unprivileged_user(real),
    };
    // SAFETY: no groups are passed; the others take numbers only.
    let result = unsafe {
        // The user goes last, for root alone may do the rest.
        checked("drop supplementary groups", libc::setgroups(0, std::ptr::null()))
            .and_then(|()| checked("change the group", libc::setresgid(gid, gid, gid)))
            .and_then(|()| checked("change the user", libc::setresuid(uid, uid, uid)))
    };
    match result {
        Ok(()) => Ok(UserChange::To { uid, gid }),
        // EPERM: the capability to change is missing. EINVAL: this user does not exist in the namespace.
        Err(PrivilegeError::System { source, .. })
            if matches!(source.raw_os_error(), Some(libc::EPERM | libc::EINVAL)) =>
        {
            Ok(UserChange::Refused)
        }
        Err(error) => Err(error),
    }
}

/// User and group to become; neither is root.
fn unprivileged_user(real_uid: uid_t) -> (uid_t, gid_t) {
    // SAFETY: takes nothing and cannot fail.
    let real_gid = unsafe { libc::getgid() };
    let from_environment = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    let sudo_uid = from_environment("SUDO_UID").unwrap_or(0);
    let sudo_gid = from_environment("SUDO_GID").unwrap_or(0);
    [(real_uid, real_gid), (sudo_uid, sudo_gid), nobody()]
        .into_iter()
        .find(|&(uid, gid)| uid != 0 && gid != 0)
        .unwrap_or((OVERFLOW_ID, OVERFLOW_ID))
}

fn user_named(name: &str) -> Result<(uid_t, gid_t), PrivilegeError> {
    let no_user = || PrivilegeError::NoUser { name: name.to_owned() };
    let text = std::ffi::CString::new(name).map_err(|_| no_user())?;
    // SAFETY: the name ends in a zero byte; no other thread runs that could call the function meanwhile.
    let entry = unsafe { libc::getpwnam(text.as_ptr()).as_ref() }.ok_or_else(no_user)?;
    Ok((entry.pw_uid, entry.pw_gid))
}

fn nobody() -> (uid_t, gid_t) {
    // SAFETY: the name ends in a zero byte; no other thread runs that could call the function meanwhile.
    let entry = unsafe { libc::getpwnam(c"nobody".as_ptr()).as_ref() };
    entry.map_or((OVERFLOW_ID, OVERFLOW_ID), |entry| (entry.pw_uid, entry.pw_gid))
}

/// No program that is executed from now on gains what this process has not.
fn bar_new_privileges() -> Result<(), PrivilegeError> {
    // SAFETY: takes numbers only.
    checked("bar new privileges", unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
}

fn checked(step: &'static str, status: libc::c_int) -> Result<(), PrivilegeError> {
    if status == 0 {
        Ok(())
    } else {
        Err(PrivilegeError::System { step, source: io::Error::last_os_error() })
    }
}

/// `runs as user 1000, group 1000, without capabilities (40 dropped)`.
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.user {
            UserChange::None => f.write_str("runs as before")?,
            UserChange::To { uid, gid } => write!(f, "runs as user {uid}, group {gid}")?,
            UserChange::Refused => f.write_str("still runs as root (there is no other user here)")?,
        }
        match &self.kept[..] {
            [] => write!(f, ", without capabilities ({} dropped)", self.capability_count),
            kept => {
                let names: Vec<String> = kept.iter().map(ToString::to_string).collect();
                write!(f, ", with {} alone ({} dropped)", names.join(", "), self.capability_count)
            }
        }
    }
}
