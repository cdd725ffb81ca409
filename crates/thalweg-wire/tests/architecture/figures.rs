//! Figures in documents are those of the result pages in `bench/results`.
//!
//! A figure or a table stands between `<!-- figure:NAME -->` and `<!-- /figure:NAME -->`. They are written anew by
//! `THALWEG_REFRESH_GOLDEN=1 cargo test -p thalweg-wire --test architecture`.

use std::fmt::Write as _;
use std::fs;

use crate::crates::{replace_between, root};

/// A page with results: text and tables.
struct Page {
    /// Path within the repository.
    path: String,
    text: String,
}

/// The rows of a table, the header first, without the line below it.
type Rows<'a> = Vec<Vec<&'a str>>;

impl Page {
    /// The newest page of a subject.
    fn newest(subject: &str) -> Page {
        let ending = format!("-{subject}.md");
        let is_dated =
            |name: &str| name.strip_suffix(&ending).is_some_and(|date| date.len() == "2026-11-22".len());
        let names = fs::read_dir(root().join("bench/results")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let name = names.filter(|name| is_dated(name)).max().unwrap_or_else(|| panic!("no page *{ending}"));
        let path = format!("bench/results/{name}");
        let text = fs::read_to_string(root().join(&path)).unwrap();
        Page { path, text }
    }

    fn date(&self) -> &str {
        &self.path["bench/results/".len()..][.."2026-11-22".len()]
    }

    /// The first table with this cell in its header, below the heading.
    fn table(&self, heading: &str, cell: &str) -> Rows<'_> {
        let below = self.text.find(heading).unwrap_or_else(|| panic!("{} lacks {heading:?}", self.path));
        let lines = self.text[below..].lines();
        let is_header = |line: &&str| line.starts_with('|') && cells(line).contains(&cell);
        let rows = lines.skip_while(|line| !is_header(line)).take_while(|line| line.starts_with('|'));
        let rows: Rows<'_> = rows.filter(|line| !line.contains("---")).map(cells).collect();
        assert!(!rows.is_empty(), "{} has no table with {cell:?} below {heading:?}", self.path);
        rows
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

/// The cell of a column in the first row that begins with these cells.
fn cell<'a>(rows: &Rows<'a>, row: &[&str], column: &str) -> &'a str {
    let column =
        rows[0].iter().position(|name| *name == column).unwrap_or_else(|| panic!("no column {column:?}"));
    let row = rows.iter().find(|cells| cells.starts_with(row)).unwrap_or_else(|| panic!("no row {row:?}"));
    row[column]
}

fn number(text: &str) -> f64 {
    text.replace(',', "").parse().unwrap_or_else(|_| panic!("expected a number, got {text:?}"))
}

/// Whole from 10 on, else with one decimal.
fn short(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Packet rates of flow meters, for the README.
fn meters() -> String {
    let page = Page::newest("meters");
    let small = page.table("## 10,000,000 packets", "contender");
    let large = page.table("## 38,000,000 packets", "contender");
    let truth = cell(&small, &["the truth"], "biflows");
    let mut text = "\n| program | 10 M packets | 38 M packets | Thalweg's speedup | memory |\n|---|---:|---:|---:|---:|\n".to_owned();
    for (row, name) in [
        ("thalweg watch", "`thalweg watch`"),
        ("plain HashMap", "a plain `HashMap`"),
        ("nfpcapd", "nfpcapd"),
        ("softflowd", "softflowd"),
    ] {
        let of = |rows, column| cell(rows, &[row], column);
        let rate = |rows| format!("{:.1} M/s", number(of(rows, "M packets/s (processor)")));
        let factors = match row {
            "thalweg watch" => String::new(),
            _ => format!(
                "{} to {}",
                short(number(of(&small, "ours / theirs"))),
                short(number(of(&large, "ours / theirs")))
            ),
        };
        let (least, most) = (of(&small, "peak memory, MiB"), of(&large, "peak memory, MiB"));
        let memory = if least == most { format!("{least} MiB") } else { format!("{least} to {most} MiB") };
        writeln!(text, "| {name} | {} | {} | {factors} | {memory} |", rate(&small), rate(&large)).unwrap();
    }
    let machine = page.text.lines().nth(2).unwrap().split(", ").nth(1).unwrap().replace("(R)", "");
    writeln!(
        text,
        "\nAll four find the same number of flows: {truth} and {}. One {machine}, {}; [the page of that run]({}).\nThalweg also detects \
         cheetah flows in this run.",
        cell(&large, &["the truth"], "biflows"),
        page.date(),
        page.path
    )
    .unwrap();
    text
}

/// Milliseconds from a collision to the new path in the lab, as a link.
fn reaction() -> String {
    let page = Page::newest("structure");
    let rows = page.table("## `thalweg lab run collide", "p50");
    format!("[{:.1} ms]({})", number(cell(&rows, &["after"], "p50")), page.path)
}

/// How many times as fast as ns-3 the emulator is, with devices alone.
fn ns3() -> String {
    let page = Page::newest("emulator");
    let rows = page.table("## Beside ns-3", "Thalweg is faster by");
    format!(
        "[{} times as fast]({})",
        cell(&rows, &["ns-3, devices alone"], "Thalweg is faster by"),
        page.path
    )
}

/// Bytes of a record in Parquet in the measured run.
const BYTES_PER_RECORD: f64 = 28.7;
/// Engines and the millions of records they had.
const ENGINES: [(&str, &str); 4] = [("native", "20"), ("duckdb", "20"), ("clickhouse", "20"), ("spark", "2")];

/// Measured speed and memory of engines, for the guide to clusters.
fn engines() -> String {
    let page = Page::newest("records-engines");
    assert!(page.text.contains(&format!("records of {BYTES_PER_RECORD} bytes")), "{}", page.path);
    let rows = page.table("# Records: engines", "engine");
    let mut text = "\n| engine | reconstruct, M records per CPU-second | top, M records per CPU-second | series, M records per \
                    CPU-second | memory of reconstruct, MiB | scratch, bytes per record |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for (engine, records) in ENGINES {
        let name = format!("`{engine}`");
        let of = |analysis, column| cell(&rows, &[&name, analysis, records], column);
        let rate = |analysis| significant(number(records) / number(of(analysis, "CPU, s")));
        let memory = of("reconstruct", "memory, MiB");
        let scratch = of("reconstruct", "scratch, bytes a record");
        writeln!(
            text,
            "| {name} | {} | {} | {} | {memory} | {scratch} |",
            rate("reconstruct"),
            rate("top"),
            rate("series")
        )
        .unwrap();
    }
    text + "\n"
}

