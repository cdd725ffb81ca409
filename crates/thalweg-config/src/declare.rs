//! Macros that declare each section once. A declaration generates a type with one field per key, and the table that
//! drives parsing, validation, printing, reference pages, flags, sweeps and JSON Schema.

use super::{Entry, Group, Section};

/// A group of keys as a type with one field per key. Implemented by [`keys!`](crate::keys).
pub trait Keys: Sized {
    /// The table of the keys.
    const GROUP: &'static Group;

    /// Reads the keys from a valid section.
    fn read(entry: &Entry) -> Self;
}

/// A section as a type. Implemented by [`section!`](macro@crate::section).
pub trait Declared: Sized {
    /// Returns the table of the section.
    fn section() -> &'static Section;

    /// Reads the section, which must be valid.
    fn read(entry: &Entry) -> Self;
}

/// Declares keys: a type with one field per key, and their table.
///
/// ```
/// use thalweg_config::kind::{Text, Time, Whole};
/// use thalweg_wire::Nanos;
///
/// thalweg_config::keys! {
///     /// Timeouts and retries.
///     pub struct Retries {
///         /// Time to wait for a reply.
///         timeout: Nanos [Time] default "3ms",
///         /// Number of attempts.
///         tries: u32 [Whole(1, 10)] default "3",
///         /// Recipient of alerts.
///         alert: String [Text("a name")] or "no alerts",
///         /// Name of the peer.
///         peer: String [Text("a name")] needed,
///     }
/// }
/// ```
///
/// A key has a type, a [kind](crate::kind) in brackets that parses it, and a default: `default` and a value, `or` and a
/// description (the field is then an `Option`), or none (`needed`). Its doc comment appears in help and in the
/// reference. `with` adds a [flag](crate::section::flag). Each key's name is also a constant, for messages.
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
                #[doc = concat!("The name of the key `", stringify!($key), "`.")]
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
                        fn accepts(literal: &$crate::Literal) -> bool {
                            let value: Option<$type> = $crate::kind::Reads::read(&$kind, literal);
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

/// Declares a section: its type and its table.
///
/// ```
/// # use thalweg_config::kind::{Number, Time, Whole};
/// # use thalweg_wire::Nanos;
/// thalweg_config::section! {
///     /// Retries of the daemon.
///     pub struct Retries in RETRIES = "retries" {
///         /// Time to wait for a reply.
///         timeout: Nanos [Time] default "3ms",
///     }
/// }
///
/// thalweg_config::keys! {
///     /// Options of random early detection.
///     pub struct Random {
///         /// Probability that a packet is dropped.
///         probability: f64 [Number(0.0, 1.0)] default "0.1",
///     }
/// }
///
/// thalweg_config::section! {
///     /// A queue. The section may repeat.
///     pub enum Queue in QUEUE = ["queue"] {
///         /// Queue management scheme.
///         select scheme [|name| if name == "red" { "random early detection" } else { "drops packets when full" }]
///             default "droptail",
///         groups { Random }
///         DropTail = "droptail" (),
///         Red = "red" (Random),
///     }
/// }
/// ```
///
/// A `struct` is a section of keys. An `enum` is a section with a selector: each variant lists the groups of keys of
/// one choice. Brackets around the heading allow the section to repeat; `max` limits how often.
#[macro_export]
macro_rules! section {
    (
        $(#[doc = $about:literal])+
        $vis:vis struct $name:ident in $static:ident = $heading:tt $(max $max:literal)? $(lists [$($list:expr),*])? {
            $($body:tt)*
        }
    ) => {
        $crate::keys! {
            $(#[doc = $about])+
            $vis struct $name { $($body)* }
        }

        #[doc = concat!("The table of [`", stringify!($name), "`].")]
        $vis static $static: $crate::Section = $crate::Section {
            name: $crate::__heading!($heading),
            about: &[ $($about),+ ],
            repeats: $crate::__repeats!($heading),
            max_count: $crate::__max_count!($($max)?),
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
            #[doc = concat!("The name of the key `", stringify!($key), "`.")]
            $vis const $key: &'static str = stringify!($key);
        }

        #[doc = concat!("The table of [`", stringify!($name), "`].")]
        $vis static $static: $crate::Section = $crate::Section {
            name: $crate::__heading!($heading),
            about: &[ $($about),+ ],
            repeats: $crate::__repeats!($heading),
            max_count: $crate::__max_count!(),
            selector: Some(&$crate::Selector {
                key: $crate::Key {
                    group: "",
                    name: stringify!($key),
                    kind: &$crate::kind::Named { names: &[ $($choice),+ ], summary: $summary },
                    accepts: |literal| [ $($choice),+ ].contains(&&*literal.text()),
                    default: $crate::__default!($how $($value)?),
                    meaning: &[ $($meaning),+ ],
                    extra: $crate::section::NO_EXTRA,
                },
                groups: &[ $( ($choice, &[ $(stringify!($of)),* ]) ),+ ],
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
                    other => unreachable!("{other} was validated when it was parsed"),
                }
            }
        }
    };
}

/// Declares an enum of named choices. The doc comment of a variant is its summary.
///
/// ```
/// thalweg_config::choices! {
///     /// Severity of a log line.
///     pub enum Level {
///         /// failures
///         Error = "error",
///         /// starts and stops
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
            /// Returns the name that configuration files use.
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
        $value.expect("a required key or one with a default has a value")
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __default {
    (default $value:literal) => {
        $crate::Default::Value($value)
    };
    (or $description:literal) => {
        $crate::Default::Description($description)
    };
    (needed) => {
        $crate::Default::Required
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __extra {
    () => {
        $crate::section::NO_EXTRA
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
macro_rules! __max_count {
    () => {
        1_000
    };
    ($max:literal) => {
        $max
    };
}
