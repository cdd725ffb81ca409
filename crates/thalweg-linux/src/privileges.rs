//! Drops privileges permanently, once everything that needs them is open.
//!
//! Capturing needs CAP_NET_RAW to open sockets, and no capability to read from them. [`drop_privileges`] limits the
//! harm that hostile packets could do through a parser. It empties all capability sets (capabilities(7)), prevents
//! regaining capabilities by exec (PR_SET_NO_NEW_PRIVS), and changes the user if the process runs as root.
//!
//! The new user is the one who started a set-user-ID program, else the one who called `sudo`, who keeps access to files
//! and the terminal, else `nobody`. Files that only root may open must be open before.

#![expect(unsafe_code, reason = "system calls that change the process's identity")]

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use caps::errors::CapsError;
use caps::{CapSet, Capability};
use libc::{gid_t, uid_t};
use thiserror::Error;

/// How often to check, a millisecond apart, whether a joined thread is gone.
const JOINED_CHECKS: u32 = 50;

/// The user and group `nobody` where the password file does not name it.
const OVERFLOW_ID: u32 = 65_534;

/// The result of [`drop_privileges`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// The number of dropped capabilities.
    pub capability_count: usize,
    /// The kept capabilities.
    pub kept: Vec<Capability>,
    /// The change of the user.
    pub user: UserChange,
    /// Whether the bounding set contains no other capabilities. Emptying it requires CAP_SETPCAP and is optional,
    /// because PR_SET_NO_NEW_PRIVS has the same effect.
    pub is_bounding_set_empty: bool,
}

/// The change of the process's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserChange {
    /// The process was not root, and keeps its user.
    None,
    /// The process was root, and now has this user and group.
    To {
        /// The user.
        uid: u32,
        /// The group; no supplementary groups remain.
        gid: u32,
    },
    /// The process is still root, without capabilities: its container has no other user, or forbids the change. It can
    /// still open root's files.
    Refused,
}

/// The reason why privileges cannot be dropped. The process may still have some, and should exit.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PrivilegeError {
    /// Other threads already run, and would keep their capabilities.
    #[error("privileges must be dropped before threads start: {thread_count} threads are running")]
    ThreadsRunning {
        /// The number of threads, including the calling one.
        thread_count: usize,
    },
    /// The user does not exist.
    #[error("unknown user {name:?}")]
    NoUser {
        /// The name.
        name: String,
    },
    /// A system call failed.
    #[error("cannot {step}: {source}")]
    System {
        /// The operation, to follow the word "cannot".
        step: &'static str,
        /// The error of the kernel.
        source: io::Error,
    },
    /// A capability set cannot be read or emptied.
    #[error("cannot empty the {set:?} capability set: {source}")]
    Capabilities {
        /// The set.
        set: CapSet,
        /// The cause.
        source: CapsError,
    },
    /// A capability set is not empty after emptying it.
    #[error("the {set:?} capability set is not empty")]
    StillPrivileged {
        /// The set.
        set: CapSet,
    },
}

impl PrivilegeError {
    /// Whether the container has no other user or forbids the change.
    fn is_impossible_here(&self) -> bool {
        // EPERM: the capability to change is missing. EINVAL: this user does not exist in the namespace.
        matches!(self, PrivilegeError::System { source, .. }
            if matches!(source.raw_os_error(), Some(libc::EPERM | libc::EINVAL)))
    }
}

/// Drops all privileges of the process permanently. Call it when sockets and files are open and **before any thread
/// starts**: capabilities belong to threads, and new threads inherit those of their parent.
///
/// # Errors
/// If a privilege would remain; the process should then exit. Failing to change the user in a container is not an
/// error, but part of the result.
pub fn drop_privileges() -> Result<Dropped, PrivilegeError> {
    drop_privileges_except(Keep::Nothing, None)
}

/// The capabilities that [`drop_privileges_except`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// No capability.
    Nothing,
    /// The capabilities to open an interface, as far as the process has them: CAP_NET_RAW, and for AF_XDP
    /// CAP_NET_ADMIN, CAP_BPF and CAP_IPC_LOCK. For a daemon that reopens an interface when it returns.
    Capture,
    /// The capabilities to repair the queues of an interface and to write eBPF maps: CAP_NET_ADMIN and CAP_BPF.
    Isolation,
    /// Those of both.
    CaptureAndIsolation,
}

