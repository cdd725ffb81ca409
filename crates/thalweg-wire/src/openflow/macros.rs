//! Macros that declare a structure together with its reading, writing and (in tests) random generation.

/// A structure of consecutive fields in wire order. `[pad N]` after a field means N bytes of
/// padding. A `sized struct` begins with its own 16-bit length, which is not a field. A list or data field
/// takes all remaining bytes.
macro_rules! layout {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty $([pad $pad:literal])?,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)+ }

        impl $crate::openflow::codec::Wire for $name {
            fn read(
                from: &mut $crate::openflow::codec::Reader<'_>,
            ) -> Result<$name, $crate::openflow::DecodeError> {
                from.enter(stringify!($name));
                $(
                    let $field: $type = $crate::openflow::codec::Wire::read(from)?;
                    $(from.skip($pad)?;)?
                )+
                Ok($name { $($field,)+ })
            }

            fn write(&self, to: &mut $crate::openflow::codec::Writer<'_>) {
                $(
                    $crate::openflow::codec::Wire::write(&self.$field, to);
                    $(to.zeros($pad);)?
                )+
            }
        }

        #[cfg(test)]
        impl $crate::openflow::tests::Sample for $name {
            fn sample(draw: &mut $crate::openflow::tests::Draw) -> $name {
                $name { $($field: $crate::openflow::tests::Sample::sample(draw),)+ }
            }
        }
    };
    ($(#[$meta:meta])* pub sized struct $name:ident {
        $($(#[$field_meta:meta])* $field:ident: $type:ty $([pad $pad:literal])?,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$field_meta])* pub $field: $type,)+ }

        impl $crate::openflow::codec::Wire for $name {
            fn read(
                from: &mut $crate::openflow::codec::Reader<'_>,
            ) -> Result<$name, $crate::openflow::DecodeError> {
                let mut part = from.sized(stringify!($name))?;
                $(
                    let $field: $type = $crate::openflow::codec::Wire::read(&mut part)?;
                    $(part.skip($pad)?;)?
                )+
                part.finish()?;
                Ok($name { $($field,)+ })
            }

            fn write(&self, to: &mut $crate::openflow::codec::Writer<'_>) {
                let start = to.position();
                to.zeros(size_of::<u16>());
                $(
                    $crate::openflow::codec::Wire::write(&self.$field, to);
                    $(to.zeros($pad);)?
                )+
                to.set_length(stringify!($name), start, start);
            }
        }

        impl $crate::openflow::codec::Listed for $name {}

        #[cfg(test)]
        impl $crate::openflow::tests::Sample for $name {
            fn sample(draw: &mut $crate::openflow::tests::Draw) -> $name {
                $name { $($field: $crate::openflow::tests::Sample::sample(draw),)+ }
            }
        }
    };
}

/// An enum whose variants have a number, which is encoded elsewhere. Unknown numbers are kept as `Other`.
macro_rules! tagged {
    ($(#[$meta:meta])* pub enum $name:ident($number_type:ty) {
        $($(#[$variant_meta:meta])* $number:literal $variant:ident $(($binding:ident: $type:ty))?,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_meta])* $variant $(($type))?,)+
            /// Any other kind, as received. If `kind` is that of another variant, it decodes as that variant.
            Other {
                /// The number of the kind.
                kind: $number_type,
                /// The bytes of the body.
                body: Vec<u8>,
            },
        }

        impl $name {
            /// Returns the number of the kind.
            pub fn kind(&self) -> $number_type {
                match self {
                    $($name::$variant { .. } => $number,)+
                    $name::Other { kind, .. } => *kind,
                }
            }

            /// Returns the name of the variant.
            pub fn name(&self) -> &'static str {
                match self {
                    $($name::$variant { .. } => stringify!($variant),)+
                    $name::Other { .. } => "Other",
                }
            }

            fn read_body(
                kind: $number_type,
                from: &mut $crate::openflow::codec::Reader<'_>,
            ) -> Result<$name, $crate::openflow::DecodeError> {
                Ok(match kind {
                    $($number => {
                        from.enter(stringify!($variant));
                        $name::$variant $((<$type as $crate::openflow::codec::Wire>::read(from)?))?
                    })+
                    kind => $name::Other { kind, body: from.rest().to_vec() },
                })
            }

            fn write_body(&self, to: &mut $crate::openflow::codec::Writer<'_>) {
                match self {
                    $($name::$variant $(($binding))? => {
                        $($crate::openflow::codec::Wire::write($binding, to);)?
                    })+
                    $name::Other { body, .. } => to.bytes(body),
                }
            }
        }

        #[cfg(test)]
        impl $crate::openflow::tests::Sample for $name {
            fn sample(draw: &mut $crate::openflow::tests::Draw) -> $name {
                let makers: &[fn(&mut $crate::openflow::tests::Draw) -> $name] = &[
                    $(|_draw| $name::$variant $((<$type as $crate::openflow::tests::Sample>::sample(_draw)))?,)+
                    |draw| $name::Other { kind: draw.unknown_kind().into(), body: draw.unknown_body() },
                ];
                draw.one_of(makers)(draw)
            }
        }
    };
}

/// A newtype of a number with named values. A value is displayed by its name, or as the number.
macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident($inner:ty) {
        $($(#[$constant_meta:meta])* $constant:ident = $value:literal, $text:literal;)*
    })+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            $($(#[$constant_meta])* pub const $constant: $name = $name($value);)*
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.0 {
                    $($value => f.pad($text),)*
                    number => f.pad(&number.to_string()),
                }
            }
        }

        impl $crate::openflow::codec::Wire for $name {
            fn read(
                from: &mut $crate::openflow::codec::Reader<'_>,
            ) -> Result<$name, $crate::openflow::DecodeError> {
                <$inner as $crate::openflow::codec::Wire>::read(from).map($name)
            }

            fn write(&self, to: &mut $crate::openflow::codec::Writer<'_>) {
                $crate::openflow::codec::Wire::write(&self.0, to);
            }
        }

        #[cfg(test)]
        impl $crate::openflow::tests::Sample for $name {
            fn sample(draw: &mut $crate::openflow::tests::Draw) -> $name {
                $name($crate::openflow::tests::Sample::sample(draw))
            }
        }
    )+ };
}

/// A newtype of a number with named bits.
macro_rules! flags {
    ($($(#[$meta:meta])* $name:ident($inner:ty) {
        $($(#[$constant_meta:meta])* $constant:ident = $bit:literal;)+
    })+) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl $name {
            $($(#[$constant_meta])* pub const $constant: $name = $name(1 << $bit);)+

            /// Returns whether all bits of `other` are set.
            pub const fn contains(self, other: $name) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl std::ops::BitOr for $name {
            type Output = $name;

            fn bitor(self, other: $name) -> $name {
                $name(self.0 | other.0)
            }
        }

        impl $crate::openflow::codec::Wire for $name {
            fn read(
                from: &mut $crate::openflow::codec::Reader<'_>,
            ) -> Result<$name, $crate::openflow::DecodeError> {
                <$inner as $crate::openflow::codec::Wire>::read(from).map($name)
            }

            fn write(&self, to: &mut $crate::openflow::codec::Writer<'_>) {
                $crate::openflow::codec::Wire::write(&self.0, to);
            }
        }

        #[cfg(test)]
        impl $crate::openflow::tests::Sample for $name {
            fn sample(draw: &mut $crate::openflow::tests::Draw) -> $name {
                $name($crate::openflow::tests::Sample::sample(draw))
            }
        }
    )+ };
}
