//! `flows.svg`: distributions of flow completion times and slowdowns, by size class.

use thalweg_plot::DrawError;
use thalweg_plot::axis::{Axis, extent};
use thalweg_plot::legend_table::LegendTable;
use thalweg_plot::page::{Heading, blank_page, page};
use thalweg_plot::panel::{Line, Panel};
use thalweg_plot::quantity::{duration, number, size};

use super::Times;
use crate::results::{FlowRow, SIZE_CLASSES, Spread, size_class};

/// The size of each of the two plots.
const PANEL: (u32, u32) = (490, 350);
/// The columns of the table below a plot, and their right ends.
const COLUMNS: [(&str, i32); 3] = [("flows", 300), ("median", 380), ("p99", 468)];

/// Completion times in nanoseconds and slowdowns of one class, and their distributions.
struct Class {
    style: usize,
    name: String,
    completions: Distribution,
    slowdowns: Distribution,
}

struct Distribution {
    sorted: Vec<f64>,
    spread: Spread,
}

pub(super) fn draw(title: &str, rows: &[FlowRow], times: Times) -> Result<String, DrawError> {
    let counted: Vec<&FlowRow> = rows.iter().filter(|row| row.start_ns >= times.warm_up_ns).collect();
    let title = format!("Flows: {title}");
    if counted.is_empty() {
        return blank_page(&Heading { title, subtitle: "No flow was completed.".to_owned() });
    }
    let classes: Vec<Class> = (0..SIZE_CLASSES.len()).filter_map(|index| class(index, &counted)).collect();
    let after = match times.warm_up_ns {
        0 => String::new(),
        warm_up => format!(", begun after the warm-up of {}", duration(warm_up as f64)),
    };
    let subtitle = format!("{} flows completed{after}", number(counted.len() as f64));
    let completion =
        panel("Share of flows completed within a time", "completion time", &classes, duration, |class| {
            &class.completions
        });
    let slowdown = panel(
        "Share of flows with at most a slowdown",
        "slowdown: completion time over that of the flow alone",
        &classes,
        number,
        |class| &class.slowdowns,
    );
    let below = LegendTable::<3>::height(classes.len());
    page(&Heading { title, subtitle }, (2 * PANEL.0, PANEL.1 + below), |body| {
        let (left, right) = body.split_horizontally(PANEL.0);
        for (area, panel) in [(&left, &completion), (&right, &slowdown)] {
            panel.draw(&area.split_vertically(PANEL.1).0)?;
        }
        table(&classes, duration, |class| &class.completions).draw(&left.split_vertically(PANEL.1).1)?;
        table(&classes, number, |class| &class.slowdowns).draw(&right.split_vertically(PANEL.1).1)
    })
}

/// The flows of one class; `None` if there are none.
fn class(index: usize, rows: &[&FlowRow]) -> Option<Class> {
    let flows = || rows.iter().filter(|row| size_class(row.bytes) == index);
    flows().next()?;
    // Slowdowns are NaN if the ideal time is unknown.
    let distribution = |number: fn(&FlowRow) -> f64| {
        let mut sorted: Vec<f64> =
            flows().map(|row| number(row)).filter(|number| number.is_finite()).collect();
        let spread = Spread::of(&mut sorted);
        Distribution { sorted, spread }
    };
    Some(Class {
        style: index,
        name: format!("{}, {}", SIZE_CLASSES[index].0, sizes_of_class(index)),
        completions: distribution(|row| row.fct_ns as f64),
        slowdowns: distribution(|row| row.slowdown),
    })
}

/// The sizes of a class as text.
pub(super) fn sizes_of_class(index: usize) -> String {
    match index {
        0 => format!("to {}", size(SIZE_CLASSES[index].1 as f64)),
        _ if index + 1 < SIZE_CLASSES.len() => "between".to_owned(),
        _ => format!("from {}", size((SIZE_CLASSES[index - 1].1 + 1) as f64)),
    }
}

fn panel(
    title: &str,
    x_title: &str,
    classes: &[Class],
    label: impl Fn(f64) -> String,
    distribution: impl Fn(&Class) -> &Distribution,
) -> Panel {
    let numbers = classes.iter().flat_map(|class| &distribution(class).sorted).copied();
    let (least, most) = extent(numbers.filter(|number| *number > 0.0));
    let x = Axis::logarithmic(least, most, label);
    let lines = classes.iter().map(|class| Line {
        style: class.style,
        points: steps(&distribution(class).sorted, &x),
        bars: Vec::new(),
    });
    Panel {
        title: title.to_owned(),
        x_title: x_title.to_owned(),
        lines: lines.collect(),
        x,
        y: Axis::share(),
        is_marked: false,
        is_joined: true,
    }
}

/// The empirical distribution function of `sorted` numbers.
fn steps(sorted: &[f64], x: &Axis) -> Vec<(f64, f64)> {
    let share = |count: usize| count as f64 / sorted.len() as f64;
    let steps = sorted.iter().enumerate().flat_map(|(below, number)| {
        let number = number.max(x.low());
        [(number, share(below)), (number, share(below + 1))]
    });
    steps.collect()
}

fn table(
    classes: &[Class],
    label: impl Fn(f64) -> String,
    distribution: impl Fn(&Class) -> &Distribution,
) -> LegendTable<3> {
    let row = |class: &Class| {
        let Distribution { sorted, spread } = distribution(class);
        let cells = match sorted.len() {
            0 => [0.0, f64::NAN, f64::NAN].map(number),
            flows => [number(flows as f64), label(spread.p50), label(spread.p99)],
        };
        (class.style, class.name.clone(), cells)
    };
    LegendTable { columns: COLUMNS, rows: classes.iter().map(row).collect() }
}
