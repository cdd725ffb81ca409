//! Named points, the vertical axis logarithmic.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{FONT, Labels, builder, draw};

/// Height of a line of names, and about what a character takes.
const LINE: i32 = 16;
const CHARACTER: i32 = 8;
/// Between a point and its name.
const GAP: i32 = 9;

/// A point for each name; one without two positive numbers is left out. Names stand beside their points, where they
/// cover neither each other nor other points.
///
/// # Errors
/// If the file cannot be written.
pub fn scatter(path: &Path, labels: Labels<'_>, points: &[(&str, f64, f64)]) -> anyhow::Result<()> {
    let is_shown = |value: f64| value > 0.0 && value.is_finite();
    let points: Vec<_> = points.iter().copied().filter(|&(_, x, y)| is_shown(x) && is_shown(y)).collect();
    let greatest = points.iter().fold(1e-9, |greatest: f64, &(_, x, _)| greatest.max(x));
    let up = around(points.iter().map(|&(_, _, y)| y));
    draw(path, |root| {
        let mut chart = builder(root, labels).build_cartesian_2d(0.0..1.2 * greatest, up.log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_label_formatter(&|x| shown(*x))
            .y_label_formatter(&|y| shown(*y))
            .x_desc(labels.x)
            .y_desc(labels.y)
            .label_style((FONT, 15))
            .axis_desc_style((FONT, 16))
            .draw()?;
        chart.draw_series(
            points.iter().map(|&(_, x, y)| Circle::new((x, y), 5, super::COLOURS[0].filled())),
        )?;
        let places: Vec<(i32, i32)> = points.iter().map(|&(_, x, y)| chart.backend_coord(&(x, y))).collect();
        let names: Vec<&str> = points.iter().map(|&(name, _, _)| name).collect();
        let style = (FONT, 15).into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Center));
        for (name, place) in names.iter().zip(apart(&names, &places)) {
            root.draw(&Text::new((*name).to_owned(), place, style.clone()))?;
        }
        Ok(())
    })
}

/// From somewhat below the least to somewhat above the greatest.
fn around(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, greatest) = values
        .fold((f64::INFINITY, 0.0f64), |(least, greatest), value| (least.min(value), greatest.max(value)));
    if least <= greatest { 0.6 * least..1.5 * greatest } else { 0.1..1.0 }
}

/// Where names begin: beside their points, right or left, else in the nearest line above or below where no other name
/// and no other point is.
fn apart(names: &[&str], points: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let width = |name: &str| CHARACTER * name.chars().count() as i32;
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

fn shown(value: f64) -> String {
    match value {
        large if large >= 1_000.0 => crate::results::grouped(large.round() as u64),
        value => format!("{}", (value * 1e3).round() / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_point_without_two_positive_numbers_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plot.svg");
        let labels = Labels { title: "t", x: "x", y: "y" };
        scatter(&path, labels, &[("one", 1.0, 2.0), ("none", f64::NAN, 2.0), ("zero", 0.0, 1.0)]).unwrap();
        let svg = std::fs::read_to_string(path).unwrap();
        assert_eq!(svg.matches("<circle").count(), 1);
    }
}
