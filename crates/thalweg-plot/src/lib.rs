//! Figures in one style, as SVG.
//!
//! | module | what it has |
//! |---|---|
//! | [`page`] | a page: heading, colours, texts |
//! | [`axis`] | which values an axis shows, its ticks and their labels |
//! | [`panel`] | one plot of lines, with intervals where there are any |
//! | [`lines`] | plots beside each other, each with its own key |
//! | [`strips`] | the same quantity at several places over time, one strip above the other |
//! | [`quantity`] | numbers, times and sizes as text |
//! | [`thin`] | fewer points that look the same |
//!
//! Equal input gives equal bytes. Colours can be told apart without colour vision. Lines are thinned to columns of pixels and
//! keep their extremes, so a file stays small however many points it shows.

#![forbid(unsafe_code)]

pub mod axis;
pub mod lines;
pub mod page;
pub mod panel;
pub mod quantity;
pub mod strips;
pub mod thin;
