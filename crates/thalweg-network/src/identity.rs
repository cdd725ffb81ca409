//! Names of what a network consists of: small numbers, each of its own type.

use std::fmt;

macro_rules! identities {
    ($($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal;)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// As an index into a list of such things.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&format!(concat!($prefix, "{}"), self.0))
            }
        }
    )+ };
}

identities! {
    /// A host: a place where packets begin and end. Counted from 0 over the whole network.
    EndpointId(u16), "h";
    /// A router (a switch). Counted from 0 over the whole network.
    RouterId(u16), "r";
    /// A port of one router, counted from 0.
    PortIndex(u16), "p";
    /// A link: two directions of equal rate and delay. Counted from 0 over the whole network.
    LinkId(u32), "l";
}
