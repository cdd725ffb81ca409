//! One plot of lines over two axes.

use plotters::prelude::*;

use crate::axis::Axis;
use crate::page::{Area, FAINT, FONT, Fault, GREY, GRID, HPos, INK, TEXT, TITLE, mark, style, write};
use crate::thin::thinned;

/// Columns of pixels that points are thinned to: about the width of the widest panel.
const COLUMNS: f64 = 1_000.0;
/// Beside the vertical axis, for its labels.
const LEFT: u32 = 64;
/// Below the horizontal axis, for its labels and its title.
const BELOW: u32 = 44;
/// Above the plot, for its title.
const ABOVE: u32 = 32;
/// Beside the plot.
const RIGHT: u32 = 22;
/// Below everything.
const GAP: u32 = 10;

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
    /// The lines, the first on top.
    pub lines: Vec<Line>,
    /// Whether each point has a dot: for few points.
    pub is_marked: bool,
    /// Whether points are joined: not if the places on the horizontal axis are names.
    pub is_joined: bool,
}

/// What a panel is wider than its plot.
pub const BESIDE: u32 = LEFT + RIGHT;

/// A chart ready for its lines.
pub(crate) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

impl Panel {
    /// Draws it into the whole of `area`.
    pub fn draw(&self, area: &Area<'_>) -> Result<(), Fault> {
        write(area, (LEFT as i32, ABOVE as i32 / 2), &self.title, TITLE, INK, HPos::Left)?;
        let mut chart = ChartBuilder::on(area)
            .margin_top(ABOVE)
            .margin_right(RIGHT)
            .margin_bottom(GAP)
            .x_label_area_size(BELOW)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        draw_grid(&mut chart, &self.x_title)?;
        // The first line lies on top.
        for line in self.lines.iter().rev() {
            self.draw_line(&mut chart, line)?;
        }
        Ok(())
    }

    fn draw_line(&self, chart: &mut Chart<'_, '_>, line: &Line) -> Result<(), Fault> {
        let (colour, _) = style(line.style);
        let shown = |&(x, y): &(f64, f64)| self.x.shows(x) && self.y.shows(y);
        let points: Vec<_> = line.points.iter().copied().filter(shown).collect();
        let points = thinned(&points, |x| (self.x.position(x) * COLUMNS) as i64);
        let bars = line.bars.iter().filter(|(_, low, high)| self.y.shows(*low) && self.y.shows(*high));
        chart.draw_series(
            bars.map(|&(x, low, high)| PathElement::new(vec![(x, low), (x, high)], colour.stroke_width(1))),
        )?;
        if self.is_joined && points.len() > 1 {
            chart.draw_series([PathElement::new(points.clone(), colour.stroke_width(2))])?;
        }
        if self.is_marked || points.len() == 1 {
            chart.draw_series(points.into_iter().flat_map(|point| mark(line.style, point)))?;
        }
        Ok(())
    }
}

/// Draws axes, their labels and a thin grid.
pub(crate) fn draw_grid(chart: &mut Chart<'_, '_>, x_title: &str) -> Result<(), Fault> {
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(FAINT)
        .axis_style(GREY)
        .x_desc(x_title)
        .label_style((FONT, TEXT, &GREY))
        .axis_desc_style((FONT, TEXT, &INK))
        .draw()?;
    Ok(())
}
