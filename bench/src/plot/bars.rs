//! Horizontal bars for names, side by side or one after the other.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::lines::colour as colour_of;
use super::{FILLED, FONT, Labels, builder, draw};

/// What names take at the left.
const NAMES_WIDTH: u32 = 190;

/// How the bars of a name lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bars {
    /// Each from zero, one below the other.
    SideBySide,
    /// Each from the end of the one before, so that all together are the sum.
    Stacked,
}

/// For each name, from the top, a bar of each series; a value that is no number has none. `labels.y` is not used: names
/// stand there.
///
/// # Errors
/// If the file cannot be written.
pub fn named_bars(
    path: &Path,
    labels: Labels<'_>,
    names: &[&str],
    series: &[(&str, Vec<f64>)],
    bars: Bars,
) -> anyhow::Result<()> {
    let spans: Vec<Vec<Span>> = (0..names.len()).map(|place| spans(series, place, bars)).collect();
    let greatest = spans.iter().flatten().map(|span| span.right).fold(1e-9, f64::max) * 1.05;
    draw(path, |root| {
        let mut builder = builder(root, Labels { y: "", ..labels });
        let bottom = 0.5 - names.len() as f64;
        let mut chart =
            builder.y_label_area_size(NAMES_WIDTH).build_cartesian_2d(0.0..greatest, bottom..0.5)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(WHITE)
            .x_label_formatter(&|x| crate::results::grouped(x.round() as u64))
            .y_labels(0)
            .x_desc(labels.x)
            .label_style((FONT, 15))
            .axis_desc_style((FONT, 16))
            .draw()?;
        for (number, (title, _)) in series.iter().enumerate() {
            let colour = colour_of(number);
            let of_series = spans.iter().enumerate().flat_map(|(place, spans)| {
                spans.iter().filter(move |span| span.series == number).map(move |span| {
                    let top = span.top - place as f64;
                    Rectangle::new([(span.left, top), (span.right, top - span.height)], colour.filled())
                })
            });
            chart
                .draw_series(of_series)?
                .label(*title)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
        }
        let beside = (FONT, 15).into_font().color(&BLACK).pos(Pos::new(HPos::Right, VPos::Center));
        for (place, name) in names.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(0.0, -(place as f64)));
            root.draw(&Text::new((*name).to_owned(), (x - 8, y), beside.clone()))?;
        }
        // Beside the shorter bars.
        let end = |spans: Option<&Vec<Span>>| {
            spans.into_iter().flatten().map(|span| span.right).fold(0.0, f64::max)
        };
        let position = match end(spans.first()) < end(spans.last()) {
            true => SeriesLabelPosition::UpperRight,
            false => SeriesLabelPosition::LowerRight,
        };
        chart
            .configure_series_labels()
            .position(position)
            .background_style(WHITE)
            .border_style(BLACK.mix(0.3))
            .label_font((FONT, 15))
            .draw()?;
        Ok(())
    })
}

/// A bar: from where to where, and how high in a row that is 1 high and has its middle at 0.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Span {
    series: usize,
    left: f64,
    right: f64,
    top: f64,
    height: f64,
}

fn spans(series: &[(&str, Vec<f64>)], place: usize, bars: Bars) -> Vec<Span> {
    let mut spans = Vec::new();
    let (mut left, mut top) = (0.0, FILLED / 2.0);
    for (number, (_, values)) in series.iter().enumerate() {
        let height = if bars == Bars::Stacked { FILLED } else { FILLED / series.len() as f64 };
        if let Some(value) = values.get(place).filter(|value| value.is_finite()) {
            spans.push(Span { series: number, left, right: left + value, top, height });
            left += if bars == Bars::Stacked { *value } else { 0.0 };
        }
        top -= if bars == Bars::Stacked { 0.0 } else { height };
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacked_bars_begin_where_the_one_before_ends_and_others_at_zero() {
        let series = [("a", vec![2.0]), ("b", vec![f64::NAN]), ("c", vec![3.0])];
        let ends = |bars| {
            spans(&series, 0, bars)
                .iter()
                .map(|span| (span.series, span.left, span.right))
                .collect::<Vec<_>>()
        };
        assert_eq!(ends(Bars::Stacked), [(0, 0.0, 2.0), (2, 2.0, 5.0)]);
        assert_eq!(ends(Bars::SideBySide), [(0, 0.0, 2.0), (2, 0.0, 3.0)]);
        assert!(spans(&series, 1, Bars::Stacked).is_empty(), "no such place");
    }
}