/// What a day of records takes, for the guide to clusters.
fn sizing() -> String {
    const DAY: f64 = 86_400.0;
    const RATES: [f64; 3] = [1e3, 1e4, 1e5];
    let page = Page::newest("records-engines");
    let rows = page.table("# Records: engines", "engine");
    let mut text =
        "\n| what | formula | R = 1,000 | R = 10,000 | R = 100,000 |\n|---|---|---|---|---|\n".to_owned();
    let mut line = |what: &str, formula: &str, value: &dyn Fn(f64) -> String| {
        let [small, middle, large] = RATES.map(value);
        writeln!(text, "| {what} | {formula} | {small} | {middle} | {large} |").unwrap();
    };
    line("records per day", "86,400 R", &|rate| format!("{} M", grouped(DAY * rate / 1e6)));
    line("Parquet per day", &format!("86,400 R x {BYTES_PER_RECORD} bytes"), &|rate| {
        bytes(DAY * rate * BYTES_PER_RECORD)
    });
    for (engine, records) in ENGINES {
        let speed = number(cell(&rows, &[&format!("`{engine}`"), "reconstruct", records], "CPU, s"));
        let speed = number(records) / speed;
        let what = if engine == "native" { "core-minutes to reconstruct one day" } else { "the same" };
        line(
            &format!("{what}, `{engine}`"),
            &format!("86,400 R / (60 x {} M)", significant(speed)),
            &|rate| {
                let minutes = DAY * rate / (60.0 * speed * 1e6);
                if minutes < 10.0 { format!("{minutes:.1}") } else { grouped(minutes) }
            },
        );
    }
    for (engine, records) in ENGINES {
        let per_record =
            cell(&rows, &[&format!("`{engine}`"), "reconstruct", records], "scratch, bytes a record");
        let what = if engine == "native" { "scratch for one day" } else { "the same" };
        line(&format!("{what}, `{engine}`"), &format!("86,400 R x {per_record} bytes"), &|rate| {
            bytes(DAY * rate * number(per_record))
        });
    }
    text + "\n"
}

/// Two significant digits.
fn significant(value: f64) -> String {
    let decimals = (1.0 - value.log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$}")
}

fn bytes(value: f64) -> String {
    let (value, unit) = if value < 1e12 { (value / 1e9, "GB") } else { (value / 1e12, "TB") };
    format!("{} {unit}", short(value))
}

/// Rounded, with commas between thousands.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn figures_are_those_of_the_newest_results() {
    for (document, name, figure) in [
        ("README.md", "meters", meters()),
        ("README.md", "reaction", reaction()),
        ("README.md", "ns3", ns3()),
        ("docs/guides/clusters.md", "engines", engines().replace("bench/", "../../bench/")),
        ("docs/guides/clusters.md", "sizing", sizing()),
    ] {
        let (begin, end) = (format!("<!-- figure:{name} -->"), format!("<!-- /figure:{name} -->"));
        let is_table = figure.starts_with('\n');
        let begin = if is_table { begin + "\n" } else { begin };
        replace_between(document, &begin, &end, &figure);
    }
}
