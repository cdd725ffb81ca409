//! Sorts of plots, as SVG: grouped bars over numbers, horizontal bars for names, boxes over names, lines over names, curves
//! over numbers, and named points.

mod bars;
mod curves;
mod lines;
mod scatter;

use std::path::Path;

use anyhow::anyhow;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::statistics::FiveNumbers;

pub use bars::{Bars, named_bars};
pub use curves::{CurvePanel, curve_panels};
pub use lines::{Panel, Unit, line_panels};
pub use scatter::scatter;

const SIZE: (u32, u32) = (860, 480);
const FONT: &str = "sans-serif";
/// Told apart also without colour vision (Okabe and Ito 2008).
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(230, 159, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];
/// Share of a place on the horizontal axis that its bars or box take.
const FILLED: f64 = 0.8;

/// What a plot is called and what its axes say.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// Above the plot.
    pub title: &'a str,
    /// Under the horizontal axis.
    pub x: &'a str,
    /// Beside the vertical axis.
    pub y: &'a str,
}

/// Bars for each of several series side by side over 0, 1, 2 and so on, on a logarithmic axis; a value below
/// one has no bar.
///
/// # Errors
/// If the file cannot be written.
pub fn grouped_bars(path: &Path, labels: Labels<'_>, series: &[(&str, Vec<f64>)]) -> anyhow::Result<()> {
    let places = series.iter().map(|(_, values)| values.len()).max().unwrap_or(1);
    let highest =
        series.iter().flat_map(|(_, values)| values).fold(10.0, |high: f64, value| high.max(*value));
    draw(path, |root| {
        let mut chart = builder(root, labels)
            .build_cartesian_2d(-0.5..places as f64 - 0.5, (0.7..highest * 3.0).log_scale())?;
        mesh(&mut chart, labels, places, &|place| format!("{place}"))?;
        let width = FILLED / series.len() as f64;
        for (number, (name, values)) in series.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let bars = values.iter().enumerate().filter(|(_, value)| **value >= 1.0).map(|(place, value)| {
                let left = place as f64 - FILLED / 2.0 + number as f64 * width;
                Rectangle::new([(left, 0.7), (left + width, *value)], colour.filled())
            });
            chart
                .draw_series(bars)?
                .label(*name)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE)
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 15))
            .draw()?;
        Ok(())
    })
}

/// A box from the first to the third quartile for each name, with the median across it, whiskers to the least
/// and the greatest, and the median as a number above.
///
/// # Errors
/// If the file cannot be written.
pub fn boxes(path: &Path, labels: Labels<'_>, sample: &[(String, FiveNumbers)]) -> anyhow::Result<()> {
    let highest = sample.iter().fold(1.0, |high: f64, (_, numbers)| high.max(numbers.max));
    draw(path, |root| {
        let places = sample.len();
        let mut chart =
            builder(root, labels).build_cartesian_2d(-0.5..places as f64 - 0.5, 0.0..highest * 1.15)?;
        mesh(&mut chart, labels, places, &|place| {
            sample.get(place).map_or(String::new(), |(name, _)| name.clone())
        })?;
        for (place, (_, numbers)) in sample.iter().enumerate() {
            let (x, half) = (place as f64, FILLED / 4.0);
            let colour = COLOURS[0];
            let line = |from: (f64, f64), to: (f64, f64), width| {
                PathElement::new(vec![from, to], BLACK.stroke_width(width))
            };
            chart.draw_series([
                Rectangle::new(
                    [(x - half, numbers.lower), (x + half, numbers.upper)],
                    colour.mix(0.4).filled(),
                ),
                Rectangle::new(
                    [(x - half, numbers.lower), (x + half, numbers.upper)],
                    colour.stroke_width(1),
                ),
            ])?;
            chart.draw_series([
                line((x, numbers.min), (x, numbers.lower), 1),
                line((x, numbers.upper), (x, numbers.max), 1),
                line((x - half, numbers.median), (x + half, numbers.median), 2),
            ])?;
            let number = match numbers.median {
                median if median.fract() == 0.0 => format!("{median}"),
                median => format!("{median:.1}"),
            };
            let above = numbers.max + highest * 0.06;
            let style = (FONT, 15).into_font().color(&BLACK).pos(plotters::style::text_anchor::Pos::new(
                plotters::style::text_anchor::HPos::Center,
                plotters::style::text_anchor::VPos::Center,
            ));
            chart.draw_series([Text::new(number, (x, above), style)])?;
        }
        Ok(())
    })
}

type Root<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type DrawError = Box<dyn std::error::Error + Send + Sync>;

fn draw<F>(path: &Path, contents: F) -> anyhow::Result<()>
where
    F: FnOnce(&Root<'_>) -> Result<(), DrawError>,
{
    draw_sized(path, SIZE, contents)
}

fn draw_sized<F>(path: &Path, size: (u32, u32), contents: F) -> anyhow::Result<()>
where
    F: FnOnce(&Root<'_>) -> Result<(), DrawError>,
{
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let drawn = root.fill(&WHITE).map_err(DrawError::from).and_then(|()| contents(&root));
        drawn
            .and_then(|()| root.present().map_err(DrawError::from))
            .map_err(|error| anyhow!("cannot plot: {error}"))?;
    }
    crate::results::save(path, &svg)
}

fn builder<'a, 'b>(root: &'a Root<'b>, labels: Labels<'a>) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(root);
    builder.caption(labels.title, (FONT, 19)).margin(16).x_label_area_size(52).y_label_area_size(84);
    builder
}

/// Axes and horizontal lines; whole places on the horizontal axis are named by `name`.
fn mesh<'a, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'_>, Cartesian2d<RangedCoordf64, Y>>,
    labels: Labels<'_>,
    places: usize,
    name: &dyn Fn(usize) -> String,
) -> Result<(), DrawError>
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    std::ops::Range<f64>: AsRangedCoord,
{
    // Ticks at every half, so that each whole place has one; halves have no name.
    let x_name = |x: &f64| match x.round() {
        place if (x - place).abs() < 1e-6 && place >= 0.0 => name(place as usize),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(2 * places + 1)
        .x_label_formatter(&x_name)
        .y_label_formatter(&|y| crate::results::grouped(*y as u64))
        .x_desc(labels.x)
        .y_desc(labels.y)
        .label_style((FONT, 15))
        .axis_desc_style((FONT, 16))
        .draw()?;
    Ok(())
}
