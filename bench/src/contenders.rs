//! The flow meters that are compared: their commands, and how their flows are counted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::timed::is_installed;

/// Active and idle timeout in seconds for programs that accept them: Thalweg's defaults.
const TIMEOUTS_S: (u32, u32) = (1800, 15);
/// Maximum number of flows that softflowd tracks; more than any trace has.
const SOFTFLOWD_FLOWS: &str = "20000000";

/// A program that meters a capture file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contender {
    /// `thalweg watch`: both directions are one flow, timeouts on, default detector on.
    Thalweg(PathBuf),
    /// `nfpcapd` of nfdump: each direction is a flow, records written to a file.
    Nfpcapd,
    /// `softflowd`: both directions are one flow, records counted, not sent.
    Softflowd,
    /// [`crate::hash_map_meter`], in another process of this program.
    HashMap(PathBuf),
}

/// The counts of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets, if it reports them.
    pub packets: Option<u64>,
    /// Bidirectional flows, if it counts them.
    pub biflows: Option<u64>,
    /// Unidirectional flows, if it counts them.
    pub one_way: Option<u64>,
}

impl Contender {
    /// Returns all contenders: ours at `thalweg`, the hash map in `bench`, which is this program.
    pub fn all(thalweg: &Path, bench: &Path) -> Vec<Contender> {
        vec![
            Contender::Thalweg(thalweg.to_owned()),
            Contender::Nfpcapd,
            Contender::Softflowd,
            Contender::HashMap(bench.to_owned()),
        ]
    }

    /// Returns the name in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Contender::Thalweg(_) => "thalweg watch",
            Contender::Nfpcapd => "nfpcapd",
            Contender::Softflowd => "softflowd",
            Contender::HashMap(_) => "plain HashMap",
        }
    }

    /// Returns why it cannot run, or `None` if it can.
    pub fn missing_reason(&self) -> Option<String> {
        let missing = |program: &str, package| {
            (!is_installed(program)).then(|| format!("{program} is not installed (Debian package {package})"))
        };
        match self {
            Contender::Thalweg(path) | Contender::HashMap(path) => {
                (!path.is_file()).then(|| format!("{} does not exist", path.display()))
            }
            Contender::Nfpcapd => missing("nfpcapd", "nfdump").or_else(|| missing("nfdump", "nfdump")),
            Contender::Softflowd => missing("softflowd", "softflowd"),
        }
    }

    /// Returns the program and its arguments for `trace`; it writes to `scratch`.
    pub fn command(&self, trace: &Path, scratch: &Path) -> Vec<OsString> {
        let trace = trace.as_os_str();
        let (active, idle) = TIMEOUTS_S;
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let path = |name: &str| scratch.join(name).into_os_string();
        match self {
            Contender::Thalweg(program) => {
                [vec![program.into()], words(&["watch", "--summary"]), vec![trace.into()]].concat()
            }
            Contender::HashMap(program) => {
                [vec![program.into()], words(&["hash-map-meter"]), vec![trace.into()]].concat()
            }
            Contender::Nfpcapd => {
                let timeouts = format!("{active},{idle}");
                let reading = vec!["nfpcapd".into(), "-r".into(), trace.into()];
                [reading, words(&["-e", &timeouts, "-w"]), vec![path("flows")]].concat()
            }
            Contender::Softflowd => {
                let reading = vec!["softflowd".into(), "-r".into(), trace.into()];
                // With a control socket at an absolute path it waits for a connection before it reads.
                let without = words(&["-c", "none", "-d", "-6", "-m", SOFTFLOWD_FLOWS]);
                [reading, vec!["-p".into(), path("pid")], without].concat()
            }
        }
    }

    /// Returns the command for result pages, without local paths.
    pub fn shown_command(&self) -> String {
        let words = self.command(Path::new("TRACE"), Path::new("DIR"));
        let name = |word: &OsString| {
            let path = Path::new(word);
            let name = if path.is_absolute() { path.file_name() } else { None };
            name.unwrap_or(word).to_string_lossy().into_owned()
        };
        words.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    /// Prepares `scratch` for a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn prepare(&self, scratch: &Path) -> std::io::Result<()> {
        match self {
            Contender::Nfpcapd => std::fs::create_dir_all(scratch.join("flows")),
            _ => Ok(()),
        }
    }

    /// Returns its counts, from its output and its files in `scratch`.
    ///
    /// # Errors
    /// If its output lacks a count.
    pub fn counted(&self, printed: &str, scratch: &Path) -> anyhow::Result<Counted> {
        let number = |label: &str| {
            number_after(printed, label).with_context(|| format!("{} printed no `{label}`", self.name()))
        };
        match self {
            Contender::Thalweg(_) | Contender::HashMap(_) => {
                let (packets, biflows) = (Some(number("packets")?), Some(number("flows")?));
                Ok(Counted { packets, biflows, one_way: None })
            }
            Contender::Nfpcapd => {
                let (packets, one_way) = (Some(number("Packets:")?), Some(number("Flows:")?));
                Ok(Counted { packets, biflows: paired_by_nfdump(&scratch.join("flows")), one_way })
            }
            Contender::Softflowd => {
                let (packets, biflows) =
                    (Some(number("Packets processed:")?), Some(number("Flows expired:")?));
                Ok(Counted { packets, biflows, one_way: None })
            }
        }
    }
}

/// Returns the number of flows after nfdump has paired directions (`-B`), one per line.
fn paired_by_nfdump(flows: &Path) -> Option<u64> {
    let mut nfdump = Command::new("nfdump");
    let output = nfdump.arg("-R").arg(flows).args(["-q", "-B", "-o", "fmt:%pkt"]).output().ok()?;
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    output.status.success().then_some(lines as u64)
}

/// Returns the first number after `label` on a line, with or without commas.
fn number_after(printed: &str, label: &str) -> Option<u64> {
    let numbers = printed.lines().filter_map(|line| {
        let (_, rest) = line.split_once(label)?;
        let digits: String = rest
            .trim_start()
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == ',')
            .filter(|c| *c != ',')
            .collect();
        digits.parse().ok()
    });
    numbers.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_after_their_labels() {
        let printed = "Traffic\n  packets      1,000,000 (745 MB)\n  flows        39,473\n";
        assert_eq!(number_after(printed, "packets"), Some(1_000_000));
        assert_eq!(number_after(printed, "flows"), Some(39_473));
        assert_eq!(number_after("Ident: 'none' Flows: 92453, Packets: 987408", "Flows:"), Some(92_453));
        assert_eq!(number_after(printed, "Packets:"), None);
    }

    #[test]
    fn shown_command_has_no_local_paths() {
        let thalweg = Contender::Thalweg("/somewhere/release/thalweg".into());
        assert_eq!(thalweg.shown_command(), "thalweg watch --summary TRACE");
        assert_eq!(Contender::Nfpcapd.shown_command(), "nfpcapd -r TRACE -e 1800,15 -w DIR/flows");
    }
}
