//! The live view: rates, losses by cause, storage, and a line per exporter.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};
use thalweg_records::collect::ExporterReport;
use thalweg_wire::{Bytes, Nanos};

use super::status::Status;
use super::text::name;
use crate::terminal::keys::{KeyHint, StateHint, draw_keys};
use crate::terminal::quantity::{age, grouped, short};
use crate::terminal::screen::{draw_history, draw_too_small, is_too_small, right, rule};
use crate::terminal::{Action, Theme, View};

/// Values of the sparkline: more than the columns of the widest terminal.
const HISTORY: usize = 512;

/// The keys, the most important last.
const KEYS: [KeyHint; 3] = [
    KeyHint::arrows("scroll"),
    KeyHint::new(KeyCode::Char('r'), "r", "sort by rate").short("sort"),
    KeyHint::new(KeyCode::Char('q'), "q", "stop and report").short("stop"),
];

/// Identifies an observation domain of an exporter.
type Key = (std::net::IpAddr, u32, thalweg_wire::flow_export::Format);

/// The live view.
pub(super) struct CollectView {
    theme: Theme,
    directory: PathBuf,
    status: Status,
    /// Records per second, newest first.
    history: VecDeque<u64>,
    records: BTreeMap<Key, u64>,
    rates: BTreeMap<Key, f64>,
    first_row: usize,
    is_sorted_by_rate: bool,
    has_ended: bool,
}

impl CollectView {
    /// Creates an empty view.
    pub(super) fn new(theme: Theme, directory: &Path) -> CollectView {
        CollectView {
            theme,
            directory: directory.to_owned(),
            status: Status::default(),
            history: VecDeque::new(),
            records: BTreeMap::new(),
            rates: BTreeMap::new(),
            first_row: 0,
            is_sorted_by_rate: false,
            has_ended: false,
        }
    }

    fn header(&self) -> Vec<Line<'static>> {
        let (theme, report) = (self.theme, &self.status.report);
        let strong = |text: String| Span::styled(text, theme.strong());
        let muted = |text: &str| Span::styled(text.to_owned(), theme.muted());
        let (rates, flows) = (self.status.rates, &report.flows);
        let mut lines = vec![
            Line::from(vec![
                strong(format!(" {:>6}", short(rates.records.round() as u64))),
                muted(" records/s  "),
                strong(format!("{:>6}", short(rates.datagrams.round() as u64))),
                muted(" datagrams/s  "),
                strong(format!("{:>9}", Bytes(rates.bytes.round() as u64).to_string())),
                muted("/s   "),
                strong(grouped(report.records())),
                muted(" records in total"),
            ]),
            self.losses(),
            Line::from(vec![
                muted(" disk   "),
                Span::raw(format!("{} in {} files", Bytes(flows.bytes), grouped(flows.files))),
                muted(", pending: "),
                Span::raw(format!("{} in memory, {} in spool", short(flows.queued), short(flows.in_spool))),
                muted("  "),
                Span::raw(self.directory.display().to_string()),
            ]),
            match &flows.last_error {
                Some(error) => Line::styled(format!(" {error}"), theme.loss()),
                None => Line::default(),
            },
        ];
        lines.extend(self.kafka());
        lines
    }

    /// Returns the line of Kafka with its last error, if Kafka is in use.
    fn kafka(&self) -> Option<Line<'static>> {
        let kafka = self.status.report.kafka.as_ref()?;
        let error = kafka.last_error.as_deref().unwrap_or_default();
        Some(Line::from(vec![
            Span::styled(" kafka  ", self.theme.muted()),
            Span::raw(format!("{} acknowledged", grouped(kafka.delivered))),
            Span::styled(", pending: ", self.theme.muted()),
            Span::raw(format!("{}  ", short(kafka.queued))),
            Span::styled(error.to_owned(), self.theme.loss()),
        ]))
    }

    /// Returns the losses by cause, those above zero in red.
    fn losses(&self) -> Line<'static> {
        let losses = self.status.report.losses();
        let mut spans = vec![Span::styled(" lost   ".to_owned(), self.theme.muted())];
        let kafka = self.status.report.kafka.as_ref().map(|_| ("kafka", losses.kafka_records));
        let places = [
            ("kernel", losses.kernel_datagrams),
            ("network", losses.sequence_gaps),
            ("unreadable", losses.unreadable_messages),
            ("no template", losses.sets_without_template),
            ("store", losses.stored_records),
            ("refused", losses.connections_refused),
        ];
        for (place, count) in places.into_iter().chain(kafka) {
            let style = if count > 0 { self.theme.loss() } else { self.theme.muted() };
            spans.push(Span::styled(format!("{place} {}   ", short(count)), style));
        }
        Line::from(spans)
    }

    fn rows(&self) -> Vec<(&ExporterReport, f64)> {
        let rate = |row: &ExporterReport| self.rates.get(&key(row)).copied().unwrap_or_default();
        let mut rows: Vec<_> = self.status.report.exporters.iter().map(|row| (row, rate(row))).collect();
        if self.is_sorted_by_rate {
            rows.sort_by(|one, other| other.1.total_cmp(&one.1));
        }
        rows
    }

    fn draw_exporters(&self, frame: &mut Frame, area: Rect) {
        let now = self.status.time;
        let widths = [24, 9, 10, 7, 7, 7, 7, 6, 5].map(Constraint::Length);
        let titles =
            ["exporter", "format", "domain", "sampling", "rec/s", "records", "lost", "templ.", "last"];
        let rows = self.rows().into_iter().skip(self.first_row).map(|(row, rate)| {
            let sampling =
                if row.sampling_interval == 0 { "-".into() } else { short(row.sampling_interval.into()) };
            let lost = Line::styled(
                short(row.counts.lost),
                if row.counts.lost > 0 { self.theme.loss() } else { self.theme.muted() },
            );
            Row::new(vec![
                Line::from(name(row)),
                Line::from(row.format.name()),
                right(row.observation_domain_id.to_string()),
                right(sampling),
                right(short(rate.round() as u64)),
                right(short(row.counts.records)),
                lost.right_aligned(),
                right(row.templates.to_string()),
                right(age(Nanos(now.since(row.last_received).0))),
            ])
        });
        let header = Row::new(titles.map(Line::from)).style(self.theme.muted());
        frame.render_widget(Table::new(rows, widths).header(header), area);
    }
}

