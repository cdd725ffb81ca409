//! Renders frames as text and compares them with golden files.

use std::path::PathBuf;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::View;

/// Renders a frame.
pub(crate) fn buffer(view: &mut impl View, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// Returns the lines of a frame, padded to its width.
pub(crate) fn lines(buffer: &Buffer) -> Vec<String> {
    let row = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..buffer.area.height).map(row).collect()
}

/// Renders a frame as text without trailing blanks.
pub(crate) fn screen(view: &mut impl View, width: u16, height: u16) -> String {
    lines(&buffer(view, width, height)).iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Returns the position of `text` on the screen.
#[track_caller]
pub(crate) fn find(buffer: &Buffer, text: &str) -> (u16, u16) {
    let column = |line: &String| line.find(text).map(|at| line[..at].chars().count());
    let found = lines(buffer).iter().enumerate().find_map(|(y, line)| Some((column(line)?, y)));
    let (x, y) = found.unwrap_or_else(|| panic!("no {text:?} on the screen"));
    (x as u16, y as u16)
}

/// Returns whether the cell at a position is part of `text`.
pub(crate) fn is_part_of(buffer: &Buffer, text: &str, (x, y): (u16, u16)) -> bool {
    let lines = lines(buffer);
    let Some(line) = lines.get(usize::from(y)) else { return false };
    let columns = |(at, _): (usize, &str)| {
        let first = line[..at].chars().count();
        first..first + text.chars().count()
    };
    line.match_indices(text).map(columns).any(|columns| columns.contains(&usize::from(x)))
}

/// Compares a frame with `NAME_WIDTHxHEIGHT.txt` in a folder of `src/`. Writes the file if THALWEG_REFRESH_GOLDEN is set.
#[track_caller]
pub(crate) fn check(folder: &str, name: &str, view: &mut impl View, width: u16, height: u16) {
    let actual = screen(view, width, height);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src").join(folder);
    let path = folder.join(format!("{name}_{width}x{height}.txt"));
    if std::env::var_os("THALWEG_REFRESH_GOLDEN").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(actual == expected, "{} differs; actual:\n{actual}\nexpected:\n{expected}", path.display());
}
