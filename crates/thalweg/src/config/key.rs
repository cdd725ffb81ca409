//! The table of everything that can be set. It drives the reading of configuration files, the merging of files
//! with flags, the printed default file and the reference.

use std::fmt;

use clap::builder::PossibleValue;
use clap::{Arg, Args, Command};

use super::settings::Settings;
use super::value::{Complaint, Form, Value};

/// A part of the configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// As the file has it between brackets.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
}

/// One thing that can be set: a key of the configuration file and a flag.
pub struct Key {
    /// Where it stands in the file.
    pub section: &'static Section,
    /// Its name in the file; the flag is the same with hyphens, or its opposite. No two sections share a name.
    pub name: &'static str,
    /// What holds when nothing is set and there is no default value.
    unset: &'static str,
    /// What it means, where the flag says the opposite.
    meaning: Option<&'static str>,
    /// A value for examples where there is no default; without quotes.
    pub sample: &'static str,
    field: &'static (dyn Field + Sync),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.section.name, self.name)
    }
}

const OUTPUT: Section = Section { name: "output", about: "What is shown." };
const INPUT: Section =
    Section { name: "input", about: "Which packets are measured, and by how many threads." };
const DETECTION: Section =
    Section { name: "detection", about: "What makes a flow a cheetah, and how cheetahs are found." };
const TASKS: Section =
    Section { name: "tasks", about: "What sketches measure, window by window, in a fixed memory." };
const EXPORT: Section = Section { name: "export", about: "Where flows go as they end." };
const FLOW_TABLE: Section =
    Section { name: "flow_table", about: "How many flows are kept, and for how long." };
const LIVE: Section = Section { name: "live", about: "Capture from interfaces." };

/// The sections, in the order of the printed file.
pub static SECTIONS: [&Section; 7] = [&OUTPUT, &INPUT, &TASKS, &EXPORT, &DETECTION, &FLOW_TABLE, &LIVE];

