//! The processes of connections: how long they used a processor, waited for one, or were blocked.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use thalweg_linux::process::ProcessIdentity;

/// A process, and its counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProcessCounters {
    /// Time that its threads used a processor.
    pub(super) cpu_us: u64,
    /// Time that its threads were runnable and waited for a processor.
    pub(super) wait_us: u64,
    /// Time that its control group had used up its quota.
    pub(super) throttled_us: u64,
    /// Samples in which a thread was in uninterruptible sleep, and all samples.
    pub(super) blocked: (u32, u32),
    /// Read from a disk.
    pub(super) read_bytes: u64,
    /// Written, for a disk.
    pub(super) write_bytes: u64,
}

/// Finds the processes of sockets, and reads their counters.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// The process of each socket's inode; `None` if no process has it, or this process may not see it.
    owners: HashMap<u32, Option<ProcessIdentity>>,
    processes: HashMap<u32, Process>,
}

#[derive(Debug)]
struct Process {
    identity: ProcessIdentity,
    name: String,
    /// The file with the time that its control group was throttled, if it has one.
    cpu_stat: Option<PathBuf>,
    blocked: (u32, u32),
}

impl Processes {
    /// Finds the processes of these sockets, and forgets those of others.
    pub(super) fn follow(&mut self, inodes: &HashSet<u32>) {
        self.owners.retain(|inode, _| inodes.contains(inode));
        let unknown: HashSet<u32> =
            inodes.iter().filter(|inode| !self.owners.contains_key(inode)).copied().collect();
        if !unknown.is_empty() {
            let mut found = owners(&unknown);
            self.owners.extend(unknown.into_iter().map(|inode| (inode, found.remove(&inode))));
        }
        let wanted: HashSet<u32> = self.owners.values().flatten().map(|process| process.pid).collect();
        self.processes.retain(|pid, process| wanted.contains(pid) && process.identity.is_running());
        for identity in self.owners.values().flatten() {
            self.processes.entry(identity.pid).or_insert_with(|| Process::of(*identity));
        }
    }

    /// Samples whether the processes are blocked.
    pub(super) fn sample_blocked(&mut self) {
        for (pid, process) in &mut self.processes {
            let is_blocked = threads(*pid).any(|thread| state(&thread) == Some('D'));
            process.blocked.0 += u32::from(is_blocked);
            process.blocked.1 += 1;
        }
    }

    /// Returns the number and the name of a socket's process; `None` if it is unknown.
    pub(super) fn owner(&self, inode: u32) -> Option<(u32, &str)> {
        let pid = self.owners.get(&inode)?.as_ref()?.pid;
        Some((pid, self.processes.get(&pid)?.name.as_str()))
    }

    /// Returns the counters of all processes, by number. Starts new samples of whether they are blocked.
    pub(super) fn read(&mut self) -> HashMap<u32, ProcessCounters> {
        self.processes.iter_mut().map(|(pid, process)| (*pid, process.read())).collect()
    }
}

impl Process {
    fn of(identity: ProcessIdentity) -> Process {
        let name = fs::read_to_string(format!("/proc/{}/comm", identity.pid)).unwrap_or_default();
        let groups = fs::read_to_string(format!("/proc/{}/cgroup", identity.pid)).unwrap_or_default();
        Process { identity, name: name.trim_end().to_owned(), cpu_stat: cpu_stat(&groups), blocked: (0, 0) }
    }

    fn read(&mut self) -> ProcessCounters {
        let pid = self.identity.pid;
        let mut counters =
            ProcessCounters { blocked: std::mem::take(&mut self.blocked), ..Default::default() };
        for thread in threads(pid) {
            // Nanoseconds on a processor, nanoseconds waiting for one, timeslices.
            let text = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
            let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or(0));
            counters.cpu_us += numbers.next().unwrap_or(0) / 1_000;
            counters.wait_us += numbers.next().unwrap_or(0) / 1_000;
        }
        let throttled = self.cpu_stat.as_ref().and_then(|path| fs::read_to_string(path).ok());
        counters.throttled_us = throttled.as_deref().and_then(throttled_us).unwrap_or(0);
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let number = |key: &str| io.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
        counters.read_bytes = number("read_bytes:").unwrap_or(0);
        counters.write_bytes = number("write_bytes:").unwrap_or(0);
        counters
    }
}

