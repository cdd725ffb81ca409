//! Named network namespaces, as `ip netns` has them: `/run/netns/NAME`.

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

/// Where the names are, for `ip netns` as for us.
const FOLDER: &str = "/run/netns";

/// How often, and how long each time, to wait for processes that were killed: 2 s in all.
const KILL_WAITS: (u32, Duration) = (200, Duration::from_millis(10));

/// What could not be done with a namespace.
#[derive(Debug, Error)]
pub enum NamespaceError {
    /// It could not be made, entered, looked into or removed.
    #[error("network namespace {name:?}: cannot {what}: {source}")]
    Step {
        /// Its name.
        name: String,
        /// What was to be done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A command could not be started in it.
    #[error("network namespace {name:?}: cannot run {program:?}: {source}")]
    Run {
        /// Its name.
        name: String,
        /// What.
        program: String,
        /// What the system said.
        source: io::Error,
    },
}

/// A network namespace that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// The namespace of this name, whether there is one or not. An absolute path is that of a file that stands for a
    /// namespace, such as `/proc/1/ns/net`.
    pub fn named(name: impl Into<String>) -> Namespace {
        Namespace { name: name.into() }
    }

    /// Its name: `ip netns exec NAME` enters it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file that stands for it.
    pub fn path(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    /// Makes it. The kernel keeps it as long as its file is mounted, whoever ends.
    ///
    /// # Errors
    /// If the name is taken, or this process may not.
    pub fn create(name: String) -> Result<Namespace, NamespaceError> {
        let namespace = Namespace { name };
        namespace.make().map_err(|source| namespace.error("make it", source))?;
        Ok(namespace)
    }

    fn make(&self) -> io::Result<()> {
        share_folder()?;
        let path = self.path();
        File::options().create_new(true).write(true).open(&path)?;
        let hold = || -> io::Result<()> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok(mount(Some("/proc/thread-self/ns/net"), &path, NO_PATH, MsFlags::MS_BIND, NO_PATH)?)
        };
        // A thread of its own, which the new namespace ends with.
        let held = in_thread(hold);
        if held.is_err() {
            let _ = fs::remove_file(&path); // The first error is the one to report.
        }
        held
    }

    /// Takes its name away. It ends with what is left in it: interfaces at once, processes when they end.
    ///
    /// # Errors
    /// If there is none of this name, or this process may not.
    pub fn delete(&self) -> Result<(), NamespaceError> {
        let path = self.path();
        let unmounted = match umount2(&path, MntFlags::MNT_DETACH) {
            // The name was left behind with nothing mounted: a crash between the two steps of making it.
            Ok(()) | Err(Errno::EINVAL) => fs::remove_file(&path),
            Err(error) => Err(error.into()),
        };
        unmounted.map_err(|source| self.error("remove it", source))
    }

    /// Whether the calling thread is in it.
    pub fn is_current(&self) -> bool {
        let here = identity(Path::new("/proc/thread-self/ns/net"));
        here.is_ok_and(|here| identity(&self.path()).is_ok_and(|other| other == here))
    }

    /// Runs `work` in a thread within the namespace. Sockets that it opens stay there, whoever uses them after. Whoever is in it
    /// already needs no privilege for that.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    ///
    /// # Panics
    /// If `work` does.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        let enter = || -> io::Result<T> {
            if !self.is_current() {
                setns(File::open(self.path())?, CloneFlags::CLONE_NEWNET)?;
            }
            Ok(work())
        };
        in_thread(enter).map_err(|source| self.error("enter it", source))
    }

    /// Starts a command within the namespace.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or the command not started.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, NamespaceError> {
        let program = command.get_program().to_string_lossy().into_owned();
        let name = self.name.clone();
        // The child is one of the thread that starts it, and so in its namespace.
        self.within(|| command.spawn())?.map_err(|source| NamespaceError::Run { name, program, source })
    }

    /// The processes in it, by their main thread; those that end meanwhile may be missing.
    ///
    /// # Errors
    /// If there is no such namespace.
    pub fn processes(&self) -> Result<Vec<u32>, NamespaceError> {
        let find = || -> io::Result<Vec<u32>> {
            let own = identity(&self.path())?;
            let mut processes = Vec::new();
            for entry in fs::read_dir("/proc")? {
                let entry = entry?;
                let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
                // Of a process that has ended nothing can be read.
                if let Some(number) = number
                    && identity(&entry.path().join("ns/net")).is_ok_and(|other| other == own)
                {
                    processes.push(number);
                }
            }
            processes.sort_unstable();
            Ok(processes)
        };
        find().map_err(|source| self.error("find its processes", source))
    }

    /// Kills the processes in it, and waits until they are gone; the caller is spared. Gives how many there were.
    ///
    /// # Errors
    /// If they cannot be found, or do not end within 2 s.
    pub fn kill_processes(&self) -> Result<usize, NamespaceError> {
        let others = || -> Result<Vec<u32>, NamespaceError> {
            let all = self.processes()?.into_iter();
            Ok(all.filter(|&number| number != std::process::id()).collect())
        };
        let killed = others()?;
        for &number in &killed {
            match kill(Pid::from_raw(number as i32), Signal::SIGKILL) {
                Ok(()) | Err(Errno::ESRCH) => {}
                Err(error) => return Err(self.error("end its processes", error.into())),
            }
        }
        let (waits, pause) = KILL_WAITS;
        for _ in 0..waits {
            if others()?.is_empty() {
                return Ok(killed.len());
            }
            thread::sleep(pause);
        }
        Err(self.error("end its processes", io::ErrorKind::TimedOut.into()))
    }

    pub(crate) fn error(&self, what: &'static str, source: io::Error) -> NamespaceError {
        NamespaceError::Step { name: self.name.clone(), what, source }
    }
}

/// The namespaces whose names begin with the prefix, in order.
///
/// # Errors
/// If they cannot be listed.
pub fn with_prefix(prefix: &str) -> Result<Vec<Namespace>, NamespaceError> {
    let error = |source| NamespaceError::Step { name: format!("{prefix}*"), what: "look for any", source };
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
            namespaces.push(Namespace { name });
        }
    }
    namespaces.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(namespaces)
}

const NO_PATH: Option<&Path> = None;

/// Makes the folder of names one whose mounts other mount namespaces see, as `ip netns add` does.
fn share_folder() -> io::Result<()> {
    fs::create_dir_all(FOLDER)?;
    let share = || mount(NO_PATH, FOLDER, NO_PATH, MsFlags::MS_SHARED | MsFlags::MS_REC, NO_PATH);
    match share() {
        // Only a mount can be shared, and it is none yet.
        Err(Errno::EINVAL) => {
            mount(Some(FOLDER), FOLDER, NO_PATH, MsFlags::MS_BIND | MsFlags::MS_REC, NO_PATH)?;
            Ok(share()?)
        }
        shared => Ok(shared?),
    }
}

/// What tells a namespace from all others that there are at the time.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Runs `work` in a thread of its own, whose namespaces it may change.
fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