/// Everything that can be set, by section.
#[rustfmt::skip]
pub static KEYS: [Key; 36] = [
    key(&OUTPUT, "show", &At(|s| &mut s.output.show)),
    key(&OUTPUT, "flows", &At(|s| &mut s.output.flows)),
    key(&OUTPUT, "top", &At(|s| &mut s.output.top)),
    key(&INPUT, "filter", &At(|s| &mut s.input.filter)).unset("every packet is measured", "tcp port 443"),
    key(&INPUT, "peel_tunnels", &At(|s| &mut s.input.peel_tunnels)),
    key(&INPUT, "workers", &At(|s| &mut s.input.workers)).unset("1 for files, one a core for interfaces", "4"),
    key(&INPUT, "duration", &At(|s| &mut s.input.duration)).unset("until the input ends", "10s"),
    key(&INPUT, "seed", &At(|s| &mut s.input.seed)).unset("another each run", "1"),
    key(&TASKS, "tasks", &At(|s| &mut s.tasks.tasks)).unset("none", "heavy:0.1%,entropy:src,distinct"),
    key(&TASKS, "memory", &At(|s| &mut s.tasks.memory)),
    key(&TASKS, "window", &At(|s| &mut s.tasks.window)),
    key(&TASKS, "keep_windows", &At(|s| &mut s.tasks.keep_windows)),
    key(&TASKS, "sampling", &At(|s| &mut s.tasks.sampling)),
    key(&TASKS, "table", &At(|s| &mut s.tasks.table)).meaning_is(
        "Whether to keep the exact flow table, and look for cheetahs, beside the tasks.\n\n\
         Without it memory stays at the bound of the sketches, whatever the traffic."),
    key(&TASKS, "save_states", &At(|s| &mut s.tasks.save_states)).unset("no states are saved", "states"),
    key(&EXPORT, "ipfix", &At(|s| &mut s.export.ipfix)).unset("no flows are sent", "udp://10.0.0.1:4739"),
    key(&EXPORT, "ipfix_times", &At(|s| &mut s.export.ipfix_times)),
    key(&EXPORT, "ipfix_authority", &At(|s| &mut s.export.ipfix_authority)).unset("none, so tls:// is refused", "collector-ca.pem"),
    key(&EXPORT, "records", &At(|s| &mut s.export.records)).unset("no flows are kept", "records"),
    key(&DETECTION, "flight_duration", &At(|s| &mut s.detection.flight_duration)),
    key(&DETECTION, "rate_threshold", &At(|s| &mut s.detection.rate_threshold)),
    key(&DETECTION, "detector", &At(|s| &mut s.detection.detector)),
    key(&DETECTION, "tracks", &At(|s| &mut s.detection.tracks)),
    key(&DETECTION, "packet_length_threshold", &At(|s| &mut s.detection.packet_length_threshold)),
    key(&DETECTION, "sampling_probability", &At(|s| &mut s.detection.sampling_probability)),
    key(&DETECTION, "flow_cache_entries", &At(|s| &mut s.detection.flow_cache_entries)),
    key(&DETECTION, "protocol_filter", &At(|s| &mut s.detection.protocol_filter)),
    key(&FLOW_TABLE, "flow_capacity", &At(|s| &mut s.flow_table.flow_capacity)),
    key(&FLOW_TABLE, "idle_timeout", &At(|s| &mut s.flow_table.idle_timeout)),
    key(&FLOW_TABLE, "active_timeout", &At(|s| &mut s.flow_table.active_timeout)),
    key(&FLOW_TABLE, "linger", &At(|s| &mut s.flow_table.linger)),
    key(&LIVE, "backend", &At(|s| &mut s.live.backend)),
    key(&LIVE, "snap_length", &At(|s| &mut s.live.snap_length)),
    key(&LIVE, "ring_size", &At(|s| &mut s.live.ring_size)),
    key(&LIVE, "block_timeout", &At(|s| &mut s.live.block_timeout)),
    key(&LIVE, "promiscuous", &At(|s| &mut s.live.promiscuous)).meaning_is(
        "Whether to take packets that are addressed to other hosts.\n\n\
         On by default: a mirror port brings nothing else."),
];

const fn key(section: &'static Section, name: &'static str, field: &'static (dyn Field + Sync)) -> Key {
    Key { section, name, unset: "", meaning: None, sample: "", field }
}

impl Key {
    const fn unset(self, unset: &'static str, sample: &'static str) -> Key {
        Key { unset, sample, ..self }
    }

    /// The meaning of a key whose flag says the opposite.
    const fn meaning_is(self, meaning: &'static str) -> Key {
        Key { meaning: Some(meaning), ..self }
    }

    /// The flag that sets the same.
    pub fn flag(&self) -> String {
        let argument = self.argument();
        format!("--{}", argument.get_long().unwrap_or(self.name))
    }

    /// What TOML writes it as.
    pub fn form(&self) -> Form {
        self.field.form()
    }

    /// What is expected, to be read after "expected".
    pub fn expected(&self) -> String {
        self.field.expected()
    }

    /// What is wrong with text that [`Key::set`] refuses.
    pub fn complaint(&self, text: &str) -> Complaint {
        self.field.complaint(text)
    }

    /// Sets it from text as [`Value::read`] has it; `false` if that is not as expected.
    pub fn set(&self, settings: &mut Settings, text: &str) -> bool {
        self.field.set(settings, text)
    }

    /// What it is set to, written as [`Value::write`] does.
    pub fn get(&self, settings: &Settings) -> Option<String> {
        // Fields are reached by one function each, which borrows to write.
        self.field.get(&mut settings.clone())
    }

    /// The default in words: the value, or what holds without one.
    pub fn default_in_words(&self) -> String {
        self.get(&Settings::defaults()).unwrap_or_else(|| self.unset.to_owned())
    }

