//! The macros by which sections are declared, each once. A declaration gives the type of a section with a field a key, and
//! the table from which files are read, checked and printed, and from which references, flags, sweeps and JSON Schema come.

use super::{Entry, Group, Section};

/// Keys that are read together, as a type with a field for each. Implemented by [`keys!`](crate::keys).
pub trait Keys: Sized {
    /// The keys.
    const GROUP: &'static Group;

    /// Reads them from a section without mistakes.
    fn read(entry: &Entry) -> Self;
}

/// A section, as a type. Implemented by [`section!`](crate::section).
pub trait Declared: Sized {
    /// The section.
    fn section() -> &'static Section;

    /// Reads it, if it is without mistakes.
    fn read(entry: &Entry) -> Self;
}

/// Declares keys: a type with a field for each, and their table.
///
/// ```
/// use thalweg_config::kind::{Text, Time, Whole};
/// use thalweg_wire::Nanos;
///
/// thalweg_config::keys! {
///     /// How long to wait.
///     pub struct Waiting {
///         /// How long an answer may take.
///         timeout: Nanos [Time] default "3ms",
///         /// How often a question is repeated.
///         tries: u32 [Whole(1, 10)] default "3",
///         /// Whom to tell when there is no answer.
///         alarm: String [Text("a name")] or "nobody is told",
///         /// Whom to ask.
///         peer: String [Text("a name")] needed,
///     }
/// }
/// ```
///
/// A key has a type, in brackets a [kind](crate::kind) that reads it, and a default: a value, words that say what holds
/// without it (the field is an `Option` then), or none (`needed`). Its comment is its meaning, in messages as well as in the
/// reference. `with` adds a [flag](crate::section::flag). Constants of the keys' names are for messages about them.
#[macro_export]
macro_rules! keys {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $meaning:literal])+
                $key:ident : $type:ty [ $kind:expr ] $how:ident $($value:literal)? $(with $extra:expr)?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        #[allow(dead_code, rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags, rustdoc::bare_urls)]
        $vis struct $name {
            $( $(#[doc = $meaning])+ $vis $key: $crate::__field_type!($how $type), )*
        }

        #[allow(non_upper_case_globals, dead_code)]
        impl $name {
            $(
                #[doc = concat!("Name of the key `", stringify!($key), "`.")]
                $vis const $key: &'static str = stringify!($key);
            )*
        }

        impl $crate::Keys for $name {
            const GROUP: &'static $crate::Group = &$crate::Group {
                name: stringify!($name),
                keys: &[ $( $crate::Key {
                    group: stringify!($name),
                    name: stringify!($key),
                    kind: &$kind,
                    accepts: {
                        fn accepts(given: &$crate::Given) -> bool {
                            let value: Option<$type> = $crate::kind::Reads::read(&$kind, given);
                            value.is_some()
                        }
                        accepts
                    },
                    default: $crate::__default!($how $($value)?),
                    meaning: &[ $($meaning),+ ],
                    extra: $crate::__extra!($($extra)?),
                } ),* ],
            };

            #[allow(unused_variables)]
            fn read(entry: &$crate::Entry) -> Self {
                $( let $key: Option<$type> =
                    entry.read(<Self as $crate::Keys>::GROUP.key(stringify!($key)), &$kind); )*
                $name { $( $key: $crate::__field!($how $key), )* }
            }
        }
    };
}

