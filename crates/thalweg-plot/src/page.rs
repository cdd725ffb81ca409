//! A page of SVG: its heading, colours, texts and legends.

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
pub(crate) use plotters::style::text_anchor::HPos;
use plotters::style::text_anchor::{Pos, VPos};

use crate::error::DrawError;

/// A part of a page.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Of everything written; Helvetica or what stands in for it.
pub(crate) const FONT: &str = "Helvetica, Arial, sans-serif";
/// Size of most texts. Of plotters' sizes a browser makes about four fifths.
pub(crate) const TEXT: u32 = 15;
/// Size of a title above a plot.
pub(crate) const TITLE: u32 = 17;
/// Height of the two lines above everything, and of the space below them.
const HEADING: u32 = 68;
/// About what a character of a label takes, and one of a title.
pub(crate) const CHARACTER: u32 = 8;
const TITLE_CHARACTER: u32 = 10;
/// Around everything.
const MARGIN: i32 = 16;
/// The largest number of points of a line with dashes.
const MAX_DASHED_POINTS: usize = 400;
/// Of what is read first.
pub(crate) const INK: RGBColor = RGBColor(33, 37, 41);
/// Of what is read second: axes, notes.
pub(crate) const GREY: RGBColor = RGBColor(96, 104, 112);
/// Of grid lines.
pub(crate) const GRID: RGBColor = RGBColor(226, 230, 234);
/// Of grid lines between those that have a number.
pub(crate) const FAINT: RGBColor = RGBColor(242, 244, 246);

/// Told apart also without colour vision (Okabe and Ito 2008); without yellow, which is not seen on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(80, 80, 80),
];

/// The colour of a line, and whether its marks are hollow: they are once all colours have been used.
pub(crate) fn style(line: usize) -> (RGBColor, bool) {
    (COLOURS[line % COLOURS.len()], line / COLOURS.len() % 2 == 1)
}

/// What stands for a series in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swatch {
    /// A piece of a line.
    Line,
    /// A piece of a line with a dot.
    MarkedLine,
    /// A piece of a bar.
    Bar,
}

/// What a page is called.
#[derive(Clone, Debug)]
pub struct Heading {
    /// In one line.
    pub title: String,
    /// What is drawn, in one more.
    pub subtitle: String,
}

impl Heading {
    /// A heading of these texts.
    pub fn new(title: impl Into<String>, subtitle: impl Into<String>) -> Heading {
        Heading { title: title.into(), subtitle: subtitle.into() }
    }
}

/// A page of `width` and `height` below its heading, as SVG.
pub fn page(
    heading: &Heading,
    (width, height): (u32, u32),
    contents: impl FnOnce(&Area<'_>) -> Result<(), DrawError>,
) -> Result<String, DrawError> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width, height + HEADING)).into_drawing_area();
        root.fill(&WHITE)?;
        let (head, body) = root.split_vertically(HEADING);
        write(
            &head,
            (MARGIN, 26),
            &shortened(&heading.title, (width / TITLE_CHARACTER) as usize),
            23,
            INK,
            HPos::Left,
        )?;
        let subtitle = shortened(&heading.subtitle, (width / CHARACTER) as usize);
        write(&head, (MARGIN, 50), &subtitle, TEXT, GREY, HPos::Left)?;
        contents(&body)?;
        root.present()?;
    }
    Ok(svg)
}

/// The beginning of a text that has more than `most` characters, and that it goes on.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some(_) => text.chars().take(most - 1).chain(['\u{2026}']).collect(),
        None => text.to_owned(),
    }
}

/// Writes a line of text; `at` is its left end, its middle or its right end, half way up.
pub(crate) fn write(
    area: &Area<'_>,
    at: (i32, i32),
    text: &str,
    size: u32,
    colour: RGBColor,
    anchor: HPos,
) -> Result<(), DrawError> {
    let style = (FONT, size).into_font().color(&colour).pos(Pos::new(anchor, VPos::Center));
    Ok(area.draw(&Text::new(text, at, style))?)
}

/// Dash and gap in pixels of a line; `None` if it is solid. Equal lines that lie on each other remain visible.
pub(crate) fn dash(line: usize) -> Option<(i32, i32)> {
    [None, Some((12, 5)), Some((3, 4)), Some((18, 4)), Some((7, 3))][line % 5]
}

type DashedPath<Place> = DashedPathElement<std::vec::IntoIter<Place>, i32>;

/// A line through `points` in the colour and with the dashes of a series.
pub(crate) fn stroke<Place: Clone + 'static>(
    line: usize,
    points: Vec<Place>,
) -> (Option<PathElement<Place>>, Option<DashedPath<Place>>) {
    let stroke = style(line).0.stroke_width(2);
    // Each dash of a long noisy line would be an element of its own.
    match dash(line).filter(|_| points.len() <= MAX_DASHED_POINTS) {
        None => (Some(PathElement::new(points, stroke)), None),
        Some((size, gap)) => (None, Some(DashedPathElement::new(points, size, gap, stroke))),
    }
}

/// Draws the sample of a series in a legend; `at` is its left end, half way up.
pub(crate) fn sample(
    area: &Area<'_>,
    (x, y): (i32, i32),
    line: usize,
    sample: Swatch,
) -> Result<(), DrawError> {
    let (colour, _) = style(line);
    match sample {
        Swatch::Line | Swatch::MarkedLine => {
            let (solid, dashed) = stroke(line, vec![(x, y), (x + 24, y)]);
            solid.iter().try_for_each(|path| area.draw(path))?;
            dashed.iter().try_for_each(|path| area.draw(path))?;
            if sample == Swatch::MarkedLine {
                mark(line, (x + 12, y)).into_iter().try_for_each(|dot| area.draw(&dot))?;
            }
        }
        Swatch::Bar => area.draw(&Rectangle::new([(x, y - 6), (x + 20, y + 6)], colour.filled()))?,
    }
    Ok(())
}

/// A dot of a line, white within if it is hollow.
pub(crate) fn mark<Place>(line: usize, at: Place) -> Vec<Circle<Place, i32>>
where
    Place: Clone,
{
    let (colour, is_hollow) = style(line);
    let dot = Circle::new(at.clone(), 4, colour.filled());
    match is_hollow {
        true => vec![dot, Circle::new(at, 2, WHITE.filled())],
        false => vec![dot],
    }
}

/// A page that says why there is nothing on it.
pub fn blank_page(heading: &Heading) -> Result<String, DrawError> {
    page(heading, (960, 20), |_| Ok(()))
}
