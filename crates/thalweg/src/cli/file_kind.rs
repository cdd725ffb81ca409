//! The kinds of input files, and their detection.

use std::path::Path;

use clap::ValueEnum;
use thalweg_config::{Format, Schema, top_level_names};
use thalweg_network::topology::file::sections;

use super::exit_code::UsageError;
use crate::config;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FileKind {
    /// Configuration of thalweg serve
    Daemon,
    /// Configuration of thalweg watch
    Watch,
    /// Configuration of thalweg transfers agent
    TransfersAgent,
    /// Experiment of thalweg emulate
    Experiment,
    /// Network topology
    Topology,
    /// Network topology with link state and forwarding state
    State,
}

impl FileKind {
    /// Order of preference if several kinds match equally well.
    pub(super) const DETECTION_ORDER: [FileKind; 6] = [
        FileKind::Daemon,
        FileKind::Experiment,
        FileKind::Watch,
        FileKind::TransfersAgent,
        FileKind::Topology,
        FileKind::State,
    ];

    /// Returns the schema of this kind of file.
    pub(super) fn schema(self) -> &'static Schema {
        match self {
            FileKind::Daemon => &thalweg_daemon::config::table::SCHEMA,
            FileKind::Watch => &config::settings::SCHEMA,
            FileKind::TransfersAgent => &thalweg_transfers::settings::SCHEMA,
            FileKind::Experiment => &thalweg_experiment::experiment::SCHEMA,
            FileKind::Topology => &sections::TOPOLOGY,
            FileKind::State => &sections::STATE,
        }
    }

    /// Returns the name for messages.
    pub(super) const fn title(self) -> &'static str {
        match self {
            FileKind::Daemon => "configuration of thalweg serve",
            FileKind::Watch => "configuration of thalweg watch",
            FileKind::TransfersAgent => "configuration of thalweg transfers agent",
            FileKind::Experiment => "experiment of thalweg emulate",
            FileKind::Topology => "network topology",
            FileKind::State => "network topology and state",
        }
    }

    /// Returns the value of `check --kind`.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Detects the kind of a file from its section and key names.
    pub(super) fn of(text: &str, format: Format) -> Option<FileKind> {
        let mut best = None;
        for kind in FileKind::DETECTION_ORDER {
            let count = kind.matches(text, format);
            if kind.supports(format) && count > best.map_or(0, |(_, max)| max) {
                best = Some((kind, count));
            }
        }
        best.map(|(kind, _)| kind)
    }

    /// Returns the number of top-level names in the file that this kind has.
    fn matches(self, text: &str, format: Format) -> usize {
        top_level_names(text, format).iter().filter(|name| self.has(name)).count()
    }

    /// Returns the error of a command that expects a file of this kind: that the file is of another kind, if it has more
    /// of that kind's sections, else `error`.
    pub(super) fn with_hint(self, error: anyhow::Error, path: &Path) -> anyhow::Error {
        let (text, format) = (thalweg_config::read_text(path).unwrap_or_default(), Format::of(path));
        match FileKind::of(&text, format) {
            Some(kind) if kind.matches(&text, format) > self.matches(&text, format) => {
                let (found, expected) = (kind.title(), self.title());
                UsageError(format!("{}: expected: {expected}; found: {found}", path.display())).into()
            }
            _ => error,
        }
    }

    fn supports(self, format: Format) -> bool {
        format == Format::Toml || self.schema().may_be_json
    }

    /// Whether a name is that of a section or a top-level key.
    fn has(self, name: &str) -> bool {
        let sections = self.schema().sections;
        sections.iter().any(|section| match section.name {
            "" => section.has(name),
            section => section == name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_named_as_such() {
        let path = std::env::temp_dir().join(format!("thalweg-file-kind-{}.toml", std::process::id()));
        std::fs::write(&path, "[[collector]]\nname = 'a'\n[network]\n").unwrap();
        let error = |kind: FileKind| kind.with_hint(anyhow::anyhow!("unknown section"), &path).to_string();
        let (as_watch, as_daemon) = (error(FileKind::Watch), error(FileKind::Daemon));
        std::fs::remove_file(&path).unwrap();
        let expected = "expected: configuration of thalweg watch; found: configuration of thalweg serve";
        assert_eq!(as_watch, format!("{}: {expected}", path.display()));
        assert_eq!(as_daemon, "unknown section");
    }

    #[test]
    fn the_sections_of_a_file_determine_its_kind() {
        for (text, kind) in [
            ("[[collector]]\nname = 'a'\n[network]\n", Some(FileKind::Daemon)),
            ("duration = '1s'\n[topology]\nshape = 'rack'\n", Some(FileKind::Experiment)),
            ("[output]\nlimit = 5\n", Some(FileKind::Watch)),
            ("[[router]]\nname = 'a'\n", Some(FileKind::Topology)),
            ("[[router]]\nname = 'a'\n[forwarding]\nkind = 'ecmp'\n", Some(FileKind::State)),
            ("[[collector]\nname = ", Some(FileKind::Daemon)),
            ("[nothing]\n", None),
            ("", None),
        ] {
            assert_eq!(FileKind::of(text, Format::Toml), kind, "{text}");
        }
        assert_eq!(FileKind::of("{\"router\": []}", Format::Json), Some(FileKind::Topology));
        assert_eq!(FileKind::of("{\"collector\": []}", Format::Json), None);
    }
}
