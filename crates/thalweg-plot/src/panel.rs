//! One plot of lines over two axes.

use plotters::prelude::*;

use crate::axis::{Axis, Scale};
use crate::error::DrawError;
use crate::figure::Plot;
use crate::frame::{Chart, Frame, Grid, LEFT, RIGHT};
use crate::page::{Area, Swatch, mark, stroke, style};
use crate::quantity::number;
use crate::thin::thinned;

/// Columns of pixels that points are thinned to: about the width of the widest panel.
const COLUMNS: f64 = 1_000.0;

/// A line, or marks that stand for themselves.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Number of its colour.
    pub style: usize,
    /// From left to right; those that an axis cannot show are left out.
    pub points: Vec<(f64, f64)>,
    /// From and to, at some places: how far single runs lie apart.
    pub bars: Vec<(f64, f64, f64)>,
}

/// One plot.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it: what the vertical axis shows, with its unit.
    pub title: String,
    /// Below the horizontal axis.
    pub x_title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines, the last on top.
    pub lines: Vec<Line>,
    /// Whether each point has a dot: for few points.
    pub is_marked: bool,
    /// Whether points are joined: not if the places on the horizontal axis are names.
    pub is_joined: bool,
}

impl Panel {
    /// Lines over places that have names, each value with a dot. `lines` has a value at each place for each line; one that is
    /// not a number, or that the scale cannot show, is left out.
    pub fn over_names(
        title: impl Into<String>,
        x_title: &str,
        names: &[String],
        scale: Scale,
        lines: &[Vec<f64>],
    ) -> Panel {
        let points = |values: &Vec<f64>| (0..).map(f64::from).zip(values.iter().copied()).collect();
        let lines: Vec<Vec<(f64, f64)>> = lines.iter().map(points).collect();
        let y = scale.axis(lines.iter().flatten().map(|point| point.1));
        Panel { is_marked: true, ..Panel::joined(title.into(), x_title, Axis::places(names), y, lines) }
    }

    /// Lines over numbers, each value with a dot. `places` has the numbers and their labels. The horizontal axis is logarithmic if
    /// they spread by more than a factor of 20. `lines` has a value at each place for each line; invalid ones are omitted.
    pub fn over_numbers(
        title: impl Into<String>,
        x_title: &str,
        places: &[(f64, String)],
        scale: Scale,
        lines: &[Vec<f64>],
    ) -> Panel {
        let points =
            |values: &Vec<f64>| places.iter().map(|place| place.0).zip(values.iter().copied()).collect();
        let lines: Vec<Vec<(f64, f64)>> = lines.iter().map(points).collect();
        let y = scale.axis(lines.iter().flatten().map(|point| point.1));
        Panel { is_marked: true, ..Panel::joined(title.into(), x_title, Axis::at(places), y, lines) }
    }

    /// Adds intervals to the points: for each line the lower and upper end at each of its places.
    pub fn with_intervals(mut self, intervals: &[Vec<(f64, f64)>]) -> Panel {
        for (line, intervals) in self.lines.iter_mut().zip(intervals) {
            let places = line.points.iter().map(|point| point.0);
            line.bars = places.zip(intervals).map(|(x, &(low, high))| (x, low, high)).collect();
        }
        self
    }

    /// Curves through points of two numbers, the horizontal axis from zero to the greatest.
    pub fn curves(
        title: impl Into<String>,
        x_title: &str,
        scale: Scale,
        curves: Vec<Vec<(f64, f64)>>,
    ) -> Panel {
        let finite = || curves.iter().flatten().filter(|(x, y)| x.is_finite() && y.is_finite());
        let most = finite().map(|point| point.0).fold(0.0, f64::max);
        let (x, y) = (Axis::linear(0.0, most, 8, number), scale.axis(finite().map(|point| point.1)));
        Panel::joined(title.into(), x_title, x, y, curves)
    }

    fn joined(title: String, x_title: &str, x: Axis, y: Axis, lines: Vec<Vec<(f64, f64)>>) -> Panel {
        let line = |(style, points)| Line { style, points, bars: Vec::new() };
        let lines = lines.into_iter().enumerate().map(line).collect();
        Panel { title, x_title: x_title.to_owned(), x, y, lines, is_marked: false, is_joined: true }
    }

    /// Draws it into the whole of `area`.
    pub fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        let Panel { title, x_title, x, y, .. } = self;
        let mut chart = Frame { title, x_title, x, y, left: LEFT, grid: Grid::Both }.draw(area)?;
        // Solid lines first: dashed ones remain visible on them.
        for line in &self.lines {
            self.draw_line(&mut chart, line)?;
        }
        Ok(())
    }

    fn draw_line(&self, chart: &mut Chart<'_, '_>, line: &Line) -> Result<(), DrawError> {
        let (colour, _) = style(line.style);
        let shown = |&(x, y): &(f64, f64)| self.x.shows(x) && self.y.shows(y);
        let points: Vec<_> = line.points.iter().copied().filter(shown).collect();
        let points = thinned(&points, |x| (self.x.position(x) * COLUMNS) as i64);
        let bars = line.bars.iter().filter(|(_, low, high)| self.y.shows(*low) && self.y.shows(*high));
        chart.draw_series(
            bars.map(|&(x, low, high)| PathElement::new(vec![(x, low), (x, high)], colour.stroke_width(1))),
        )?;
        if self.is_joined && points.len() > 1 {
            let (solid, dashed) = stroke(line.style, points.clone());
            chart.draw_series(solid)?;
            chart.draw_series(dashed)?;
        }
        if self.is_marked || points.len() == 1 {
            chart.draw_series(points.into_iter().flat_map(|point| mark(line.style, point)))?;
        }
        Ok(())
    }
}

impl Plot for Panel {
    fn size(&self, (width, height): (u32, u32)) -> (u32, u32) {
        (width.max(LEFT + RIGHT + self.x.names_width()), height)
    }

    fn swatch(&self) -> Swatch {
        if self.is_marked { Swatch::MarkedLine } else { Swatch::Line }
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        Panel::draw(self, area)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Heading, page};

    #[test]
    fn a_logarithmic_axis_omits_nonpositive_values() {
        let panel = Panel {
            title: String::new(),
            x_title: String::new(),
            x: Axis::linear(0.0, 3.0, 3, number),
            y: Axis::logarithmic(1.0, 10.0, number),
            lines: vec![Line {
                points: vec![(0.0, 0.0), (1.0, 1.0), (2.0, f64::NAN), (3.0, 7.0)],
                ..Line::default()
            }],
            is_marked: true,
            is_joined: true,
        };
        let heading = Heading { title: String::new(), subtitle: String::new() };
        let svg = page(&heading, (400, 300), |body| panel.draw(body)).unwrap();
        assert_eq!(svg.matches("<circle").count(), 2);
    }
}
