//! Lines over named places, in panels side by side that share their lines.

use std::path::Path;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::{COLOURS, DrawError, FONT, Labels, Root, draw_sized};

/// Colours after those that all plots share; Okabe and Ito again.
const MORE_COLOURS: [RGBColor; 3] = [RGBColor(213, 94, 0), RGBColor(86, 180, 233), RGBColor(90, 90, 90)];
const PANEL: (u32, u32) = (480, 330);
/// A panel that stands alone.
const SINGLE: (u32, u32) = (860, 440);
const TITLE_HEIGHT: u32 = 40;
/// Of a row of the legend.
const LEGEND_HEIGHT: u32 = 26;
/// About what a character takes at the size of the legend.
const CHARACTER: usize = 8;

/// One of several plots that share a legend.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Beside the vertical axis.
    pub y: String,
    /// How values are shown.
    pub unit: Unit,
    /// Least and greatest value shown on a logarithmic axis; by default the axis is linear from zero.
    pub logarithmic: Option<(f64, f64)>,
    /// A value at each place for each line of the legend, in its order; one that is no number, or is not shown, is
    /// left out, and so is a line without any.
    pub lines: Vec<Vec<f64>>,
}

/// How values are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// As they are.
    Plain,
    /// In percent.
    Share,
}

impl Panel {
    /// A panel whose vertical axis is logarithmic, from 1, 2 or 5 times a power of ten to one around the values.
    pub fn logarithmic(title: &str, y: &str, unit: Unit, lines: Vec<Vec<f64>>) -> Panel {
        let shown = || lines.iter().flatten().copied().filter(|value| *value > 0.0 && value.is_finite());
        let (least, greatest) = shown().fold((f64::INFINITY, 0.0f64), |(least, greatest), value| {
            (least.min(value), greatest.max(value))
        });
        let range = if least <= greatest { (0.8 * least, 1.25 * greatest) } else { (0.1, 1.0) };
        Panel { title: title.to_owned(), y: y.to_owned(), unit, logarithmic: Some(range), lines }
    }

    /// A panel whose vertical axis begins at zero.
    pub fn linear(title: &str, y: &str, unit: Unit, lines: Vec<Vec<f64>>) -> Panel {
        Panel { title: title.to_owned(), y: y.to_owned(), unit, logarithmic: None, lines }
    }
}

/// Panels, two a row, over the same named `places`; `legend` names the lines of all. `labels.y` is not used: each
/// panel has its own.
///
/// # Errors
/// If the file cannot be written.
pub fn line_panels(
    path: &Path,
    labels: Labels<'_>,
    places: &[String],
    legend: &[&str],
    panels: &[Panel],
) -> anyhow::Result<()> {
    let columns = panels.len().clamp(1, 2) as u32;
    let (width, height) = if panels.len() > 1 { PANEL } else { SINGLE };
    let rows = (panels.len() as u32).div_ceil(columns);
    let legend_rows = arrange(legend, (columns * width) as usize);
    let above = heading(legend_rows.len());
    draw_sized(path, (columns * width, above + rows * height + 10), |root| {
        let (head, body) = root.split_vertically(above);
        write_head(&head, labels.title, &legend_rows, columns * width)?;
        for (area, panel) in
            body.margin(0, 10, 0, 0).split_evenly((rows as usize, columns as usize)).iter().zip(panels)
        {
            draw_panel(area, panel, labels.x, places)?;
        }
        Ok(())
    })
}

/// Height of what is above the panels: title and rows of the legend.
pub(super) fn heading(rows: usize) -> u32 {
    TITLE_HEIGHT + LEGEND_HEIGHT * rows as u32
}

pub(super) fn colour(line: usize) -> RGBColor {
    COLOURS.iter().chain(&MORE_COLOURS).copied().cycle().nth(line).unwrap_or(BLACK)
}

/// An entry of the legend: the number of its line, where it begins and what it says.
pub(super) type Entry<'a> = (usize, usize, &'a str);

/// The legend in as many rows as it takes.
pub(super) fn arrange<'a>(legend: &[&'a str], width: usize) -> Vec<Vec<Entry<'a>>> {
    let mut rows: Vec<Vec<Entry<'a>>> = vec![Vec::new()];
    let mut left = 20;
    for (line, name) in legend.iter().enumerate() {
        let needed = 36 + CHARACTER * name.chars().count();
        if left + needed > width && left > 20 {
            rows.push(Vec::new());
            left = 20;
        }
        rows.last_mut().expect("a row").push((line, left, name));
        left += needed;
    }
    rows
}