fn key(row: &ExporterReport) -> Key {
    (row.from, row.observation_domain_id, row.format)
}

impl View for CollectView {
    type Update = Status;
    type Query = ();

    fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        if is_too_small(area) {
            return draw_too_small("q stops.", frame, area);
        }
        let header = self.header();
        let areas: [Rect; 5] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(header.len() as u16),
            Constraint::Length(2),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(area);
        let theme = self.theme;
        let title = Line::from(vec![Span::styled(" thalweg ", theme.badge()), Span::raw(" collect ")]);
        let elapsed = Nanos(self.status.elapsed.as_nanos().min(u64::MAX.into()) as u64);
        let right = Line::from(format!(" {} ", age(elapsed)));
        frame.render_widget(rule(theme, title, right), areas[0]);
        frame.render_widget(Paragraph::new(header), areas[1]);
        draw_history(frame, areas[2], self.history.iter().copied().collect(), theme.outward());
        self.draw_exporters(frame, areas[3]);
        let ended = self.has_ended.then_some(StateHint::new(" ENDED ", ""));
        draw_keys(theme, ended.as_slice(), &KEYS, frame, areas[4]);
    }

    fn update(&mut self, status: Status) {
        let span = status.elapsed.saturating_sub(self.status.elapsed).as_secs_f64().max(1e-3);
        let rows = status.report.exporters.iter();
        let mut records = BTreeMap::new();
        rows.for_each(|row| *records.entry(key(row)).or_default() += row.counts.records);
        let before = |key: &Key| self.records.get(key).copied().unwrap_or_default();
        self.rates = records
            .iter()
            .map(|(key, &count): (&Key, &u64)| (*key, count.saturating_sub(before(key)) as f64 / span))
            .collect();
        self.records = records;
        self.history.push_front(status.rates.records.round() as u64);
        self.history.truncate(HISTORY);
        self.first_row = self.first_row.min(status.report.exporters.len().saturating_sub(1));
        self.status = status;
    }

    fn end(&mut self) {
        self.has_ended = true;
    }

    fn key(&mut self, key: KeyEvent) -> Action<()> {
        if key.kind == KeyEventKind::Release {
            return Action::None;
        }
        let last = self.status.report.exporters.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Action::Quit,
            KeyCode::Char('r') => self.is_sorted_by_rate = !self.is_sorted_by_rate,
            KeyCode::Up | KeyCode::Char('k') => self.first_row = self.first_row.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.first_row = (self.first_row + 1).min(last),
            KeyCode::Home => self.first_row = 0,
            KeyCode::End => self.first_row = last,
            _ => {}
        }
        Action::None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thalweg_records::collect::Report;
    use thalweg_wire::Timestamp;
    use thalweg_wire::flow_export::decode::{Counts, Transport};
    use thalweg_wire::flow_export::{Address, Format};

    use super::*;
    use crate::terminal::test_screen::screen;

    fn exporter(last: u8, records: u64, lost: u64) -> ExporterReport {
        ExporterReport {
            from: [10, 0, 0, last].into(),
            exporter: Address::v4(0x0A00_0000 + u32::from(last)),
            format: Format::NetFlow9,
            transport: Transport::Datagram,
            observation_domain_id: 7,
            sessions: 1,
            sampling_interval: 1000,
            templates: 3,
            last_received: Timestamp::new(1_795_255_210, 0),
            counts: Counts { records, lost, messages: records / 30, ..Counts::default() },
        }
    }

    fn status(seconds: u64, before: &Status) -> Status {
        let exporters = vec![exporter(1, 1_000_000 * seconds, 0), exporter(2, 3_000_000 * seconds, 17)];
        let report = Report { exporters, ..Report::default() };
        Status::after(
            before,
            report,
            Duration::from_secs(seconds),
            Timestamp::new(1_795_255_210 + seconds, 0),
        )
    }

    #[test]
    fn the_screen_shows_rates_losses_and_exporters() {
        let mut view = CollectView::new(Theme::PLAIN, Path::new("/var/lib/flows"));
        let first = status(1, &Status::default());
        view.update(first.clone());
        view.update(status(2, &first));
        let text = screen(&mut view, 100, 20);
        assert!(text.contains("4.00M records/s") && text.contains("8,000,000 records in total"), "{text}");
        assert!(text.contains("network 17") && text.contains("/var/lib/flows"), "{text}");
        let line =
            |text: &str, exporter: &str| text.lines().position(|line| line.starts_with(exporter)).unwrap();
        assert!(line(&text, "10.0.0.1") < line(&text, "10.0.0.2"), "{text}");
        let by_rate = view.key(KeyEvent::new(KeyCode::Char('r'), KeyModifiers::NONE));
        assert_eq!(by_rate, Action::None);
        let text = screen(&mut view, 100, 20);
        assert!(line(&text, "10.0.0.2") < line(&text, "10.0.0.1"), "{text}");
        let row = text.lines().find(|line| line.starts_with("10.0.0.2")).unwrap();
        assert!(row.contains("3.00M") && row.contains("6.00M") && row.contains("2.0s"), "{row}");
        assert_eq!(view.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Action::Quit);
    }
}
