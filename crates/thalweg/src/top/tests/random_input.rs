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
            (link.utilisation, link.rate.rate_bps) = (f64::MAX, Some(-1.0));
            (link.capacity_bps, link.flows) = (u64::MAX, u32::MAX);
            link.changed = Some(Timestamp(u64::MAX).into());
            link.link = "ü".repeat(300);
        }
        for row in snapshot.details.on_link.iter_mut().flat_map(|on_link| &mut on_link.flows) {
            (row.flow.sampled_bytes, row.flow.repeated_bytes) = (1, u64::MAX);
            if let Some(rate_bps) = &mut row.flow.rate.rate_bps {
                *rate_bps = f64::MAX;
                row.flow.rate.rate_upper_bps = Some(f64::MAX);
            }
        }
        snapshot.collectors.iter_mut().for_each(|collector| collector.source = "long ".repeat(100));
        snapshot
    };
    let nothing = Snapshot { collectors: Vec::new(), responses: Vec::new(), links: Vec::new(), ..snapshot() };
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
            let kind = if width % 2 == 0 { MouseEventKind::Down(MouseButton::Left) } else { MouseEventKind::ScrollDown };
            // The keys are in the last line.
            for place @ (x, y) in [(width / 2, height / 2), (width / 3 + 12, height.saturating_sub(1))] {
                prop_assert!(view.mouse(mouse::mouse(kind, x, y)) != Action::Quit || is_part_of(&cells, "q quit", place));
            }
        }
    }
}
