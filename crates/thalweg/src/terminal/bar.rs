//! Bars of block characters with eight steps per column, and gauges.

use ratatui::style::{Modifier, Style};
use ratatui::text::Span;

use super::theme::Theme;

/// Left blocks of one to eight eighths.
const EIGHTHS: [&str; 8] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// Returns a bar of `width` columns with both rates of a flow, outward first. `top` fills the bar. Any rate above zero
/// shows at least one eighth of a column.
pub(crate) fn stacked(theme: Theme, rate: [u64; 2], top: u64, width: u16) -> Vec<Span<'static>> {
    let total = eighths(u128::from(rate[0]) + u128::from(rate[1]), top, width);
    let outward = eighths(u128::from(rate[0]), top, width).min(total);
    let columns = (0..usize::from(width)).map(|column| 8 * column).take_while(|start| *start < total);
    let mut spans: Vec<Span> = columns
        .map(|start| column(theme, outward.saturating_sub(start).min(8), (total - start).min(8)))
        .collect();
    spans.push(Span::raw(" ".repeat(usize::from(width).saturating_sub(spans.len()))));
    // In a reversed row, filled columns would look empty.
    spans.into_iter().map(|span| span.patch_style(Style::new().remove_modifier(Modifier::REVERSED))).collect()
}

/// Returns one column with `filled` eighths, of which `outward` are from the initiator. A column has at most two colours, so
/// a partly filled one with both directions has the colour of the larger part.
fn column(theme: Theme, outward: usize, filled: usize) -> Span<'static> {
    let both = outward > 0 && outward < filled;
    if both && filled == 8 && theme.is_coloured() {
        let style = Style { bg: theme.inward().fg, ..theme.outward() };
        return Span::styled(EIGHTHS[outward - 1], style);
    }
    let style = if 2 * outward >= filled { theme.outward() } else { theme.inward() };
    Span::styled(EIGHTHS[filled - 1], style)
}

fn eighths(rate: u128, top: u64, width: u16) -> usize {
    let full = 8 * u128::from(width);
    let share = (rate * full).checked_div(u128::from(top)).unwrap_or(0).min(full) as usize;
    if rate > 0 && top > 0 { share.max(1) } else { 0 }
}

/// Returns a bar of `width` columns in one style, filled by `fraction`; full above 1, never empty above 0.
pub(crate) fn single(fraction: f64, width: u16, style: Style) -> Span<'static> {
    const WHOLE: u64 = 1 << 32;
    let filled = eighths((fraction.clamp(0.0, 1.0) * WHOLE as f64).ceil() as u128, WHOLE, width);
    let part = if filled.is_multiple_of(8) { "" } else { EIGHTHS[filled % 8 - 1] };
    let text = format!("{}{part}", EIGHTHS[7].repeat(filled / 8));
    let style = style.remove_modifier(Modifier::REVERSED | Modifier::BOLD);
    Span::styled(format!("{text:<width$}", width = usize::from(width)), style)
}

/// Returns a line of `width` columns, filled by `fraction`.
pub(crate) fn gauge(theme: Theme, fraction: f64, width: u16, style: Style) -> [Span<'static>; 2] {
    let filled = ((fraction * f64::from(width)).round() as usize).min(usize::from(width));
    [
        Span::styled("━".repeat(filled), style.remove_modifier(Modifier::BOLD)),
        Span::styled("─".repeat(usize::from(width) - filled), theme.muted()),
    ]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(spans: &[Span]) -> String {
        spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn a_bar_is_proportional_to_the_rate() {
        assert_eq!(text(&stacked(Theme::PLAIN, [100, 0], 100, 4)), "████");
        assert_eq!(text(&stacked(Theme::PLAIN, [25, 25], 100, 4)), "██  ");
        assert_eq!(text(&stacked(Theme::PLAIN, [1, 0], 1_000_000, 4)), "▏   ");
        assert_eq!(text(&stacked(Theme::PLAIN, [0, 0], 100, 4)), "    ");
        assert_eq!(text(&stacked(Theme::PLAIN, [0, 0], 0, 4)), "    ");
        let single = |fraction| single(fraction, 4, Style::new()).content.into_owned();
        assert_eq!(
            [0.0, 1e-12, 0.5, 0.54, 1.0, 9.0].map(single),
            ["    ", "▏   ", "██  ", "██▏ ", "████", "████"]
        );
        assert_eq!(text(&gauge(Theme::PLAIN, 0.5, 4, Style::new())), "━━──");
    }

    proptest! {
        #[test]
        fn a_bar_always_has_its_width(outward: u64, inward: u64, top: u64, width in 0..40u16) {
            for theme in [Theme::PLAIN, Theme::ANSI] {
                let spans = stacked(theme, [outward, inward], top, width);
                prop_assert_eq!(text(&spans).chars().count(), usize::from(width));
            }
        }
    }
}
