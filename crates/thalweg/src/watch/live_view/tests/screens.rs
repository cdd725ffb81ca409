//! Screens.

use thalweg_watch::flow_capture::{FlowCaptureState, FlowCaptureStatus};

use super::*;

#[test]
fn the_main_view_matches_the_golden_screens() {
    for (width, height) in [(62, 12), (80, 24), (120, 40), (200, 50)] {
        check("main", &mut view(), width, height);
    }
}

#[test]
fn several_sources_match_the_golden_screens() {
    check("several_sources", &mut view_of(several_sources()), 80, 24);
    check("several_sources", &mut view_of(several_sources()), 80, 20);
}

#[test]
fn the_empty_view_matches_the_golden_screen() {
    check("empty", &mut LiveView::new(Theme::ANSI), 80, 24);
}

#[test]
fn a_small_screen_shows_the_minimum_size() {
    check("too_small", &mut view(), 59, 24);
    check("too_small", &mut view(), 80, 9);
    check("too_small", &mut view(), 40, 12);
    check("too_small", &mut view(), 20, 5);
}

#[test]
fn every_key_of_a_pane_is_visible_at_80_columns() {
    let last_line = |view: &mut LiveView| lines(&buffer(view, 80, 24)).pop().unwrap().trim_end().to_owned();
    let mut flows = view();
    assert_eq!(
        last_line(&mut flows),
        " q quit  ↵ open  / filter  s sort  b by  c cheetah  space pause  n names  ? help"
    );
    query_of(press(&mut flows, KeyCode::Enter));
    let detail = " q quit  esc back  w write packets  f capture filter  space pause  n names  ? help";
    let short = detail.replace("capture filter", "filter");
    assert_eq!(last_line(&mut flows), short);
    press_without_query(&mut flows, KeyCode::Char(' '));
    let paused = short.replace("write packets", "write").replace("pause", "resume");
    assert_eq!(last_line(&mut flows), format!(" PAUSED {paused}"));
    let mut with_tasks = view_of(with_tasks());
    let keys = " q quit  ↵ open  / filter  s sort  b by  c cheetah  t tasks  space pause  ? help";
    assert_eq!(last_line(&mut with_tasks), keys);
}

#[test]
fn the_help_matches_the_golden_screen() {
    let mut view = view();
    assert_eq!(press(&mut view, KeyCode::Char('?')), Action::None);
    check("help", &mut view, 80, 24);
}

#[test]
fn one_flow_matches_the_golden_screens() {
    let mut view = view();
    let query = query_of(press(&mut view, KeyCode::Enter));
    for n in 0..70 {
        let mut snapshot = snapshot();
        snapshot.top[0].traffic.rate =
            [BitRate(300_000_000 + n * n % 17 * 8_000_000), BitRate(2_000_000 + n * 20_000)];
        snapshot.pinned = snapshot.top.iter().find(|row| Some(row.key) == query.pinned).cloned();
        view.update(snapshot);
    }
    check("detail", &mut view, 80, 24);
    check("detail", &mut view, 120, 40);
    let filter = "tcp and ((src host 10.0.0.17 and dst host 192.168.100.200 and src port 51034 and dst port 5201) or \
                  (src host 192.168.100.200 and dst host 10.0.0.17 and src port 5201 and dst port 51034))";
    assert_eq!(press(&mut view, KeyCode::Char('f')), Action::Copy(filter.to_owned()));
    check("detail_filter", &mut view, 80, 24);
    check("detail_filter", &mut view, 120, 40);
    press_without_query(&mut view, KeyCode::Char('f'));
    view.update(Snapshot { top: Vec::new(), pinned: None, ..snapshot() });
    check("detail_ended", &mut view, 80, 24);
}

#[test]
fn the_cheetahs_match_the_golden_screens() {
    let mut view = view();
    assert_eq!(press(&mut view, KeyCode::Char('c')), Action::None);
    check("cheetahs", &mut view, 80, 24);
    check("cheetahs", &mut view, 120, 40);
}

