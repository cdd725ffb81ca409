//! A page of plots that share their series and the legend.

use crate::error::DrawError;
use crate::frame::ABOVE;
use crate::page::{
    Area, CHARACTER, GREY, HPos, Heading, INK, Swatch, TEXT, TITLE, page, sample, shortened, write,
};

/// Panels that are wider stand one below the other.
const WIDE: u32 = 640;
/// Of an entry of the legend.
const ENTRY: i32 = 24;
/// Characters of a name that the legend shows.
const LONGEST_NAME: usize = 40;

/// Offered to one of several plots.
pub const SEVERAL: (u32, u32) = (480, 350);
/// Offered to a plot that stands alone.
pub const ALONE: (u32, u32) = (860, 440);

/// A plot that can stand in a figure.
pub trait Plot {
    /// Width and height that it takes where this much is offered.
    fn size(&self, offered: (u32, u32)) -> (u32, u32);

    /// What stands for its series in the legend.
    fn swatch(&self) -> Swatch;

    /// Draws it into the whole of `area`.
    ///
    /// # Errors
    /// If the plotting library cannot draw it.
    fn draw(&self, area: &Area<'_>) -> Result<(), DrawError>;
}

/// The names of series, in the order of their styles.
#[derive(Clone, Debug, Default)]
pub struct Legend {
    /// Above them: what the names are. Nothing is left free for an empty title.
    pub title: String,
    /// The names. A legend of one name is not drawn.
    pub names: Vec<String>,
}

impl Legend {
    /// A legend of these names without a title.
    pub fn of(names: &[impl AsRef<str>]) -> Legend {
        Legend { title: String::new(), names: names.iter().map(|name| name.as_ref().to_owned()).collect() }
    }

    fn is_drawn(&self) -> bool {
        self.names.len() > 1
    }

    fn width(&self) -> u32 {
        let lengths = self.names.iter().chain([&self.title]).map(|name| shown(name).chars().count() as u32);
        if self.is_drawn() { 60 + CHARACTER * lengths.max().unwrap_or(0) } else { 0 }
    }

    fn height(&self) -> u32 {
        ENTRY as u32 * (self.names.len() as u32 + 2)
    }

    fn draw(&self, area: &Area<'_>, kind: Swatch) -> Result<(), DrawError> {
        if !self.is_drawn() {
            return Ok(());
        }
        let first = i32::from(!self.title.is_empty());
        if first > 0 {
            write(area, (8, 16), &shown(&self.title), TEXT, GREY, HPos::Left)?;
        }
        for (line, name) in self.names.iter().enumerate() {
            let y = 16 + ENTRY * (line as i32 + first);
            sample(area, (8, y), line, kind)?;
            write(area, (36, y), &shown(name), TEXT, INK, HPos::Left)?;
        }
        Ok(())
    }
}

fn shown(name: &str) -> String {
    shortened(name, LONGEST_NAME)
}

/// Draws a page of `plots`, two a row, or one a row if they are wide, and the legend beside them. Each plot is offered
/// `size`.
///
/// # Errors
/// If the plotting library cannot draw it.
pub fn draw<P: Plot>(
    heading: &Heading,
    legend: &Legend,
    size: (u32, u32),
    plots: &[P],
) -> Result<String, DrawError> {
    let sizes = plots.iter().map(|plot| plot.size(size));
    let (width, height) = sizes.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))).unwrap_or(size);
    let count = plots.len() as u32;
    let columns = if width > WIDE { 1 } else { count.clamp(1, 2) };
    let whole = (count.div_ceil(columns) * height).max(legend.height());
    page(heading, (columns * width + legend.width(), whole), |body| {
        let (area, beside) = body.split_horizontally(columns * width);
        for (index, plot) in (0..).zip(plots) {
            let (left, top) = (index % columns * width, index / columns * height);
            let (row, _) = area.split_vertically(top).1.split_vertically(height);
            let (area, _) = row.split_horizontally(left).1.split_horizontally(width);
            plot.draw(&area)?;
            if count > 1 {
                letter(&area, index)?;
            }
        }
        legend.draw(&beside, plots.first().map_or(Swatch::Line, Plot::swatch))
    })
}

/// Writes the letter of a panel beside its title: `a` for the first.
fn letter(area: &Area<'_>, index: u32) -> Result<(), DrawError> {
    let letter = char::from_u32('a' as u32 + index % 26).unwrap_or('a');
    write(area, (20, ABOVE as i32 / 2), &format!("({letter})"), TITLE, GREY, HPos::Left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Scale;
    use crate::panel::Panel;

    fn heading() -> Heading {
        Heading::new("title", "subtitle")
    }

    #[test]
    fn invalid_values_have_no_dot_on_a_logarithmic_axis() {
        let places = ["1", "2", "3", "4"].map(str::to_owned);
        let lines = [vec![1.0, f64::NAN, 3.0, 0.0], vec![2.0]];
        let panel = Panel::over_names("t", "x", &places, Scale::LOGARITHMIC, &lines);
        let svg = draw(&heading(), &Legend::of(&["a", "b"]), (400, 300), &[panel]).unwrap();
        assert_eq!(svg.matches("<circle").count(), 2 + 2 + 1, "two in the legend, three values");
        assert!(svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn a_curve_omits_invalid_points() {
        let curve = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 0.0), (3.0, 10.0)];
        let panel = Panel::curves("t", "x", Scale::LOGARITHMIC, vec![curve, Vec::new()]);
        assert_eq!((panel.y.low(), panel.y.high()), (1.0, 10.0));
        let svg = draw(&heading(), &Legend::of(&["one", "none"]), (400, 300), &[panel]).unwrap();
        assert!(svg.contains("one") && !svg.contains("NaN"));
    }

    #[test]
    fn a_figure_without_plots_is_drawn() {
        let plots: [Panel; 0] = [];
        assert!(draw(&heading(), &Legend::default(), (400, 300), &plots).unwrap().contains("title"));
    }
}