impl Keep {
    const fn capabilities(self) -> &'static [Capability] {
        match self {
            Keep::Nothing => &[],
            Keep::Isolation => &[Capability::CAP_NET_ADMIN, Capability::CAP_BPF],
            Keep::Capture | Keep::CaptureAndIsolation => &[
                Capability::CAP_NET_RAW,
                Capability::CAP_NET_ADMIN,
                Capability::CAP_BPF,
                Capability::CAP_IPC_LOCK,
            ],
        }
    }
}

/// Drops all privileges of the process except `keep` permanently. Root becomes `user` if given, else the user that
/// [`drop_privileges`] selects. Kept capabilities are neither inheritable nor ambient, so executed programs do not get
/// them.
///
/// # Errors
/// As [`drop_privileges`], and if the user does not exist.
pub fn drop_privileges_except(keep: Keep, user: Option<&str>) -> Result<Dropped, PrivilegeError> {
    check_single_threaded()?;
    let held = read(CapSet::Permitted)?;
    let kept: caps::CapsHashSet =
        keep.capabilities().iter().copied().filter(|it| held.contains(it)).collect();
    let before = read(CapSet::Effective)?.len();
    // The order matters: emptying the bounding set and changing the user require capabilities.
    let is_bounding_set_empty = empty_bounding_set(&kept);
    let at = |set| move |source| PrivilegeError::Capabilities { set, source };
    // Otherwise changing the user empties the permitted set.
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
    set_no_new_privileges()?;
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

/// Drops all capabilities of the calling thread and of threads that it starts later; other threads keep theirs. For a
/// thread that reads untrusted input while others capture.
///
/// # Errors
/// If a capability remains.
pub fn drop_thread_capabilities() -> Result<(), PrivilegeError> {
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted] {
        caps::clear(None, set).map_err(|source| PrivilegeError::Capabilities { set, source })?;
        if !read(set)?.is_empty() {
            return Err(PrivilegeError::StillPrivileged { set });
        }
    }
    Ok(())
}

/// Whether the calling thread may open an interface, which requires CAP_NET_RAW.
pub fn can_capture() -> bool {
    caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_RAW).unwrap_or(false)
}

