//! The same quantity of several places over time, one strip above the other, so that none hides another.

use plotters::prelude::*;

use crate::axis::Axis;
use crate::error::DrawError;
use crate::frame::{Chart, Grid, draw_grid};
use crate::page::{
    Area, GREY, HPos, Heading, INK, Swatch, TEXT, TITLE, page, sample, shortened, stroke, style, write,
};
use crate::quantity::{duration_unit, number};
use crate::thin::thinned;

/// How many strips a page has at most.
pub const MOST: usize = 6;
/// Of a page.
const WIDTH: u32 = 960;
/// Of a strip.
const HEIGHT: u32 = 94;
/// Of one that stands alone.
const ALONE: u32 = 220;
/// Between strips.
const GAP: u32 = 12;
/// Below the last, for the labels of time.
const BELOW: u32 = 44;
/// Left of strips, for their labels.
const LEFT: u32 = 70;
/// Right of strips, for what they are.
const RIGHT: u32 = 230;
/// Of a line written there, and above the first.
const LINE: u32 = 19;
const ABOVE: u32 = 2;
/// Columns of the sample of a line, and a gap.
const SAMPLE: i32 = 30;
/// Characters of a name that fit there.
const LONGEST_NAME: usize = 27;
/// What came before the summary, in nanoseconds, is shaded in this colour.
const SHADE: RGBColor = RGBColor(244, 244, 238);

/// One place.
#[derive(Clone, Debug)]
pub struct Strip {
    /// The place.
    pub name: String,
    /// What it comes to, in a few lines.
    pub notes: Vec<String>,
    /// One line, whose area is filled, or several with a legend.
    pub lines: Vec<StripLine>,
}

/// Values over time.
#[derive(Clone, Debug)]
pub struct StripLine {
    /// What it is, if the strip has several lines.
    pub name: String,
    /// Values over time in nanoseconds, in order.
    pub points: Vec<(f64, f64)>,
}

impl Strip {
    /// Creates a strip with one line.
    pub fn of_one(name: String, notes: Vec<String>, points: Vec<(f64, f64)>) -> Strip {
        Strip { name, notes, lines: vec![StripLine { name: String::new(), points }] }
    }

    /// Height of the strip with all that is written beside it.
    fn height(&self, is_alone: bool) -> u32 {
        let lines = self.notes.len() + if self.lines.len() > 1 { self.lines.len() } else { 0 };
        let written = ABOVE + LINE * (lines as u32 + 1);
        written.max(if is_alone { ALONE } else { HEIGHT })
    }
}

/// A page of strips over time from zero to `duration_ns`, all with the same vertical axis, whose labels `label` makes.
pub fn strips(
    heading: &Heading,
    duration_ns: u64,
    warm_up_ns: u64,
    strips: &[Strip],
    label: impl Fn(f64) -> String,
) -> Result<String, DrawError> {
    let heights: Vec<u32> = strips.iter().map(|strip| strip.height(strips.len() == 1)).collect();
    let (unit, unit_name) = duration_unit(duration_ns as f64 / 2.0);
    let time = Axis::linear(0.0, duration_ns.max(1) as f64, 8, |time| number(time / unit));
    let highest = strips
        .iter()
        .flat_map(|strip| &strip.lines)
        .flat_map(|line| &line.points)
        .map(|point| point.1)
        .fold(0.0, f64::max);
    let values = Axis::close_above(highest, if strips.len() == 1 { 6 } else { 3 }, label);
    let whole = heights.iter().map(|height| height + GAP).sum::<u32>() + BELOW;
    page(heading, (WIDTH, whole), |body| {
        let mut rest = body.clone();
        for (index, (strip, height)) in strips.iter().zip(&heights).enumerate() {
            let is_last = index + 1 == strips.len();
            let below = if is_last { BELOW } else { 0 };
            let (area, next) = rest.split_vertically(height + GAP + below);
            let x_title = if is_last { format!("emulated time ({unit_name})") } else { String::new() };
            draw_strip(&area, strip, &time, &values, warm_up_ns, below, &x_title)?;
            rest = next;
        }
        Ok(())
    })
}

fn draw_strip(
    area: &Area<'_>,
    strip: &Strip,
    time: &Axis,
    values: &Axis,
    warm_up_ns: u64,
    below: u32,
    x_title: &str,
) -> Result<(), DrawError> {
    let mut chart = ChartBuilder::on(area)
        .margin_top(GAP)
        .margin_right(RIGHT)
        .x_label_area_size(below)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(time.clone(), values.clone())?;
    let top = values.high();
    if warm_up_ns > 0 {
        chart.draw_series([Rectangle::new([(0.0, 0.0), (warm_up_ns as f64, top)], SHADE.filled())])?;
    }
    draw_grid(&mut chart, x_title, Grid::Both)?;
    let columns = f64::from(WIDTH - LEFT - RIGHT);
    for (index, line) in strip.lines.iter().enumerate() {
        let points = thinned(&line.points, |at| (time.position(at) * columns) as i64);
        match strip.lines.len() {
            1 => draw_area(&mut chart, points)?,
            _ => {
                let (solid, dashed) = stroke(index, points);
                chart.draw_series(solid)?;
                chart.draw_series(dashed)?;
            }
        }
    }
    let left = (WIDTH - RIGHT + 12) as i32;
    write(area, (left, GAP as i32 + 10), &shortened(&strip.name, LONGEST_NAME), TITLE, INK, HPos::Left)?;
    let height = |line: u32| (GAP + 12 + LINE * line) as i32;
    for (line, note) in (1..).zip(&strip.notes) {
        write(area, (left, height(line)), note, TEXT, GREY, HPos::Left)?;
    }
    let legend = if strip.lines.len() > 1 { &strip.lines[..] } else { &[] };
    for (index, line) in legend.iter().enumerate() {
        let y = height((strip.notes.len() + index + 1) as u32);
        sample(area, (left, y), index, Swatch::Line)?;
        write(area, (left + SAMPLE, y), &shortened(&line.name, LONGEST_NAME), TEXT, GREY, HPos::Left)?;
    }
    Ok(())
}

/// Draws a line and the area below it.
fn draw_area(chart: &mut Chart<'_, '_>, points: Vec<(f64, f64)>) -> Result<(), DrawError> {
    let (colour, _) = style(0);
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        let ground = [(last.0, 0.0), (first.0, 0.0)];
        let outline: Vec<_> = points.iter().copied().chain(ground).collect();
        chart.draw_series([Polygon::new(outline, colour.mix(0.16).filled())])?;
    }
    chart.draw_series([PathElement::new(points, colour.stroke_width(1))])?;
    Ok(())
}