#[test]
fn the_tasks_match_the_golden_screens() {
    for (width, height) in [(62, 12), (80, 24), (120, 40), (200, 50)] {
        let mut view = view_of(with_tasks());
        press_without_query(&mut view, KeyCode::Char('t'));
        check("tasks", &mut view, width, height);
    }
}

#[test]
fn one_task_matches_the_golden_screens() {
    let mut view = view_of(with_tasks());
    press_without_query(&mut view, KeyCode::Char('t'));
    press_without_query(&mut view, KeyCode::Enter);
    press_without_query(&mut view, KeyCode::Down);
    check("one_task", &mut view, 80, 24);
    press_without_query(&mut view, KeyCode::Esc);
    press_without_query(&mut view, KeyCode::Down);
    check("one_task_scalar", &mut view, 80, 24);
}

#[test]
fn without_a_flow_table_the_tasks_are_the_main_view() {
    check("no_table", &mut view_of(tasks_alone()), 80, 24);
    check("no_table", &mut view_of(tasks_alone()), 62, 12);
    let mut view = view_of(tasks_alone());
    for code in [KeyCode::Char('c'), KeyCode::Char('/'), KeyCode::Char('s'), KeyCode::Esc] {
        press_without_query(&mut view, code);
        assert!(screen(&mut view, 80, 24).contains(" tasks after 6 windows"), "{code:?}");
    }
}

#[test]
fn t_toggles_the_tasks() {
    let mut view = view_of(with_tasks());
    press_without_query(&mut view, KeyCode::Char('t'));
    assert!(screen(&mut view, 80, 24).contains(" tasks after 6 windows"));
    press_without_query(&mut view, KeyCode::Char('t'));
    assert!(screen(&mut view, 80, 24).contains("flows by rate"));
    let mut without = super::tests::view();
    press_without_query(&mut without, KeyCode::Char('t'));
    assert!(screen(&mut without, 80, 24).contains("flows by rate"));
}

#[test]
fn a_filter_error_matches_the_golden_screen() {
    let mut view = view();
    type_text(&mut view, "/proto tcp and net 10.0.0.0/40");
    press_without_query(&mut view, KeyCode::Enter);
    check("filter_error", &mut view, 80, 24);
}

#[test]
fn a_filtered_view_matches_the_golden_screen() {
    let mut view = view();
    type_text(&mut view, "/net 172.16/12 and bps > 1m");
    query_of(press(&mut view, KeyCode::Enter));
    check("filtered", &mut view, 80, 24);
}

#[test]
fn paused_and_ended_views_match_the_golden_screens() {
    let mut paused = view();
    assert_eq!(press(&mut paused, KeyCode::Char(' ')), Action::None);
    paused.update(Snapshot { packets: 1, top: Vec::new(), ..snapshot() });
    check("paused", &mut paused, 80, 24);
    assert_eq!(press(&mut paused, KeyCode::Char(' ')), Action::None);
    assert!(screen(&mut paused, 80, 24).contains("no live flows"), "it shows the latest state");

    let mut ended = view();
    ended.end();
    check("ended", &mut ended, 80, 24);
}

#[test]
fn only_losses_above_zero_are_red() {
    let calm = buffer(&mut view(), 80, 24);
    assert_eq!(calm[find(&calm, "kernel drops 0")].fg, Color::Reset);
    let lossy = buffer(&mut view_of(several_sources()), 80, 24);
    assert_eq!(lossy[find(&lossy, "kernel drops 1,234")].fg, Color::Red);
    assert_eq!(lossy[find(&lossy, "malformed 7")].fg, Color::Yellow);
    assert_eq!(lossy[find(&lossy, "12 evicted")].fg, Color::Yellow);
}