pub(super) fn write_head(
    head: &Root<'_>,
    title: &str,
    rows: &[Vec<Entry<'_>>],
    width: u32,
) -> Result<(), DrawError> {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    let centred = (FONT, 19).into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Center));
    head.draw(&Text::new(title, (width as i32 / 2, TITLE_HEIGHT as i32 / 2), centred))?;
    for (row, entries) in rows.iter().enumerate() {
        let y = (TITLE_HEIGHT + LEGEND_HEIGHT * row as u32 + LEGEND_HEIGHT / 2) as i32;
        for &(line, x, name) in entries {
            let (x, colour) = (x as i32, colour(line));
            head.draw(&PathElement::new(vec![(x, y), (x + 22, y)], colour.stroke_width(2)))?;
            head.draw(&Circle::new((x + 11, y), 3, colour.filled()))?;
            let beside = (FONT, 15).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
            head.draw(&Text::new(name, (x + 28, y), beside))?;
        }
    }
    Ok(())
}

fn draw_panel(area: &Root<'_>, panel: &Panel, x: &str, places: &[String]) -> Result<(), DrawError> {
    let mut builder = ChartBuilder::on(area);
    builder.caption(&panel.title, (FONT, 16)).margin(8).x_label_area_size(46).y_label_area_size(76);
    let across = -0.3..places.len() as f64 - 0.7;
    match panel.logarithmic {
        Some((least, greatest)) => {
            let mut chart = builder.build_cartesian_2d(across, (least..greatest).log_scale())?;
            draw_lines(&mut chart, panel, x, places)
        }
        None => {
            let greatest = panel.lines.iter().flatten().copied().filter(|value| value.is_finite());
            let greatest = greatest.fold(0.0f64, f64::max).max(1e-9) * 1.08;
            let mut chart = builder.build_cartesian_2d(across, 0.0..greatest)?;
            draw_lines(&mut chart, panel, x, places)
        }
    }
}

fn draw_lines<'a, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'_>, Cartesian2d<RangedCoordf64, Y>>,
    panel: &Panel,
    x: &str,
    places: &[String],
) -> Result<(), DrawError>
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
    std::ops::Range<f64>: AsRangedCoord,
{
    let place_name = |x: &f64| match x.round() {
        place if (x - place).abs() < 1e-6 && place >= 0.0 => {
            places.get(place as usize).cloned().unwrap_or_default()
        }
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(WHITE)
        .x_labels(2 * places.len() + 1)
        .y_labels(6)
        .x_label_formatter(&place_name)
        .y_label_formatter(&|y| shown(*y, panel.unit))
        .x_desc(x)
        .y_desc(&panel.y)
        .label_style((FONT, 13))
        .axis_desc_style((FONT, 14))
        .draw()?;
    let least = panel.logarithmic.map_or(f64::NEG_INFINITY, |(least, _)| least);
    for (line, values) in panel.lines.iter().enumerate() {
        let points: Vec<(f64, f64)> = (0..)
            .zip(values)
            .filter(|(_, value)| value.is_finite() && **value >= least)
            .map(|(place, value)| (f64::from(place), *value))
            .collect();
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour(line).filled())))?;
        if points.len() > 1 {
            chart.draw_series([PathElement::new(points, colour(line).stroke_width(2))])?;
        }
    }
    Ok(())
}

/// A value of an axis, with as many digits as it needs.
pub(super) fn shown(value: f64, unit: Unit) -> String {
    let (value, sign) = match unit {
        Unit::Plain => (value, ""),
        Unit::Share => (100.0 * value, " %"),
    };
    let number = match value.abs() {
        large if large >= 1_000.0 => crate::results::grouped(large.round() as u64),
        value => format!("{}", (value * 1e6).round() / 1e6),
    };
    format!("{number}{sign}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_that_is_too_long_goes_on_in_the_next_row() {
        let rows = arrange(&["one", "two", "three"], 150);
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(rows[1][0], (2, 20, "three"));
        assert_eq!(arrange(&["a line with a long name"], 10).len(), 1);
    }

    #[test]
    fn values_have_as_many_digits_as_they_need() {
        assert_eq!(shown(12_345.6, Unit::Plain), "12,346");
        assert_eq!([0.001, 0.25].map(|value| shown(value, Unit::Share)), ["0.1 %", "25 %"]);
    }

    #[test]
    fn a_value_that_is_no_number_has_no_point() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plot.svg");
        let panel = Panel::logarithmic("t", "y", Unit::Plain, vec![vec![1.0, f64::NAN, 3.0, 0.0]]);
        let places: Vec<String> = (0..4).map(|place| place.to_string()).collect();
        let labels = Labels { title: "title", x: "x", y: "" };
        line_panels(&path, labels, &places, &["line"], &[panel]).unwrap();
        let svg = std::fs::read_to_string(path).unwrap();
        assert_eq!(svg.matches("<circle").count(), 1 + 2, "one in the legend, two values");
    }
}
