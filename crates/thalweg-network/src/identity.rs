//! Identifiers of endpoints, routers, ports and links: small integers, each with its own type.

use std::fmt;

macro_rules! identities {
    ($($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal;)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The identifier as an array index.
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
    /// An endpoint (a host). Numbered from 0 in the whole network.
    EndpointId(u16), "h";
    /// A router (a switch). Numbered from 0 in the whole network.
    RouterId(u16), "r";
    /// A port of a router, numbered from 0.
    PortIndex(u16), "p";
    /// A link, with the same rate and delay in both directions. Numbered from 0 in the whole network.
    LinkId(u32), "l";
}
