//! Figures in one style, as SVG.
//!
//! | module | what it has |
//! |---|---|
//! | [`page`] | a page: heading, colours, texts |
//! | [`figure`] | a page of plots that share a legend |
//! | [`axis`] | which values an axis shows, its ticks and their labels |
//! | [`panel`] | one plot of lines, with intervals where there are any |
//! | [`bars`], [`boxes`], [`points`] | bars for names or numbers, box plots, points with names |
//! | [`lines`] | plots of lines beside each other, each with its own key |
//! | [`strips`] | the same quantity at several places over time, one strip above the other |
//! | [`legend_table`] | a legend that is a table |
//! | [`quantity`] | numbers, times and sizes as text |
//!
//! Equal input gives equal bytes. Colours can be told apart without colour vision. Lines are thinned to columns of pixels and
//! keep their extremes, so a file stays small however many points it shows.
//!
//! ```
//! use thalweg_plot::axis::Scale;
//! use thalweg_plot::figure::{self, Legend};
//! use thalweg_plot::page::Heading;
//! use thalweg_plot::panel::Panel;
//!
//! let heading = Heading { title: "Queues".to_owned(), subtitle: "one run for each load".to_owned() };
//! let curves = vec![vec![(0.2, 1.0), (0.8, 9.0)], vec![(0.2, 1.0), (0.8, 4.0)]];
//! let panel = Panel::curves("Mean queue (packets)", "load", Scale::LINEAR, curves);
//! let svg = figure::draw(&heading, &Legend::of(&["droptail", "red"]), (480, 350), &[panel])?;
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), thalweg_plot::DrawError>(())
//! ```

#![forbid(unsafe_code)]

pub mod axis;
pub mod bars;
pub mod boxes;
mod error;
pub mod figure;
mod frame;
pub mod legend_table;
pub mod lines;
pub mod page;
pub mod panel;
pub mod points;
pub mod quantity;
pub mod strips;
mod thin;

pub use error::DrawError;