/// Returns the processes that have these sockets open. Looks at the descriptors of all processes, so call it for new sockets only.
fn owners(inodes: &HashSet<u32>) -> HashMap<u32, ProcessIdentity> {
    let mut found = HashMap::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids {
        // A process that ended, or of another user.
        let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        for descriptor in descriptors.flatten() {
            let Ok(link) = fs::read_link(descriptor.path()) else { continue };
            let inode = link.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'));
            let Some(inode) = inode.and_then(|inode| inode.parse::<u32>().ok()) else { continue };
            if inodes.contains(&inode)
                && let Some(identity) = ProcessIdentity::of(pid)
            {
                // The latest process: children that inherited a socket of a server do the work.
                found
                    .entry(inode)
                    .and_modify(|of: &mut ProcessIdentity| {
                        if of.start_time < identity.start_time {
                            *of = identity;
                        }
                    })
                    .or_insert(identity);
            }
        }
    }
    found
}

/// Returns the directories of a process's threads.
fn threads(pid: u32) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Returns the state of a thread: `R`, `S`, `D` and so on (proc_pid_stat(5)).
fn state(thread: &Path) -> Option<char> {
    let text = fs::read_to_string(thread.join("stat")).ok()?;
    text.rsplit_once(") ")?.1.chars().next()
}

/// Returns the file with the times of the control group's quota, from `/proc/PID/cgroup`: version 1 with a controller `cpu`, otherwise
/// version 2.
fn cpu_stat(groups: &str) -> Option<PathBuf> {
    let group = |wanted: &dyn Fn(&str) -> bool| {
        groups.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            wanted(controllers).then(|| path.trim_start_matches('/').to_owned())
        })
    };
    let version1 = group(&|controllers| controllers.split(',').any(|name| name == "cpu"));
    let roots = match &version1 {
        Some(_) => ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"].as_slice(),
        None => ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].as_slice(),
    };
    let path = version1.or_else(|| group(&str::is_empty))?;
    roots.iter().map(|root| Path::new(root).join(&path).join("cpu.stat")).find(|file| file.exists())
}

/// Returns the throttled time: `throttled_time` in nanoseconds (version 1), or `throttled_usec` (version 2).
fn throttled_us(cpu_stat: &str) -> Option<u64> {
    cpu_stat.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_time", nanos) => nanos.parse::<u64>().ok().map(|nanos| nanos / 1_000),
        ("throttled_usec", micros) => micros.parse().ok(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn a_socket_leads_to_its_process_and_its_processor_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let link = fs::read_link(format!("/proc/self/fd/{}", stream.as_raw_fd())).unwrap();
        let inode: u32 = link.to_str().unwrap()["socket:[".len()..].trim_end_matches(']').parse().unwrap();
        let mut processes = Processes::default();
        processes.follow(&[inode, 1].into());
        let (pid, name) = processes.owner(inode).unwrap();
        assert_eq!(pid, std::process::id());
        assert!(!name.is_empty());
        assert_eq!(processes.owner(1), None);
        let before = processes.read()[&pid].cpu_us;
        while processes.read()[&pid].cpu_us < before + 20_000 {
            std::hint::black_box((0..10_000).sum::<u64>());
        }
        processes.sample_blocked();
        assert_eq!(processes.read()[&pid].blocked.1, 1);
        processes.follow(&HashSet::new());
        assert!(processes.read().is_empty());
    }

    #[test]
    fn the_throttled_time_is_read_from_both_versions() {
        let version1 = "nr_periods 7\nnr_throttled 3\nthrottled_time 5000000\n";
        let version2 = "usage_usec 9\nnr_periods 7\nthrottled_usec 5000\nburst_usec 0\n";
        assert_eq!([version1, version2, ""].map(throttled_us), [Some(5_000), Some(5_000), None]);
    }
}
