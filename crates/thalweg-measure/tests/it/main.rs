//! A collector's measurements as a whole.

mod accounting;
mod flood;
mod star;
