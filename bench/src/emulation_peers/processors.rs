//! Processor time of the machine and of processes, from `/proc`.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Context;

use super::network::Processes;

/// Counters at a time, in ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processors {
    total: u64,
    busy: u64,
    stolen: u64,
    core: u64,
    endpoints: u64,
    count: f64,
}

/// Processor time between two readings, in processors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessorUse {
    /// All work of the machine.
    pub busy: f64,
    /// Taken by the hypervisor.
    pub stolen: f64,
    /// The processes of the network: the arbiter, or the simulator.
    pub core: f64,
    /// The processes of the hosts: endpoints.
    pub endpoints: f64,
}

impl ProcessorUse {
    /// Returns the processor time of so many seconds.
    pub fn times(self, seconds: f64) -> ProcessorUse {
        let ProcessorUse { busy, stolen, core, endpoints } = self;
        let [busy, stolen, core, endpoints] = [busy, stolen, core, endpoints].map(|part| part * seconds);
        ProcessorUse { busy, stolen, core, endpoints }
    }
}

impl Processors {
    /// Reads the counters.
    ///
    /// # Errors
    /// If `/proc` is not readable. A process that has ended counts as none.
    pub fn now(processes: &Processes) -> anyhow::Result<Processors> {
        let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        let machine = text.lines().next().and_then(machine_ticks).context("/proc/stat: no line `cpu`")?;
        let count = text.lines().filter(|line| line.starts_with("cpu")).count() - 1;
        let used = |pid: &u32| process_ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?);
        let core = processes.core.iter().filter_map(used).sum();
        let endpoints = processes.endpoints.iter().filter_map(used).sum();
        let [total, busy, stolen] = machine;
        Ok(Processors { total, busy, stolen, core, endpoints, count: count as f64 })
    }

    /// Returns the use since an earlier reading.
    pub fn since(&self, before: &Processors) -> ProcessorUse {
        let total = self.total.saturating_sub(before.total).max(1) as f64;
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / total * self.count;
        ProcessorUse {
            busy: share(self.busy, before.busy),
            stolen: share(self.stolen, before.stolen),
            core: share(self.core, before.core),
            endpoints: share(self.endpoints, before.endpoints),
        }
    }
}

/// Returns the idle share of the machine during a second, from 0 to 1.
///
/// # Errors
/// If `/proc` is not readable.
pub fn idle_share() -> anyhow::Result<f64> {
    let before = Processors::now(&Default::default())?;
    sleep(Duration::from_secs(1));
    let after = Processors::now(&Default::default())?;
    Ok(1.0 - after.since(&before).busy / after.count)
}

/// Returns all ticks, the busy ones and the stolen ones of a line of `/proc/stat`.
fn machine_ticks(line: &str) -> Option<[u64; 3]> {
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [user, nice, system, idle, wait, interrupts, soft, stolen, ..] = ticks[..] else { return None };
    let busy = user + nice + system + interrupts + soft;
    Some([busy + idle + wait + stolen, busy, stolen])
}

/// Returns the ticks of a process, of the user and the system, from `/proc/PID/stat`. The name may contain spaces and parentheses.
fn process_ticks(stat: &str) -> Option<u64> {
    let words: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(words.get(11)?.parse::<u64>().ok()? + words.get(12)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_is_all_but_idle_and_stolen_time() {
        assert_eq!(machine_ticks("cpu  10 1 20 100 5 2 3 4 0 0"), Some([145, 36, 4]));
        let reading =
            |total, busy| Processors { total, busy, stolen: 0, core: busy, endpoints: 0, count: 2.0 };
        // 5 s on two processors, of which a quarter is busy.
        let used = reading(1_100, 350).since(&reading(100, 100));
        assert_eq!((used.busy, used.core, used.endpoints), (0.5, 0.5, 0.0));
    }

    #[test]
    fn names_of_processes_may_have_parentheses() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 0 0 0 30 12 0 0 20 0 1 0 100 0 0";
        assert_eq!(process_ticks(stat), Some(42));
    }
}
