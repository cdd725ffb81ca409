//! Box plots.

use plotters::prelude::*;

use crate::axis::{Axis, Scale};
use crate::error::DrawError;
use crate::figure::Plot;
use crate::frame::{Frame, Grid, LEFT, RIGHT};
use crate::page::{Area, HPos, INK, Swatch, TEXT, style, write};
use crate::quantity::number;

/// Half the width of a box. The distance between two boxes is 1.
const HALF: f64 = 0.2;
/// Between the greatest value and the number above it, as a share of the axis.
const ABOVE_WHISKER: f64 = 0.04;

/// Least, first quartile, median, third quartile and greatest of a sample.
pub type FiveNumbers = [f64; 5];

/// A box from the first to the third quartile for each name, with the median across it, whiskers to the least and the
/// greatest, and the median as a number above.
#[derive(Clone, Debug)]
pub struct Boxes {
    /// Above the plot: what the boxes show, with its unit.
    pub title: String,
    /// Below the horizontal axis.
    pub x_title: String,
    /// The name and the numbers of each box.
    pub boxes: Vec<(String, FiveNumbers)>,
}

impl Boxes {
    fn x(&self) -> Axis {
        Axis::places(&self.boxes.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>())
    }
}

impl Plot for Boxes {
    fn size(&self, (width, height): (u32, u32)) -> (u32, u32) {
        (width.max(LEFT + RIGHT + self.x().names_width()), height)
    }

    fn swatch(&self) -> Swatch {
        Swatch::Bar
    }

    fn draw(&self, area: &Area<'_>) -> Result<(), DrawError> {
        let Boxes { title, x_title, boxes } = self;
        let highest = boxes.iter().map(|(_, numbers)| numbers[4]).fold(0.0, f64::max);
        // Room for a number above the highest.
        let (x, y) = (self.x(), Scale::LINEAR.axis([(1.0 + 2.0 * ABOVE_WHISKER) * highest].into_iter()));
        let frame = Frame { title, x_title, x: &x, y: &y, left: LEFT, grid: Grid::Horizontal };
        let mut chart = frame.draw(area)?;
        let (colour, _) = style(0);
        for (place, (_, [least, lower, median, upper, greatest])) in (0..).map(f64::from).zip(boxes) {
            let corners = [(place - HALF, *lower), (place + HALF, *upper)];
            let line = |from, to, width| PathElement::new(vec![from, to], INK.stroke_width(width));
            chart.draw_series([
                Rectangle::new(corners, colour.mix(0.4).filled()),
                Rectangle::new(corners, colour.stroke_width(1)),
            ])?;
            chart.draw_series([
                line((place, *least), (place, *lower), 1),
                line((place, *upper), (place, *greatest), 1),
                line((place - HALF, *median), (place + HALF, *median), 2),
            ])?;
            let above = greatest + ABOVE_WHISKER * y.high();
            let (left, top) = area.get_base_pixel();
            let (x, y) = chart.backend_coord(&(place, above));
            write(area, (x - left, y - top), &number(*median), TEXT, INK, HPos::Center)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{self, Legend};
    use crate::page::Heading;

    #[test]
    fn each_box_has_its_name_and_its_median() {
        let boxes = Boxes {
            title: "packets".to_owned(),
            x_title: "scheme".to_owned(),
            boxes: vec![
                ("one".to_owned(), [0.0, 10.0, 20.0, 30.0, 40.0]),
                ("two".to_owned(), [0.0, 0.0, 1.25, 2.0, 77.0]),
            ],
        };
        let heading = Heading { title: String::new(), subtitle: String::new() };
        let svg = figure::draw(&heading, &Legend::default(), (400, 300), &[boxes]).unwrap();
        assert!(["one", "two", "1.25"].iter().all(|text| svg.contains(text)), "{svg}");
        assert!(!svg.contains("NaN"));
    }
}
