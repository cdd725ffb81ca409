//! Random keys, updates and screen sizes.

use super::*;

fn any_key() -> impl Strategy<Value = KeyCode> {
    let letters =
        prop::sample::select("?h /srSejkgG1.:x".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char);
    let named = prop::sample::select(vec![
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Backspace,
        KeyCode::Left,
    ]);
    prop_oneof![letters, named]
}

fn any_update() -> impl Strategy<Value = Update> {
    let extreme = |mut snapshot: Snapshot| {
        for link in &mut snapshot.links {
            (link.utilisation, link.rate_bps.value) = (f64::MAX, -1.0);
            (link.capacity_bps, link.flows, link.changed.time_ns) = (u64::MAX, u32::MAX, u64::MAX);
            link.link = "ü".repeat(300);
        }
        for row in snapshot.details.on_link.iter_mut().flat_map(|on_link| &mut on_link.flows) {
            (row.flow.sampled_bytes, row.flow.repeated_bytes) = (1, u64::MAX);
            row.flow.rate_bps = row.flow.rate_bps.take().map(|mut rate| {
                (rate.value, rate.upper) = (f64::MAX, Some(f64::MAX));
                rate
            });
        }
        snapshot.collectors.iter_mut().for_each(|collector| collector.source = "long ".repeat(100));
        snapshot
    };
    let nothing = Snapshot { collectors: Vec::new(), answered: Vec::new(), links: Vec::new(), ..snapshot() };
    prop_oneof![
        Just(polled(snapshot())),
        Just(polled(extreme(snapshot()))),
        Just(polled(Snapshot { details: Details::default(), ..nothing })),
        Just(Update::Details(Box::new(on_link("tor0:p1:in", flows())))),
        Just(poll_error()),
        prop::sample::select(events()),
        Just(Update::Unsubscribed { error: "gone".repeat(100), retry_in: Duration::MAX }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_key_update_or_size_causes_a_panic(
        steps in prop::collection::vec((any_key(), any_update(), 0..230u16, 0..60u16), 1..12),
    ) {
        let mut view = TopView::new(Theme::ANSI, "http://127.0.0.1:9477");
        for (code, update, width, height) in steps {
            prop_assert!(press(&mut view, code) != Action::Quit);
            view.update(update);
            let cells = buffer(&mut view, width, height);
            prop_assert_eq!(lines(&cells).len(), usize::from(height));
        }
    }
}
