//! Processors, memory, disk and interface during an interval.

use std::collections::BTreeMap;

use procfs::{Current as _, CurrentSI as _, KernelStats, Meminfo};
use thalweg_api::HostSample;

use super::{SampleTime, interval, micros};

/// Bytes of a sector in `/proc/diskstats`, whatever the device has.
const SECTOR: u64 = 512;

/// Names of devices that are not disks.
const NO_DISKS: [&str; 4] = ["loop", "ram", "zram", "sr"];

/// Samples the load of this host.
#[derive(Debug)]
pub struct LoadSampler {
    /// The disk to report; `None` for the busiest.
    disk: Option<String>,
    interface: String,
    before: Option<Counters>,
}

/// Counters at one time.
#[derive(Clone, Debug, Default)]
struct Counters {
    time: SampleTime,
    /// Busy, waiting for a disk, stolen: microseconds of each processor.
    processors: Vec<[u64; 3]>,
    disks: BTreeMap<String, DiskCounters>,
    network: NetworkCounters,
}

#[derive(Clone, Copy, Debug, Default)]
struct DiskCounters {
    busy_us: u64,
    read_bytes: u64,
    write_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct NetworkCounters {
    in_bytes: u64,
    out_bytes: u64,
    in_drops: u64,
    out_drops: u64,
}

impl LoadSampler {
    /// Creates a sampler of this disk, or of the busiest at each time, and of this interface.
    pub fn new(disk: Option<String>, interface: String) -> LoadSampler {
        LoadSampler { disk, interface, before: None }
    }

    /// Returns the load since the previous call; `None` at the first.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn sample(&mut self, now: SampleTime) -> procfs::ProcResult<Option<HostSample>> {
        let counters = Counters::read(now, &self.interface)?;
        let memory = Meminfo::current()?;
        let Some(before) = self.before.replace(counters.clone()) else { return Ok(None) };
        let mut sample = counters.since(&before, self.disk.as_deref());
        sample.interface.clone_from(&self.interface);
        sample.memory_available_bytes = memory.mem_available.unwrap_or(memory.mem_free);
        sample.memory_dirty_bytes = memory.dirty + memory.writeback;
        Ok(Some(sample))
    }

    /// Forgets the previous counters, so that the next interval starts anew.
    pub fn pause(&mut self) {
        self.before = None;
    }
}

impl Counters {
    fn read(time: SampleTime, interface: &str) -> procfs::ProcResult<Counters> {
        let tick_us = 1_000_000 / procfs::ticks_per_second().max(1);
        let processors = KernelStats::current()?.cpu_time;
        let processors = processors.iter().map(|cpu| {
            let busy = cpu.user + cpu.nice + cpu.system + cpu.irq.unwrap_or(0) + cpu.softirq.unwrap_or(0);
            [busy, cpu.iowait.unwrap_or(0), cpu.steal.unwrap_or(0)].map(|ticks| ticks * tick_us)
        });
        let disks = procfs::diskstats()?.into_iter().map(|disk| {
            let counters = DiskCounters {
                busy_us: disk.time_in_progress * 1_000,
                read_bytes: disk.sectors_read * SECTOR,
                write_bytes: disk.sectors_written * SECTOR,
            };
            (disk.name, counters)
        });
        let network = procfs::net::dev_status()?.remove(interface).map(|of| NetworkCounters {
            in_bytes: of.recv_bytes,
            out_bytes: of.sent_bytes,
            in_drops: of.recv_drop,
            out_drops: of.sent_drop,
        });
        Ok(Counters {
            time,
            processors: processors.collect(),
            disks: disks.collect(),
            network: network.unwrap_or_default(),
        })
    }