#[test]
fn counters_that_do_not_fit_are_counted() {
    let mut snapshot = snapshot();
    let labels =
        ["kernel drops", "untracked", "malformed", "evicted", "out of order", "bad length", "decapsulated"];
    snapshot.counters = labels
        .map(|label| Counter { label, count: 123_456_789, severity: Severity::Loss })
        .into_iter()
        .chain([Counter { label: "filtered", count: 0, severity: Severity::Note }])
        .collect();
    let line = &lines(&buffer(&mut view_of(snapshot), 80, 24))[6];
    assert_eq!(
        line.trim_end(),
        " kernel drops 123,456,789 · untracked 123,456,789 · evicted 123,456,789 +4 more",
    );
}

#[test]
fn only_the_cheetah_direction_is_marked() {
    let buffer = buffer(&mut view(), 80, 24);
    assert_eq!(buffer[find(&buffer, "412M")].fg, Color::Yellow);
    assert_ne!(buffer[find(&buffer, "3.21M")].fg, Color::Yellow);
    assert_eq!(buffer[find(&buffer, "▲ udp")].fg, Color::Yellow);
}

#[test]
fn the_plain_theme_has_no_colours_and_the_same_text() {
    let mut plain = LiveView::new(Theme::PLAIN);
    plain.update(several_sources());
    let plain = buffer(&mut plain, 120, 40);
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(plain[find(&plain, "kernel drops 1,234")].modifier.contains(Modifier::BOLD));
}

#[test]
fn any_rate_fits_its_columns() {
    // Without the rates and the bar, the row of one flow.
    let rest_of_row = |rate| {
        let mut snapshot = snapshot();
        snapshot.top[0].traffic.rate = [BitRate(rate), BitRate(rate / 3)];
        let lines = lines(&buffer(&mut view_of(snapshot), 80, 80));
        let row: Vec<char> =
            lines.iter().find(|line| line.contains("10.0.0.17:51034")).unwrap().chars().collect();
        (row[..52].to_vec(), row[69..].to_vec())
    };
    for rate in [1, 999, 1_000, 999_999, 54_321_000, u64::MAX] {
        assert_eq!(rest_of_row(rate), rest_of_row(100_000_000), "{rate}");
    }
}

#[test]
fn merged_frames_give_a_hint_on_tall_screens() {
    let mut snapshot = snapshot();
    snapshot.sources[0].merged = 41_234;
    snapshot.counters.push(Counter { label: "merged (GRO/TSO)", count: 41_234, severity: Severity::Note });
    check("merged", &mut view_of(snapshot.clone()), 120, 40);
    assert!(screen(&mut view_of(snapshot.clone()), 80, 24).contains("merged (GRO/TSO) 41,234"));
    snapshot.sources[0].state = SourceState::Reading;
    assert!(screen(&mut view_of(snapshot), 120, 40).contains("capture with GRO and TSO off"));
}

#[test]
fn w_writes_the_packets_of_a_flow_and_stops() {
    let mut view = view();
    query_of(press(&mut view, KeyCode::Enter));
    let request = query_of(press(&mut view, KeyCode::Char('w'))).capture.unwrap();
    assert_eq!(Some(request.key), view.query().pinned);
    let status = |state| FlowCaptureStatus {
        key: request.key.reversed(),
        path: "captures/tcp_10.0.0.17_51034_192.168.100.200_5201.pcapng".into(),
        packets: 1_234,
        bytes: Bytes(271_480),
        lost: 0,
        state,
    };
    let with = |state| {
        let pinned = snapshot().top.into_iter().find(|row| row.key == request.key);
        Snapshot { capture: Some(status(state)), pinned, ..snapshot() }
    };
    view.update(with(FlowCaptureState::Running));
    check("detail_capture", &mut view, 80, 24);
    check("detail_capture", &mut view, 120, 40);
    assert_eq!(query_of(press(&mut view, KeyCode::Char('w'))).capture, None);
    view.update(with(FlowCaptureState::Failed(
        "cannot create captures/x.pcapng: Permission denied".to_owned(),
    )));
    assert!(screen(&mut view, 80, 24).contains("cannot create captures/x.pcapng: Permission denied"));
    // After an error, it begins another file.
    let again = query_of(press(&mut view, KeyCode::Char('w'))).capture.unwrap();
    assert!(again.number > request.number);
}
