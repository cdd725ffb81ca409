//! Named network namespaces, compatible with `ip netns`: `/run/netns/NAME`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use thiserror::Error;

use crate::priority::keep_off;

/// The folder of named namespaces, shared with `ip netns`.
const FOLDER: &str = "/run/netns";

/// The number and the length of waits for killed processes to end: 2 s in total.
const KILL_WAITS: (u32, Duration) = (200, Duration::from_millis(10));

/// A failed operation on a namespace.
#[derive(Debug, Error)]
pub enum NamespaceError {
    /// The namespace does not exist.
    #[error("network namespace {name:?} does not exist{}", advice(.name))]
    Missing {
        /// The name of the namespace.
        name: String,
    },
    /// The namespace cannot be created, entered, inspected or deleted.
    #[error("network namespace {name:?}: cannot {operation}: {source}")]
    Operation {
        /// The name of the namespace.
        name: String,
        /// The operation, to follow the word "cannot".
        operation: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A command cannot be started in the namespace.
    #[error("network namespace {name:?}: cannot run {program:?}: {source}")]
    Run {
        /// The name of the namespace.
        name: String,
        /// The program of the command.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Returns what to do about a missing namespace.
fn advice(name: &str) -> String {
    match name.starts_with('/') {
        true => ": no such file".to_owned(),
        false => format!(": `ip netns list` lists namespaces, `ip netns add {name}` creates it"),
    }
}

/// A named network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: String,
    /// The processor that is left to others.
    avoided: Option<usize>,
}

impl Namespace {
    /// Returns the namespace of this name, which need not exist. An absolute path names a namespace file, such as
    /// `/proc/1/ns/net`.
    pub fn named(name: impl Into<String>) -> Namespace {
        Namespace { name: name.into(), avoided: None }
    }

    /// Returns the namespace with a rule for what this value runs and starts in it: it uses all processors but `processor`, or
    /// all, if that is `None`.
    #[must_use]
    pub fn avoiding(self, processor: Option<usize>) -> Namespace {
        Namespace { avoided: processor, ..self }
    }

    /// The name: `ip netns exec NAME` enters the namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of the namespace file.
    pub fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }

    /// Whether the namespace exists.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    /// Creates a namespace. The kernel keeps it while its file is mounted, even after this process ends.
    ///
    /// # Errors
    /// If the name is in use, or this process lacks the privilege.
    pub fn create(name: String) -> Result<Namespace, NamespaceError> {
        let namespace = Namespace::named(name);
        namespace.mount_new().map_err(|source| {
            let name = namespace.name.clone();
            NamespaceError::Operation { name, operation: "create it", source }
        })?;
        Ok(namespace)
    }

    fn mount_new(&self) -> io::Result<()> {
        share_folder()?;
        let path = self.path();
        File::options().create_new(true).write(true).open(&path)?;
        let mount_in_thread = || -> io::Result<()> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok(mount(Some("/proc/thread-self/ns/net"), &path, NO_PATH, MsFlags::MS_BIND, NO_PATH)?)
        };
        // In a temporary thread, because unshare changes the namespace of its thread.
        let mounted = in_thread(mount_in_thread);
        if mounted.is_err() {
            let _ = fs::remove_file(&path); // The first error is the one to report.
        }
        mounted
    }

    /// Deletes the name. The kernel removes the namespace once its processes have ended.
    ///
    /// # Errors
    /// If the name does not exist, or this process lacks the privilege.
    pub fn delete(&self) -> Result<(), NamespaceError> {
        let path = self.path();
        let unmounted = match umount2(&path, MntFlags::MNT_DETACH) {
            // The name exists but nothing is mounted: a crash between the two steps of creation.
            Ok(()) | Err(Errno::EINVAL) => fs::remove_file(&path),
            Err(error) => Err(error.into()),
        };
        unmounted.map_err(|source| self.error("delete it", source))
    }

    /// Whether the calling thread is in this namespace.
    pub fn is_current(&self) -> bool {
        let here = identity(Path::new("/proc/thread-self/ns/net"));
        here.is_ok_and(|here| identity(&self.path()).is_ok_and(|other| other == here))
    }

