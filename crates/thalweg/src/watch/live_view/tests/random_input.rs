//! Random keys, snapshots and screen sizes.

use super::*;

fn any_key() -> impl Strategy<Value = KeyCode> {
    let letters =
        prop::sample::select("?h /srSctjkgG1.:xbnNfb".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char);
    let named = prop::sample::select(vec![
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Backspace,
        KeyCode::Left,
        KeyCode::Tab,
    ]);
    prop_oneof![letters, named]
}

fn any_snapshot() -> impl Strategy<Value = Snapshot> {
    let extreme = |mut snapshot: Snapshot| {
        let max = u64::MAX;
        for row in &mut snapshot.top {
            let traffic = &mut row.traffic;
            (traffic.rate, traffic.bytes, traffic.packets) = ([BitRate(max); 2], [max; 2], [max; 2]);
            (traffic.first, traffic.last) = (Timestamp(max), Timestamp(0));
        }
        snapshot.bytes = Bytes(max);
        (snapshot.packets, snapshot.packet_rate, snapshot.bit_rate) = (max, f64::MAX, BitRate(max));
        (snapshot.flows_live, snapshot.flow_capacity, snapshot.flows_ended) = (max, 1, max);
        (snapshot.now, snapshot.history_slice) = (Timestamp(max), Nanos(max));
        snapshot.counters.iter_mut().for_each(|counter| counter.count = max);
        snapshot
    };
    prop_oneof![
        Just(snapshot()),
        Just(several_sources()),
        Just(with_groups()),
        Just(with_tasks()),
        Just(tasks_alone()),
        Just(Snapshot::default()),
        Just(extreme(several_sources())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_key_snapshot_or_size_causes_a_panic(
        steps in prop::collection::vec((any_key(), any_snapshot(), 0..230u16, 0..60u16), 1..12),
    ) {
        let mut view = LiveView::new(Theme::ANSI);
        for (code, snapshot, width, height) in steps {
            let action = press(&mut view, code);
            prop_assert!(action != Action::Quit);
            if let Action::Query(query) = action {
                prop_assert_eq!(&query, view.query());
            }
            view.update(snapshot);
            let cells = buffer(&mut view, width, height);
            let kind = if width % 2 == 0 { MouseEventKind::Down(MouseButton::Left) } else { MouseEventKind::ScrollDown };
            // The keys are in the last line.
            for place @ (x, y) in [(width / 2, height / 2), (width / 3 + 12, height.saturating_sub(1))] {
                prop_assert!(view.mouse(mouse(kind, x, y)) != Action::Quit || is_part_of(&cells, "q quit", place));
            }
        }
    }
}
