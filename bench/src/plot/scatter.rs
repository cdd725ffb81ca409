//! Named points, both axes logarithmic.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{FONT, Labels, builder, draw};

/// Height of a line of names, and about what a character takes.
const LINE: i32 = 16;
const CHARACTER: i32 = 8;
/// Between a point and its name.
const GAP: i32 = 9;

/// A point for each name; one without two positive numbers is left out. Names stand beside their points, and move up or
/// down where they would cover each other.
///
/// # Errors
/// If the file cannot be written.
pub fn scatter(path: &Path, labels: Labels<'_>, points: &[(&str, f64, f64)]) -> anyhow::Result<()> {
    let is_shown = |value: f64| value > 0.0 && value.is_finite();
    let points: Vec<_> = points.iter().copied().filter(|&(_, x, y)| is_shown(x) && is_shown(y)).collect();
    let [across, up] = [|point: &(&str, f64, f64)| point.1, |point: &(&str, f64, f64)| point.2]
        .map(|of| around(points.iter().map(of)));
    draw(path, |root| {
        let mut chart = builder(root, labels).build_cartesian_2d(across.log_scale(), up.log_scale())?;
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

/// From somewhat below the least to somewhat above the greatest, with room for names on the right.
fn around(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, greatest) = values
        .fold((f64::INFINITY, 0.0f64), |(least, greatest), value| (least.min(value), greatest.max(value)));
    if least <= greatest { 0.8 * least..1.5 * greatest } else { 0.1..1.0 }
}

/// Where names begin: right of their points, in the first line above or below that no other name takes.
fn apart(names: &[&str], points: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut places: Vec<(i32, i32)> = Vec::new();
    for (name, &(x, y)) in names.iter().zip(points) {
        let width = |name: &str| CHARACTER * name.chars().count() as i32;
        let is_free = |&(left, middle): &(i32, i32)| {
            let covers = |(other, &(begin, at)): (&&str, &(i32, i32))| {
                (middle - at).abs() < LINE && left < begin + width(other) && begin < left + width(name)
            };
            !names.iter().zip(&places).any(covers)
        };
        let lines = (0..names.len() as i32).flat_map(|line| [line, -line]);
        let mut free = lines.map(|line| (x + GAP, y + line * LINE)).filter(is_free);
        let place = free.next().unwrap_or((x + GAP, y));
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
    fn names_of_points_that_meet_stand_below_each_other() {
        assert_eq!(apart(&["a", "b"], &[(10, 50), (10, 52)]), [(19, 50), (19, 68)]);
        assert_eq!(apart(&["a", "b"], &[(10, 50), (90, 52)]), [(19, 50), (99, 52)], "far apart");
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