    /// Runs `work` in a thread inside the namespace. Sockets that it opens stay in the namespace. Needs no privilege if
    /// the calling thread is already there.
    ///
    /// # Errors
    /// If the namespace does not exist, or cannot be entered.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        let enter = || -> io::Result<T> {
            if !self.is_current() {
                setns(File::open(self.path())?, CloneFlags::CLONE_NEWNET)?;
            }
            self.avoided.map_or(Ok(()), keep_off)?;
            Ok(work())
        };
        in_thread(enter).map_err(|source| self.error("enter it", source))
    }

    /// Starts a command inside the namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the command cannot be started.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, NamespaceError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let name = self.name.clone();
        // The child inherits the namespace of the thread that starts it.
        self.within(|| command.spawn())?.map_err(|source| NamespaceError::Run { name, program, source })
    }

    /// Returns the processes whose main thread is in the namespace. May miss processes that end meanwhile.
    ///
    /// # Errors
    /// If the namespace does not exist.
    pub fn processes(&self) -> Result<Vec<u32>, NamespaceError> {
        let find = || -> io::Result<Vec<u32>> {
            let own = identity(&self.path())?;
            let mut processes = Vec::new();
            for entry in fs::read_dir("/proc")? {
                let entry = entry?;
                let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
                // A process that has ended has no namespace.
                if let Some(number) = number
                    && identity(&entry.path().join("ns/net")).is_ok_and(|other| other == own)
                {
                    processes.push(number);
                }
            }
            processes.sort_unstable();
            Ok(processes)
        };
        find().map_err(|source| self.error("list its processes", source))
    }

    /// Kills the processes in the namespace except the caller, and waits until they are gone. Returns their number.
    ///
    /// # Errors
    /// If the processes cannot be listed, or do not end within 2 s.
    pub fn kill_processes(&self) -> Result<usize, NamespaceError> {
        let others = || -> Result<Vec<u32>, NamespaceError> {
            let all = self.processes()?.into_iter();
            Ok(all.filter(|&number| number != std::process::id()).collect())
        };
        let killed = others()?;
        for &number in &killed {
            match kill(Pid::from_raw(number as i32), Signal::SIGKILL) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(self.error("kill its processes", error.into())),
            }
        }
        let (waits, pause) = KILL_WAITS;
        for _ in 0..waits {
            if others()?.is_empty() {
                return Ok(killed.len());
            }
            thread::sleep(pause);
        }
        Err(self.error("kill its processes", io::ErrorKind::TimedOut.into()))
    }

    pub(crate) fn error(&self, operation: &'static str, source: io::Error) -> NamespaceError {
        let name = self.name.clone();
        match source.kind() == io::ErrorKind::NotFound && !self.exists() {
            true => NamespaceError::Missing { name },
            false => NamespaceError::Operation { name, operation, source },
        }
    }
}

/// Returns the namespaces whose names begin with `prefix`, in alphabetical order.
///
/// # Errors
/// If the namespaces cannot be listed.
pub fn with_prefix(prefix: &str) -> Result<Vec<Namespace>, NamespaceError> {
    let error =
        |source| NamespaceError::Operation { name: format!("{prefix}*"), operation: "list them", source };
    let entries = match fs::read_dir(FOLDER) {
        Ok(entries) => entries,
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(error(source)),
    };
    let mut namespaces = Vec::new();
    for entry in entries {
        if let Ok(name) = entry.map_err(error)?.file_name().into_string()
            && name.starts_with(prefix)
        {
            namespaces.push(Namespace::named(name));
        }
    }
    namespaces.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(namespaces)
}

const NO_PATH: Option<&Path> = None;

/// Creates the folder, and makes its mounts visible in other mount namespaces, as `ip netns add` does.
fn share_folder() -> io::Result<()> {
    fs::create_dir_all(FOLDER)?;
    let share = || mount(NO_PATH, FOLDER, NO_PATH, MsFlags::MS_SHARED | MsFlags::MS_REC, NO_PATH);
    match share() {
        // Only a mount point can be shared, and the folder is none yet.
        Err(Errno::EINVAL) => {
            mount(Some(FOLDER), FOLDER, NO_PATH, MsFlags::MS_BIND | MsFlags::MS_REC, NO_PATH)?;
            Ok(share()?)
        }
        shared => Ok(shared?),
    }
}

/// Returns device and inode, which identify a namespace.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Runs `work` in a temporary thread, whose namespaces it may change.
fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_namespace_is_said_to_be_missing() {
        let missing = |name: &str| Namespace::named(name).within(|| ()).unwrap_err().to_string();
        assert_eq!(
            missing("no-such-namespace"),
            "network namespace \"no-such-namespace\" does not exist: `ip netns list` lists namespaces, `ip netns add no-such-namespace` \
             creates it"
        );
        assert_eq!(missing("/no/file"), "network namespace \"/no/file\" does not exist: no such file");
        // A file that is no namespace.
        let error = Namespace::named("/proc/version").within(|| ()).unwrap_err().to_string();
        assert!(error.contains("cannot enter it"), "{error}");
    }
}
