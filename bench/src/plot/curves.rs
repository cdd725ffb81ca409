//! Curves through points of two numbers, in panels side by side that share their legend.

use std::path::Path;

use plotters::prelude::*;

use super::lines::{arrange, colour, heading, shown, write_head};
use super::{DrawError, FONT, Labels, Root, draw_sized};
use crate::plot::Unit;

const PANEL: (u32, u32) = (480, 350);
/// A panel that stands alone.
const SINGLE: (u32, u32) = (860, 440);

/// One of several plots that share a legend.
#[derive(Clone, Debug)]
pub struct CurvePanel {
    /// Above it.
    pub title: String,
    /// Under the horizontal axis, and beside the vertical one.
    pub axes: (String, String),
    /// Whether the vertical axis is logarithmic.
    pub is_logarithmic: bool,
    /// Points of each curve of the legend, in its order; one that cannot be shown is left out.
    pub curves: Vec<Vec<(f64, f64)>>,
}

impl CurvePanel {
    /// A panel whose axes begin at zero.
    pub fn linear(title: &str, axes: (&str, &str), curves: Vec<Vec<(f64, f64)>>) -> CurvePanel {
        let axes = (axes.0.to_owned(), axes.1.to_owned());
        CurvePanel { title: title.to_owned(), axes, is_logarithmic: false, curves }
    }

    /// A panel whose vertical axis is logarithmic.
    pub fn logarithmic(title: &str, axes: (&str, &str), curves: Vec<Vec<(f64, f64)>>) -> CurvePanel {
        CurvePanel { is_logarithmic: true, ..CurvePanel::linear(title, axes, curves) }
    }

    fn is_shown(&self, (x, y): (f64, f64)) -> bool {
        x.is_finite() && y.is_finite() && (!self.is_logarithmic || y > 0.0)
    }

    /// Least and greatest of a coordinate of all points that are shown.
    fn bounds(&self, of: impl Fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let points = self.curves.iter().flatten().filter(|point| self.is_shown(**point)).map(of);
        points.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(value), most.max(value))
        })
    }
}

/// Panels, two a row; `legend` names the curves of all. `labels.x` and `labels.y` are not used: each panel has its own.
///
/// # Errors
/// If the file cannot be written.
pub fn curve_panels(
    path: &Path,
    labels: Labels<'_>,
    legend: &[&str],
    panels: &[CurvePanel],
) -> anyhow::Result<()> {
    let columns = panels.len().clamp(1, 2) as u32;
    let (width, height) = if panels.len() > 1 { PANEL } else { SINGLE };
    let rows = (panels.len() as u32).div_ceil(columns);
    let legend_rows = arrange(legend, (columns * width) as usize);
    let above = heading(legend_rows.len());
    draw_sized(path, (columns * width, above + rows * height + 10), |root| {
        let (head, body) = root.split_vertically(above);
        write_head(&head, labels.title, &legend_rows, columns * width)?;
        let areas = body.margin(0, 10, 0, 0).split_evenly((rows as usize, columns as usize));
        areas.iter().zip(panels).try_for_each(|(area, panel)| draw_panel(area, panel))
    })
}

fn draw_panel(area: &Root<'_>, panel: &CurvePanel) -> Result<(), DrawError> {
    let mut builder = ChartBuilder::on(area);
    builder.caption(&panel.title, (FONT, 16)).margin(8).x_label_area_size(46).y_label_area_size(76);
    let (_, right) = panel.bounds(|point| point.0);
    let (least, most) = panel.bounds(|point| point.1);
    let across = 0.0..right.max(1e-9);
    macro_rules! draw_on {
        ($up:expr) => {{
            let mut chart = builder.build_cartesian_2d(across, $up)?;
            chart
                .configure_mesh()
                .light_line_style(WHITE)
                .x_labels(8)
                .y_labels(6)
                .x_label_formatter(&|x| shown(*x, Unit::Plain))
                .y_label_formatter(&|y| shown(*y, Unit::Plain))
                .x_desc(&panel.axes.0)
                .y_desc(&panel.axes.1)
                .label_style((FONT, 13))
                .axis_desc_style((FONT, 14))
                .draw()?;
            for (number, curve) in panel.curves.iter().enumerate() {
                let points: Vec<(f64, f64)> =
                    curve.iter().copied().filter(|point| panel.is_shown(*point)).collect();
                if points.len() > 1 {
                    chart.draw_series([PathElement::new(points, colour(number).stroke_width(2))])?;
                }
            }
            Ok(())
        }};
    }
    match panel.is_logarithmic {
        true if least <= most => draw_on!((0.8 * least..1.25 * most).log_scale()),
        true => draw_on!((0.1..1.0).log_scale()),
        false => draw_on!(0.0..1.05 * most.max(1e-9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_that_cannot_be_shown_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plot.svg");
        let curve = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 0.0), (3.0, 10.0)];
        let panel = CurvePanel::logarithmic("t", ("x", "y"), vec![curve, Vec::new()]);
        assert_eq!(panel.bounds(|point| point.1), (1.0, 10.0));
        let labels = Labels { title: "title", x: "", y: "" };
        curve_panels(&path, labels, &["one", "none"], &[panel]).unwrap();
        let svg = std::fs::read_to_string(path).unwrap();
        assert!(svg.contains("<polyline") && svg.trim_end().ends_with("</svg>"));
    }
}
