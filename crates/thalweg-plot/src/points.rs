//! Points with names.

use plotters::prelude::*;

use crate::axis::{Axis, Scale};
use crate::error::DrawError;
use crate::figure::Plot;
use crate::frame::{Frame, Grid, LEFT};
use crate::page::{Area, CHARACTER, HPos, INK, Swatch, TEXT, style, write};
use crate::quantity::number;

/// Height of a line of names.
const LINE: i32 = 16;
/// Between a point and its name.
const GAP: i32 = 9;
/// Right of the last point, as a share of the axis, for its name.
const ROOM: f64 = 0.2;

/// A point for each name over two axes, the vertical one logarithmic. Names stand beside their points and cover neither each
/// other nor other points.
#[derive(Clone, Debug)]
pub struct Points {
    /// Above the plot: what the vertical axis shows, with its unit.
    pub title: String,
    /// Below the horizontal axis.
    pub x_title: String,
    /// Name, place on the horizontal axis, place on the vertical axis. A point without two numbers above zero is left
    /// out.
    pub points: Vec<(String, f64, f64)>,
}

impl Plot for Points {
    fn size(&self, offered: (u32, u32)) -> (u32, u32) {
        offered
    }

    fn swatch(&self) -> Swatch {
        Swatch::MarkedLine
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        let is_shown = |value: f64| value > 0.0 && value.is_finite();
        let points: Vec<_> = self.points.iter().filter(|&&(_, x, y)| is_shown(x) && is_shown(y)).collect();
        let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
        let x = Axis::from_zero((1.0 + ROOM) * most, 6, number);
        let y = Scale::LOGARITHMIC.axis(points.iter().map(|point| point.2));
        let Points { title, x_title, .. } = self;
        let frame = Frame { title, x_title, x: &x, y: &y, left: LEFT, grid: Grid::Both };
        let mut chart = frame.draw(area)?;
        let (colour, _) = style(0);
        chart.draw_series(points.iter().map(|&&(_, x, y)| Circle::new((x, y), 5, colour.filled())))?;
        let (left, top) = area.get_base_pixel();
        let pixel = |&&(_, x, y): &&(String, f64, f64)| {
            let (x, y) = chart.backend_coord(&(x, y));
            (x - left, y - top)
        };
        let places: Vec<(i32, i32)> = points.iter().map(pixel).collect();
        let names: Vec<&str> = points.iter().map(|point| point.0.as_str()).collect();
        for (name, place) in names.iter().zip(apart(&names, &places)) {
            write(area, place, name, TEXT, INK, HPos::Left)?;
        }
        Ok(())
    }
}

/// Where names begin: beside their points, right or left, else in the nearest line above or below where no other name
/// and no other point is.
fn apart(names: &[&str], points: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let width = |name: &str| CHARACTER as i32 * name.chars().count() as i32;
    let mut places: Vec<(i32, i32)> = Vec::new();
    for (number, (name, &(x, y))) in names.iter().zip(points).enumerate() {
        let meets = |(left, middle): (i32, i32), (begin, end, at): (i32, i32, i32)| {
            (middle - at).abs() < LINE && left < end && begin < left + width(name)
        };
        let is_free = |&place: &(i32, i32)| {
            let mut others = names.iter().zip(&places).map(|(other, &(x, y))| (x, x + width(other), y));
            let mut marks = points.iter().enumerate().filter(|(other, _)| *other != number);
            !others.any(|other| meets(place, other))
                && !marks.any(|(_, &(x, y))| meets(place, (x - GAP, x + GAP, y)))
        };
        let lines = (0..names.len() as i32).flat_map(|line| [line, -line]);
        let sides =
            lines.flat_map(|line| [(x + GAP, y + line * LINE), (x - GAP - width(name), y + line * LINE)]);
        let place = { sides }.find(is_free).unwrap_or((x + GAP, y));
        places.push(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{self, Legend};
    use crate::page::Heading;

    #[test]
    fn names_cover_neither_each_other_nor_other_points() {
        assert_eq!(apart(&["a", "b"], &[(10, 50), (90, 52)]), [(19, 50), (99, 52)], "far apart");
        assert_eq!(
            apart(&["a", "b"], &[(10, 50), (20, 50)]),
            [(-7, 50), (29, 50)],
            "the other point is at the right"
        );
        let [first, second] = apart(&["a", "b"], &[(10, 50), (10, 51)])[..] else { panic!("two names") };
        assert!((first.1 - second.1).abs() >= LINE || first.0 != second.0, "{first:?} {second:?}");
    }

    #[test]
    fn a_point_without_two_positive_numbers_is_omitted() {
        let points = [("one", 1.0, 2.0), ("none", f64::NAN, 2.0), ("zero", 0.0, 1.0)];
        let points = Points {
            title: String::new(),
            x_title: String::new(),
            points: points.map(|(name, x, y)| (name.to_owned(), x, y)).to_vec(),
        };
        let heading = Heading { title: String::new(), subtitle: String::new() };
        let svg = figure::draw(&heading, &Legend::default(), (400, 300), &[points]).unwrap();
        assert_eq!(svg.matches("<circle").count(), 1);
    }
}
