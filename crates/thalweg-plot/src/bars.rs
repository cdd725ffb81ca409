//! Bars: lying ones for names, standing ones for numbers of something.

use plotters::prelude::*;

use crate::axis::{Axis, Scale};
use crate::error::DrawError;
use crate::figure::Plot;
use crate::frame::{ABOVE, BELOW, Frame, GAP, Grid, LEFT, RIGHT};
use crate::page::{Area, CHARACTER, INK, Swatch, style};

/// Share of the room of a name or number that its bars take.
const FILLED: f64 = 0.8;
/// Height of a name with one bar, and of each bar more.
const ROW: u32 = 24;
const BAR: u32 = 10;
/// Width beside the names.
const WIDTH: u32 = 560;

/// Where the bars of one name lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Each from zero, one below the other.
    SideBySide,
    /// Each from the end of the one before: together they are the sum.
    Stacked,
}

/// For each name, from the top, a bar of each series.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Above the plot.
    pub title: String,
    /// Below the horizontal axis: what the bars show, with its unit.
    pub x_title: String,
    /// The names.
    pub names: Vec<String>,
    /// For each series a value for each name. A value that is not a number has no bar.
    pub series: Vec<Vec<f64>>,
    /// For each series an interval for each name, drawn as a thin line at the end of the bar; empty if there are none.
    pub intervals: Vec<Vec<(f64, f64)>>,
    /// Where they lie.
    pub arrangement: Arrangement,
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

impl Bars {
    fn spans(&self, place: usize) -> Vec<Span> {
        let is_stacked = self.arrangement == Arrangement::Stacked;
        let height = if is_stacked { FILLED } else { FILLED / self.series.len() as f64 };
        let mut spans = Vec::new();
        let (mut left, mut top) = (0.0, FILLED / 2.0);
        for (series, values) in self.series.iter().enumerate() {
            if let Some(value) = values.get(place).filter(|value| value.is_finite()) {
                spans.push(Span { series, left, right: left + value, top, height });
                left += if is_stacked { *value } else { 0.0 };
            }
            top -= if is_stacked { 0.0 } else { height };
        }
        spans
    }

    fn names_width(&self) -> u32 {
        let longest = self.names.iter().map(|name| name.chars().count() as u32).max();
        LEFT.max(20 + CHARACTER * longest.unwrap_or(0))
    }
}

impl Plot for Bars {
    fn size(&self, _: (u32, u32)) -> (u32, u32) {
        let bars = match self.arrangement {
            Arrangement::SideBySide => self.series.len().saturating_sub(1) as u32,
            Arrangement::Stacked => 0,
        };
        let row = ROW + BAR * bars;
        (self.names_width() + WIDTH + RIGHT, ABOVE + row * self.names.len() as u32 + BELOW + GAP)
    }

    fn swatch(&self) -> Swatch {
        Swatch::Bar
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        let spans: Vec<Vec<Span>> = (0..self.names.len()).map(|place| self.spans(place)).collect();
        let interval_ends = self.intervals.iter().flatten().map(|interval| interval.1);
        let x = Scale::LINEAR.axis(spans.iter().flatten().map(|span| span.right).chain(interval_ends));
        // The vertical axis counts upwards.
        let upwards: Vec<String> = self.names.iter().rev().cloned().collect();
        let y = Axis::places(&upwards);
        let Bars { title, x_title, .. } = self;
        let frame = Frame { title, x_title, x: &x, y: &y, left: self.names_width(), grid: Grid::Upright };
        let mut chart = frame.draw(area)?;
        for (place, spans) in spans.iter().rev().enumerate() {
            chart.draw_series(spans.iter().map(|span| {
                let top = place as f64 + span.top;
                let corners = [(span.left, top), (span.right, top - span.height)];
                Rectangle::new(corners, style(span.series).0.filled())
            }))?;
            let name = self.names.len() - 1 - place;
            let interval = |span: &Span| {
                let &(low, high) = self.intervals.get(span.series)?.get(name)?;
                let middle = place as f64 + span.top - span.height / 2.0;
                (low.is_finite() && high.is_finite())
                    .then(|| PathElement::new(vec![(low, middle), (high, middle)], INK.stroke_width(1)))
            };
            chart.draw_series(spans.iter().filter_map(interval))?;
        }
        Ok(())
    }
}