/// Declares a section: a type of its own, and its table.
///
/// ```
/// # use thalweg_config::kind::{Number, Time, Whole};
/// # use thalweg_wire::Nanos;
/// thalweg_config::section! {
///     /// How the daemon waits.
///     pub struct Waiting in WAITING = "waiting" {
///         /// How long an answer may take.
///         timeout: Nanos [Time] default "3ms",
///     }
/// }
///
/// thalweg_config::keys! {
///     /// Of queues that drop at random.
///     pub struct Random {
///         /// How likely a packet is dropped.
///         probability: f64 [Number(0.0, 1.0)] default "0.1",
///     }
/// }
///
/// thalweg_config::section! {
///     /// How queues are managed. There may be several.
///     pub enum Queue in QUEUE = ["queue"] {
///         /// By what.
///         select scheme [|name| if name == "red" { "drops at random" } else { "drops what finds no room" }]
///             default "droptail",
///         groups { Random }
///         DropTail = "droptail" (),
///         Red = "red" (Random),
///     }
/// }
/// ```
///
/// A `struct` is a section of keys. An `enum` is a section with a selector, whose other keys depend on what it selects: each
/// variant has the groups of keys of one choice. The heading stands in brackets if the section may be there several times.
#[macro_export]
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident in $static:ident = $heading:tt $(most $most:literal)? $(lists [$($list:expr),*])? {
            $($body:tt)*
        }
    ) => {
        $crate::keys! {
            $(#[doc = $about])+
            $vis struct $name { $($body)* }
        }

        #[doc = concat!("Table of [`", stringify!($name), "`].")]
        $vis static $static: $crate::Section = $crate::Section {
            name: $crate::__heading!($heading),
            about: &[ $($about),+ ],
            repeats: $crate::__repeats!($heading),
            most: $crate::__most!($($most)?),
            selector: None,
            groups: &[<$name as $crate::Keys>::GROUP],
            lists: &[ $($(&$list),*)? ],
        };

        impl $crate::Declared for $name {
            fn section() -> &'static $crate::Section {
                &$static
            }

            fn read(entry: &$crate::Entry) -> Self {
                <$name as $crate::Keys>::read(entry)
            }
        }
    };
    (
        $(#[doc = $about:literal])+
        $vis:vis enum $name:ident in $static:ident = $heading:tt {
            $(#[doc = $meaning:literal])+
            select $key:ident [ $summary:expr ] $how:ident $($value:literal)?,
            groups { $($group:ident),* $(,)? }
            $( $variant:ident = $choice:literal ( $($of:ident),* ) ),+ $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq)]
        #[allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags, rustdoc::bare_urls)]
        $vis enum $name {
            $( #[doc = concat!("`", $choice, "`.")] $variant( $($of),* ), )+
        }

        #[allow(non_upper_case_globals, dead_code)]
        impl $name {
            #[doc = concat!("Name of the key `", stringify!($key), "`.")]
            $vis const $key: &'static str = stringify!($key);
        }

        #[doc = concat!("Table of [`", stringify!($name), "`].")]
        $vis static $static: $crate::Section = $crate::Section {
            name: $crate::__heading!($heading),
            about: &[ $($about),+ ],
            repeats: $crate::__repeats!($heading),
            most: $crate::__most!(),
            selector: Some(&$crate::Selector {
                key: $crate::Key {
                    group: "",
                    name: stringify!($key),
                    kind: &$crate::kind::Named { names: &[ $($choice),+ ], summary: $summary },
                    accepts: |given| [ $($choice),+ ].contains(&&*given.text()),
                    default: $crate::__default!($how $($value)?),
                    meaning: &[ $($meaning),+ ],
                    extra: $crate::section::PLAIN,
                },
                of: &[ $( ($choice, &[ $(stringify!($of)),* ]) ),+ ],
            }),
            groups: &[ $( <$group as $crate::Keys>::GROUP ),* ],
            lists: &[],
        };

        impl $crate::Declared for $name {
            fn section() -> &'static $crate::Section {
                &$static
            }

            fn read(entry: &$crate::Entry) -> Self {
                match entry.chosen() {
                    $( $choice => $name::$variant( $( <$of as $crate::Keys>::read(entry) ),* ), )+
                    other => unreachable!("{other} was checked when it was read"),
                }
            }
        }
    };
}

/// Declares names of which one is chosen: a type with a variant for each, whose comment is its summary.
///
/// ```
/// thalweg_config::choices! {
///     /// How important a line is.
///     pub enum Level {
///         /// what fails
///         Error = "error",
///         /// what begins and ends
///         Info = "info",
///     }
/// }
///
/// assert_eq!(Level::Info.name(), "info");
/// ```
#[macro_export]
macro_rules! choices {
    (
        $(#[doc = $about:literal])+
        $vis:vis enum $name:ident {
            $( $(#[doc = $summary:literal])+ $variant:ident = $text:literal ),+ $(,)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $( $(#[doc = $summary])+ $variant, )+
        }

        impl $crate::kind::Choices for $name {
            const ALL: &'static [(Self, &'static str, &'static [&'static str])] =
                &[ $( ($name::$variant, $text, &[ $($summary),+ ]) ),+ ];
        }

        #[allow(dead_code)]
        impl $name {
            /// As files have it.
            $vis const fn name(self) -> &'static str {
                match self {
                    $( $name::$variant => $text, )+
                }
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __field_type {
    (or $type:ty) => { Option<$type> };
    ($how:ident $type:ty) => { $type };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __field {
    (or $value:ident) => {
        $value
    };
    ($how:ident $value:ident) => {
        $value.expect("a key that is needed or has a default is there")
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __default {
    (default $value:literal) => {
        $crate::Default::Value($value)
    };
    (or $words:literal) => {
        $crate::Default::Words($words)
    };
    (needed) => {
        $crate::Default::Needed
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __extra {
    () => {
        $crate::section::PLAIN
    };
    ($extra:expr) => {
        $extra
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __heading {
    ([$name:literal]) => {
        $name
    };
    ($name:literal) => {
        $name
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __repeats {
    ([$name:literal]) => {
        true
    };
    ($name:literal) => {
        false
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __most {
    () => {
        1_000
    };
    ($most:literal) => {
        $most
    };
}