    /// What it means, and why the default is what it is; in paragraphs.
    pub fn meaning(&self) -> String {
        if let Some(meaning) = self.meaning {
            return meaning.to_owned();
        }
        let flag = self.argument();
        let text = flag.get_long_help().or(flag.get_help()).map(ToString::to_string).unwrap_or_default();
        // clap takes the full stop off a text of one sentence.
        if text.ends_with('.') { text } else { text + "." }
    }

    /// The names to choose from, each with its meaning; none if it is no choice.
    pub fn choices(&self) -> Vec<(String, String)> {
        let described =
            |choice: PossibleValue| Some((choice.get_name().to_owned(), choice.get_help()?.to_string()));
        self.argument().get_possible_values().into_iter().filter_map(described).collect()
    }

    fn argument(&self) -> Arg {
        let flags = Settings::augment_args(Command::new("settings"));
        let flag = flags.get_arguments().find(|flag| flag.get_id() == self.name);
        flag.expect("every key is a flag (tested below)").clone()
    }
}

/// What is set by `first`, and by `second` where `first` is silent.
pub fn merge(first: &Settings, second: &Settings) -> Settings {
    let (mut merged, mut second) = (first.clone(), second.clone());
    for key in &KEYS {
        key.field.fill(&mut merged, &mut second);
    }
    merged
}

/// A field of [`Settings`], whatever its type.
trait Field {
    fn form(&self) -> Form;
    fn expected(&self) -> String;
    fn complaint(&self, text: &str) -> Complaint;
    fn set(&self, settings: &mut Settings, text: &str) -> bool;
    fn get(&self, settings: &mut Settings) -> Option<String>;
    /// Takes from `other` what `settings` does not have.
    fn fill(&self, settings: &mut Settings, other: &mut Settings);
}

/// Where a field is.
struct At<T>(fn(&mut Settings) -> &mut Option<T>);

impl<T: Value> Field for At<T> {
    fn form(&self) -> Form {
        T::FORM
    }

    fn expected(&self) -> String {
        T::expected()
    }

    fn complaint(&self, text: &str) -> Complaint {
        T::complaint(text)
    }

    fn set(&self, settings: &mut Settings, text: &str) -> bool {
        let value = T::read(text);
        let is_read = value.is_some();
        *self.0(settings) = value;
        is_read
    }

    fn get(&self, settings: &mut Settings) -> Option<String> {
        self.0(settings).as_ref().map(T::write)
    }

    fn fill(&self, settings: &mut Settings, other: &mut Settings) {
        let field = self.0(settings);
        if field.is_none() {
            *field = self.0(other).take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_a_key_and_every_key_a_flag_in_the_same_order() {
        let flags = Settings::augment_args(Command::new("settings"));
        let flags: Vec<String> =
            flags.get_arguments().filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect();
        let keys: Vec<String> = KEYS.iter().map(Key::flag).collect();
        assert_eq!(flags, keys);
    }

    #[test]
    fn keys_stand_by_section_and_have_a_meaning_and_a_default() {
        let sections: Vec<_> = KEYS.iter().map(|key| key.section).collect();
        assert!(sections.chunk_by(|a, b| a == b).map(|chunk| chunk[0]).eq(SECTIONS));
        for key in &KEYS {
            assert!(key.meaning().len() > 10, "{key:?}");
            assert_ne!(key.default_in_words(), "", "{key:?}");
        }
    }

    #[test]
    fn each_key_reaches_a_field_of_its_own() {
        let defaults = Settings::defaults();
        for key in &KEYS {
            let mut settings = Settings::default();
            let text = key.get(&defaults).unwrap_or_else(|| key.sample.to_owned());
            assert!(key.set(&mut settings, &text), "{key:?}");
            let set: Vec<&Key> = KEYS.iter().filter(|key| key.get(&settings).is_some()).collect();
            assert_eq!(set.len(), 1, "{set:?}");
            assert_eq!(set[0].name, key.name);
        }
    }
}