/// For each name, from the left, a standing bar of each series.
#[derive(Clone, Debug)]
pub struct Columns {
    /// Above the plot: what the bars show, with its unit.
    pub title: String,
    /// Below the horizontal axis.
    pub x_title: String,
    /// The names.
    pub names: Vec<String>,
    /// How high the bars are. They begin where the axis does.
    pub y: Axis,
    /// For each series a value for each name. One that the axis cannot show has no bar.
    pub series: Vec<Vec<f64>>,
}

impl Plot for Columns {
    fn size(&self, offered: (u32, u32)) -> (u32, u32) {
        offered
    }

    fn swatch(&self) -> Swatch {
        Swatch::Bar
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        let Columns { title, x_title, y, .. } = self;
        let x = Axis::places(&self.names);
        let frame = Frame { title, x_title, x: &x, y, left: LEFT, grid: Grid::Horizontal };
        let mut chart = frame.draw(area)?;
        let width = FILLED / self.series.len().max(1) as f64;
        for (number, values) in self.series.iter().enumerate() {
            let shown = (0..).map(f64::from).zip(values).filter(|(_, value)| y.shows(**value));
            chart.draw_series(shown.map(|(place, value)| {
                let left = place - FILLED / 2.0 + number as f64 * width;
                let corners = [(left, y.low()), (left + width, *value)];
                Rectangle::new(corners, style(number).0.filled())
            }))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{self, Legend};
    use crate::page::Heading;

    fn bars(arrangement: Arrangement) -> Bars {
        Bars {
            title: String::new(),
            x_title: "lines".to_owned(),
            names: vec!["name".to_owned()],
            series: vec![vec![2.0], vec![f64::NAN], vec![3.0]],
            intervals: Vec::new(),
            arrangement,
        }
    }

    #[test]
    fn stacked_bars_start_at_the_end_of_the_previous() {
        let ends = |arrangement| {
            let spans = bars(arrangement).spans(0);
            spans.iter().map(|span| (span.series, span.left, span.right)).collect::<Vec<_>>()
        };
        assert_eq!(ends(Arrangement::Stacked), [(0, 0.0, 2.0), (2, 2.0, 5.0)]);
        assert_eq!(ends(Arrangement::SideBySide), [(0, 0.0, 2.0), (2, 0.0, 3.0)]);
        assert!(bars(Arrangement::SideBySide).spans(1).is_empty(), "no such place");
    }

    #[test]
    fn a_series_has_the_same_colour_in_the_plot_and_in_the_legend() {
        let heading = Heading { title: String::new(), subtitle: String::new() };
        let legend = Legend::of(&["a", "b", "c"]);
        let svg = figure::draw(&heading, &legend, (400, 300), &[bars(Arrangement::Stacked)]).unwrap();
        assert_eq!(["#0072B2", "#D55E00", "#009E73"].map(|colour| svg.matches(colour).count()), [2, 1, 2]);
    }

    #[test]
    fn a_bar_below_a_logarithmic_axis_is_omitted() {
        let columns = Columns {
            title: String::new(),
            x_title: String::new(),
            names: ["0", "1", "2"].map(str::to_owned).to_vec(),
            y: Axis::logarithmic(1.0, 100.0, |_| String::new()),
            series: vec![vec![0.0, 10.0, f64::NAN]],
        };
        let heading = Heading { title: String::new(), subtitle: String::new() };
        let svg = figure::draw(&heading, &Legend::default(), (400, 300), &[columns]).unwrap();
        assert_eq!(svg.matches("#0072B2").count(), 1);
    }
}