fn check_single_threaded() -> Result<(), PrivilegeError> {
    // Without /proc the number of threads is unknown: trust the caller.
    let count = || std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    // The kernel may list a thread for a moment after it was joined.
    for _ in 0..JOINED_CHECKS {
        if count() <= 1 {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Err(PrivilegeError::ThreadsRunning { thread_count: count() })
}

fn read(set: CapSet) -> Result<caps::CapsHashSet, PrivilegeError> {
    caps::read(None, set).map_err(|source| PrivilegeError::Capabilities { set, source })
}

/// Removes all capabilities except `kept` from the bounding set. Returns whether that succeeded.
fn empty_bounding_set(kept: &caps::CapsHashSet) -> bool {
    let mut known: Vec<Capability> = caps::runtime::thread_all_supported().into_iter().collect();
    known.sort_by_key(Capability::index);
    known.into_iter().filter(|capability| !kept.contains(capability)).all(|capability| {
        let is_present = caps::has_cap(None, CapSet::Bounding, capability).unwrap_or(true);
        !is_present || caps::drop(None, CapSet::Bounding, capability).is_ok()
    })
}

/// Runs `work` on a thread of its own as the user that [`drop_privileges_except`] would change to, without capabilities. For checks of
/// what that user may do. If the process is not root, or cannot change the user, the thread has its user.
///
/// # Errors
/// If the user does not exist, or the thread cannot change to it.
pub fn run_as_unprivileged_user<T: Send>(
    user: Option<&str>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, PrivilegeError> {
    let Some((uid, gid)) = next_user(user)? else { return Ok(work()) };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| change_user_of_thread(uid, gid).map(|()| work()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Changes the user of the calling thread alone, with the system calls themselves: the functions of the C library change all threads.
fn change_user_of_thread(uid: uid_t, gid: gid_t) -> Result<(), PrivilegeError> {
    // SAFETY: no groups are passed; the others take numbers only.
    let result = unsafe {
        checked_long(
            "drop supplementary groups",
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<gid_t>()),
        )
        .and_then(|()| checked_long("change the group", libc::syscall(libc::SYS_setresgid, gid, gid, gid)))
        .and_then(|()| checked_long("change the user", libc::syscall(libc::SYS_setresuid, uid, uid, uid)))
    };
    match result {
        Err(error) if error.is_impossible_here() => Ok(()),
        other => other,
    }
}

/// Checks whether the process may read a file.
///
/// # Errors
/// The reason why it may not.
pub fn check_readable(path: &Path) -> io::Result<()> {
    check_access(path, libc::R_OK)
}

/// Checks whether the process may create files in a directory.
///
/// # Errors
/// The reason why it may not.
pub fn check_writable(folder: &Path) -> io::Result<()> {
    check_access(folder, libc::W_OK | libc::X_OK)
}

fn check_access(path: &Path, mode: libc::c_int) -> io::Result<()> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path ends in a zero byte.
    match unsafe { libc::access(path.as_ptr(), mode) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether the process is root, so that [`drop_privileges`] changes its user.
pub fn changes_user() -> bool {
    // SAFETY: these take nothing and cannot fail.
    let (real, effective) = unsafe { (libc::getuid(), libc::geteuid()) };
    real == 0 || effective == 0
}

/// Returns the effective user ID of the process.
pub fn user_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Checks whether the process may use the files of a directory.
pub(crate) fn check_searchable(folder: &Path) -> io::Result<()> {
    check_access(folder, libc::X_OK)
}

/// Checks that a user exists on this host.
///
/// # Errors
/// If not.
pub fn check_user(name: &str) -> Result<(), PrivilegeError> {
    user_named(name).map(drop)
}

/// Returns the user and group that root changes to; `None` if the process is not root.
pub(crate) fn next_user(user: Option<&str>) -> Result<Option<(uid_t, gid_t)>, PrivilegeError> {
    match user {
        _ if !changes_user() => Ok(None),
        Some(name) => user_named(name).map(Some),
        // SAFETY: takes nothing and cannot fail.
        None => Ok(Some(unprivileged_user(unsafe { libc::getuid() }))),
    }
}

/// Changes the user if the real or effective user is root.
fn leave_root(user: Option<&str>) -> Result<UserChange, PrivilegeError> {
    let Some((uid, gid)) = next_user(user)? else { return Ok(UserChange::None) };
    // SAFETY: no groups are passed; the others take numbers only.
    let result = unsafe {
        // The user changes last, because only root may do the rest.
        checked("drop supplementary groups", libc::setgroups(0, std::ptr::null()))
            .and_then(|()| checked("change the group", libc::setresgid(gid, gid, gid)))
            .and_then(|()| checked("change the user", libc::setresuid(uid, uid, uid)))
    };
    match result {
        Ok(()) => Ok(UserChange::To { uid, gid }),
        Err(error) if error.is_impossible_here() => Ok(UserChange::Refused),
        Err(error) => Err(error),
    }
}

/// Returns the user and group to change to; neither is root.
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
    // SAFETY: the name ends in a zero byte; no other thread runs that could call the function concurrently.
    let entry = unsafe { libc::getpwnam(text.as_ptr()).as_ref() }.ok_or_else(no_user)?;
    Ok((entry.pw_uid, entry.pw_gid))
}

fn nobody() -> (uid_t, gid_t) {
    // SAFETY: the name ends in a zero byte; no other thread runs that could call the function concurrently.
    let entry = unsafe { libc::getpwnam(c"nobody".as_ptr()).as_ref() };
    entry.map_or((OVERFLOW_ID, OVERFLOW_ID), |entry| (entry.pw_uid, entry.pw_gid))
}

/// Prevents executed programs from gaining privileges.
fn set_no_new_privileges() -> Result<(), PrivilegeError> {
    // SAFETY: takes numbers only.
    checked("set no_new_privs", unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
}

fn checked(step: &'static str, status: libc::c_int) -> Result<(), PrivilegeError> {
    if status == 0 {
        Ok(())
    } else {
        Err(PrivilegeError::System { step, source: io::Error::last_os_error() })
    }
}

fn checked_long(step: &'static str, status: libc::c_long) -> Result<(), PrivilegeError> {
    checked(step, if status == 0 { 0 } else { -1 })
}

/// `runs as user 1000, group 1000, without capabilities (40 dropped)`.
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.user {
            UserChange::None => f.write_str("runs as the same user")?,
            UserChange::To { uid, gid } => write!(f, "runs as user {uid}, group {gid}")?,
            UserChange::Refused => f.write_str("still runs as root (no other user available)")?,
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
