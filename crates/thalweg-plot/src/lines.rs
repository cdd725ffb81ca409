//! Plots of lines beside each other on a page, for whoever has lines to show.

use crate::axis::Axis;
use crate::error::DrawError;
use crate::page::{HPos, Heading, INK, Swatch, TEXT, page, sample, write};
use crate::panel::{Line, Panel};
use crate::quantity::number;

/// Of one plot.
const PANEL: (u32, u32) = (560, 340);
/// Below each plot, for the key.
const KEY: u32 = 30;
/// Between two entries of the key, beyond their texts, and about what a character of these takes.
const ENTRY: i32 = 44;
const CHARACTER: i32 = 7;

/// One plot: some lines, each with its name.
#[derive(Clone, Debug)]
pub struct LinePlot {
    /// Above it: what the vertical axis shows, with its unit.
    pub title: String,
    /// Below the horizontal axis.
    pub x_title: String,
    /// Name and points from left to right; the vertical axis begins at zero.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// A page of plots, as SVG.
pub fn side_by_side(title: &str, subtitle: &str, plots: &[LinePlot]) -> Result<String, DrawError> {
    let heading = Heading { title: title.to_owned(), subtitle: subtitle.to_owned() };
    page(&heading, (PANEL.0 * plots.len().max(1) as u32, PANEL.1 + KEY), |body| {
        let mut rest = body.clone();
        for plot in plots {
            let (area, next) = rest.split_horizontally(PANEL.0);
            let (chart, key) = area.split_vertically(PANEL.1);
            plot.panel().draw(&chart)?;
            let mut x = 64;
            for (line, (name, _)) in plot.lines.iter().enumerate() {
                sample(&key, (x, 12), line, Swatch::Line)?;
                write(&key, (x + 28, 12), name, TEXT, INK, HPos::Left)?;
                x += ENTRY + CHARACTER * name.chars().count() as i32;
            }
            rest = next;
        }
        Ok(())
    })
}

impl LinePlot {
    fn panel(&self) -> Panel {
        let points = || self.lines.iter().flat_map(|line| line.1.iter());
        let low = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let high = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
        let highest = points().map(|point| point.1).fold(0.0, f64::max);
        // An axis needs some length even where there is nothing to show.
        let (low, high) = if low < high { (low, high) } else { (0.0, 1.0) };
        Panel {
            title: self.title.clone(),
            x_title: self.x_title.clone(),
            x: Axis::linear(low, high, 8, number),
            y: Axis::close_above(highest, 5, number),
            lines: (0..)
                .zip(&self.lines)
                .map(|(style, line)| Line { style, points: line.1.clone(), bars: Vec::new() })
                .collect(),
            is_marked: false,
            is_joined: true,
        }
    }
}