    fn since(&self, before: &Counters, disk: Option<&str>) -> HostSample {
        let none = [0; 3];
        let changes = self.processors.iter().enumerate().map(|(number, now)| {
            let then = before.processors.get(number).unwrap_or(&none);
            [0, 1, 2].map(|of| now[of].saturating_sub(then[of]))
        });
        let changes: Vec<[u64; 3]> = changes.collect();
        let total = |of: usize| changes.iter().map(|change| change[of]).sum();
        let (disk, disk_change) = self.disk_since(before, disk);
        let (network, then) = (&self.network, &before.network);
        HostSample {
            time_us: micros(self.time.wall),
            interval_us: interval(self.time.micros_since(before.time)),
            cpus: self.processors.len() as u16,
            cpu_busy_us: total(0),
            cpu_busiest_us: changes.iter().map(|change| change[0]).max().unwrap_or(0),
            cpu_iowait_us: total(1),
            cpu_steal_us: total(2),
            disk,
            disk_busy_us: disk_change.busy_us,
            disk_read_bytes: disk_change.read_bytes,
            disk_write_bytes: disk_change.write_bytes,
            interface_in_bytes: network.in_bytes.saturating_sub(then.in_bytes),
            interface_out_bytes: network.out_bytes.saturating_sub(then.out_bytes),
            interface_in_drops: network.in_drops.saturating_sub(then.in_drops),
            interface_out_drops: network.out_drops.saturating_sub(then.out_drops),
            ..HostSample::default()
        }
    }

    /// Returns the change of a disk, or of the busiest.
    fn disk_since(&self, before: &Counters, wanted: Option<&str>) -> (String, DiskCounters) {
        let change = |(name, now): (&String, &DiskCounters)| {
            let then = before.disks.get(name)?;
            let change = DiskCounters {
                busy_us: now.busy_us.saturating_sub(then.busy_us),
                read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
                write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
            };
            Some((name.clone(), change))
        };
        match wanted {
            Some(wanted) => self.disks.get_key_value(wanted).and_then(change).unwrap_or_default(),
            None => {
                let is_disk = |name: &str| !NO_DISKS.iter().any(|start| name.starts_with(start));
                let disks = self.disks.iter().filter(|(name, _)| is_disk(name)).filter_map(change);
                disks.max_by_key(|(_, change)| change.busy_us).unwrap_or_default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use thalweg_wire::Timestamp;

    use super::*;

    fn time(monotonic_us: u64) -> SampleTime {
        // The wall clock is set back again and again.
        SampleTime {
            wall: Timestamp(9_000_000 - 1_000 * monotonic_us),
            monotonic: Timestamp(1_000 * monotonic_us),
        }
    }

    fn counters(busy: [u64; 2], disks: &[(&str, u64)]) -> Counters {
        let disk = |&(name, busy_us): &(&str, u64)| {
            (name.to_owned(), DiskCounters { busy_us, ..DiskCounters::default() })
        };
        Counters {
            time: time(busy[0]),
            processors: busy.map(|busy| [busy, 0, 0]).to_vec(),
            disks: disks.iter().map(disk).collect(),
            network: NetworkCounters { in_bytes: busy[1], ..NetworkCounters::default() },
        }
    }

    #[test]
    fn a_sample_has_the_differences_of_counters() {
        let before = counters([100, 500], &[("sda", 7), ("loop0", 0), ("vda", 1)]);
        let now = counters([400, 600], &[("sda", 9), ("loop0", 1_000), ("vda", 5), ("new", 99)]);
        let sample = now.since(&before, None);
        assert_eq!((sample.cpu_busy_us, sample.cpu_busiest_us, sample.cpus), (400, 300, 2));
        assert_eq!((sample.disk.as_str(), sample.disk_busy_us), ("vda", 4), "the busiest disk");
        assert_eq!((sample.interval_us, sample.interface_in_bytes), (300, 100));
        let sample = now.since(&before, Some("loop0"));
        assert_eq!((sample.disk.as_str(), sample.disk_busy_us), ("loop0", 1_000));
        let reset = before.since(&now, Some("gone"));
        assert_eq!((reset.cpu_busy_us, reset.interface_in_bytes, reset.disk.as_str()), (0, 0, ""));
    }

    #[test]
    fn this_host_has_a_load() {
        let mut sampler = LoadSampler::new(None, "lo".to_owned());
        assert_eq!(sampler.sample(time(1_000)).unwrap(), None);
        let sample = sampler.sample(time(2_000)).unwrap().unwrap();
        assert_eq!((sample.time_us, sample.interval_us), (7_000, 1_000));
        assert!(sample.cpus > 0 && sample.memory_available_bytes > 0);
        sampler.pause();
        assert_eq!(sampler.sample(time(3_000)).unwrap(), None);
    }
}
