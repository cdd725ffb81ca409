//! The frame of a plot: its title, both axes with their labels, and a thin grid.

use plotters::prelude::*;

use crate::axis::Axis;
use crate::error::DrawError;
use crate::page::{Area, FAINT, FONT, GREY, GRID, HPos, INK, TEXT, TITLE, shortened, write};

/// Left of a plot, for numbers beside the vertical axis.
pub(crate) const LEFT: u32 = 64;
/// Below the horizontal axis, for its labels and its title.
pub(crate) const BELOW: u32 = 44;
/// Above a plot, for its title.
pub(crate) const ABOVE: u32 = 32;
/// Right of a plot.
pub(crate) const RIGHT: u32 = 22;
/// Below everything.
pub(crate) const GAP: u32 = 10;
/// About what a character of a title takes.
const TITLE_CHARACTER: u32 = 8;

/// A chart ready for its contents.
pub(crate) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// Which lines the grid has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// At the ticks of both axes.
    Both,
    /// At the ticks of the horizontal axis: for bars that lie.
    Upright,
    /// At the ticks of the vertical axis: for bars and boxes that stand.
    Horizontal,
}

/// What surrounds the contents of a plot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) title: &'a str,
    pub(crate) x_title: &'a str,
    pub(crate) x: &'a Axis,
    pub(crate) y: &'a Axis,
    /// Width of the labels beside the vertical axis.
    pub(crate) left: u32,
    pub(crate) grid: Grid,
}

impl Frame<'_> {
    /// Draws the frame into the whole of `area`.
    pub(crate) fn draw<'a, 'b>(&self, area: &'a Area<'b>) -> Result<Chart<'a, 'b>, DrawError> {
        let room = area.dim_in_pixel().0.saturating_sub(self.left) / TITLE_CHARACTER;
        let title = shortened(self.title, room as usize);
        write(area, (self.left as i32, ABOVE as i32 / 2), &title, TITLE, INK, HPos::Left)?;
        let mut chart = ChartBuilder::on(area)
            .margin_top(ABOVE)
            .margin_right(RIGHT)
            .margin_bottom(GAP)
            .x_label_area_size(BELOW)
            .y_label_area_size(self.left)
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        draw_grid(&mut chart, self.x_title, self.grid)?;
        Ok(chart)
    }
}

/// Draws axes, their labels and a thin grid.
pub(crate) fn draw_grid(chart: &mut Chart<'_, '_>, x_title: &str, grid: Grid) -> Result<(), DrawError> {
    let mut mesh = chart.configure_mesh();
    mesh.bold_line_style(GRID)
        .light_line_style(FAINT)
        .axis_style(GREY)
        .x_desc(x_title)
        .label_style((FONT, TEXT, &GREY))
        .axis_desc_style((FONT, TEXT, &INK));
    match grid {
        Grid::Both => {}
        Grid::Upright => {
            mesh.disable_y_mesh();
        }
        Grid::Horizontal => {
            mesh.disable_x_mesh();
        }
    }
    Ok(mesh.draw()?)
}
