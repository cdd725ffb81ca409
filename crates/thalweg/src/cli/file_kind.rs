//! The kinds of files that the program reads, and which of them a file is.

use clap::ValueEnum;
use thalweg_config::{Format, Schema, top_level_names};
use thalweg_network::topology::file::sections;

use crate::config;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FileKind {
    /// Configuration of thalweg serve
    Daemon,
    /// Configuration of thalweg watch
    Watch,
    /// Experiment of thalweg emulate
    Experiment,
    /// Network topology
    Topology,
    /// Network topology with link state and forwarding state
    State,
}

impl FileKind {
    /// The order in which kinds are tried that fit equally well.
    pub(super) const TRIED: [FileKind; 5] =
        [FileKind::Daemon, FileKind::Experiment, FileKind::Watch, FileKind::Topology, FileKind::State];

    /// What files of it may say.
    pub(super) fn schema(self) -> &'static Schema {
        match self {
            FileKind::Daemon => &thalweg_daemon::config::table::SCHEMA,
            FileKind::Watch => &config::settings::SCHEMA,
            FileKind::Experiment => &thalweg_experiment::experiment::SCHEMA,
            FileKind::Topology => &sections::TOPOLOGY,
            FileKind::State => &sections::STATE,
        }
    }

    /// As messages call it.
    pub(super) const fn title(self) -> &'static str {
        match self {
            FileKind::Daemon => "configuration of thalweg serve",
            FileKind::Watch => "configuration of thalweg watch",
            FileKind::Experiment => "experiment of thalweg emulate",
            FileKind::Topology => "topology of a network",
            FileKind::State => "topology and state of a network",
        }
    }

    /// The kind of a file that has these names above all others, if it is one.
    pub(super) fn of(text: &str, format: Format) -> Option<FileKind> {
        let names = top_level_names(text, format);
        let fits = |kind: FileKind| names.iter().filter(|name| kind.has(name)).count();
        let mut best = None;
        for kind in FileKind::TRIED {
            if kind.may_be(format) && fits(kind) > best.map_or(0, |(_, most)| most) {
                best = Some((kind, fits(kind)));
            }
        }
        best.map(|(kind, _)| kind)
    }

    fn may_be(self, format: Format) -> bool {
        format == Format::Toml || self.schema().may_be_json
    }

    /// Whether a name is that of a section, or of a key above all sections.
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
    fn a_kind_is_told_by_the_sections_of_a_file() {
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
