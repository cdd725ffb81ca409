//! Loops over bit-packed numbers, monomorphised by width so that the compiler unrolls them.

/// Calls `function::<WIDTH>(arguments)` with a width known at run time, at most 32 or at most 64 bits. Does nothing if
/// the width is 0.
///
/// # Panics
/// If the width is too large.
macro_rules! by_width {
    (@ $function:ident $known:literal ($($argument:expr),*)) => {
        $function::<$known>($($argument),*)
    };
    (of 32 $width:expr, $function:ident($($argument:expr),*)) => {
        by_width!(
            $width, $function($($argument),*),
            [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32]
        )
    };
    (of 64 $width:expr, $function:ident($($argument:expr),*)) => {
        by_width!(
            $width, $function($($argument),*),
            [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
             33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64]
        )
    };
    ($width:expr, $function:ident $arguments:tt, [$($known:literal)*]) => {
        match $width {
            0 => {}
            $($known => by_width!(@ $function $known $arguments),)*
            width => panic!("{width} bits"),
        }
    };
}

pub(crate) use by_width;
