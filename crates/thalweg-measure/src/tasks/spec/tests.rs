use proptest::prelude::*;

use super::*;
use crate::tasks::{
    ChangeTask, DistinctTask, EntropyTask, HeavyTask, HierarchyTask, MomentsTask, PrefixLengths, Share, Side,
    SpreadTask,
};
use thalweg_wire::Nanos;

fn any_key() -> impl Strategy<Value = KeyDefinition> {
    let side = || prop_oneof![Just(Side::Source), Just(Side::Destination)];
    prop_oneof![
        Just(KeyDefinition::FiveTuple),
        side().prop_map(KeyDefinition::Address),
        Just(KeyDefinition::DestinationPort),
        (side(), 1..=32u8, 1..=128u8)
            .prop_map(|(side, v4, v6)| KeyDefinition::Prefix(side, PrefixLengths::new(v4, v6).unwrap())),
    ]
}

fn any_spec() -> impl Strategy<Value = TaskSpec> {
    let weight = prop_oneof![Just(Weight::Packets), Just(Weight::Bytes)];
    let share = (0.0..100.0f64).prop_filter_map("a share is above zero", Share::from_percent);
    // Durations are parsed as f64, which holds integers up to 2^53.
    (0..7, any_key(), weight, share, 1..1u64 << 53, any::<u64>()).prop_map(
        |(kind, key, weight, share, period, threshold)| {
            let side = key.side().unwrap_or(Side::Destination);
            match kind {
                0 => TaskSpec::Heavy(HeavyTask { share, key, weight }),
                1 => TaskSpec::Change(ChangeTask { period: Nanos(period), share, key, weight }),
                2 => TaskSpec::Distinct(DistinctTask { key }),
                3 => TaskSpec::Entropy(EntropyTask { key }),
                4 if key.side().is_some() => TaskSpec::Spread(SpreadTask { key, side, threshold }),
                5 => TaskSpec::Moments(MomentsTask { key, weight }),
                _ => TaskSpec::Hierarchy(HierarchyTask { share, side, weight }),
            }
        },
    )
}

proptest! {
    #[test]
    fn tasks_parse_back_from_their_display(specs in prop::collection::vec(any_spec(), 0..5)) {
        let list = TaskList(specs);
        prop_assert_eq!(list.to_string().parse(), Ok(list));
    }

    #[test]
    fn parsing_never_panics(text in ".*") {
        let _ = text.parse::<TaskList>();
    }
}

fn read(text: &str) -> TaskSpec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    text.parse::<TaskList>().unwrap_err().to_string()
}

#[test]
fn documented_tasks_are_parsed() {
    let list: TaskList = "heavy:0.1%,entropy:src,distinct:5tuple,change:30s,spread:dst>1000".parse().unwrap();
    assert_eq!(list.to_string(), "heavy:0.1%,entropy:src,distinct,change:30s,spread:dst>1000");
    let key = KeyDefinition::FiveTuple;
    assert_eq!(
        list.0[..1],
        [TaskSpec::Heavy(HeavyTask {
            share: Share::from_percent(0.1).unwrap(),
            key,
            weight: Weight::Packets
        })]
    );
    let share = ChangeTask::DEFAULT_SHARE;
    assert_eq!(
        list.0[3],
        TaskSpec::Change(ChangeTask { period: Nanos::from_secs(30), share, key, weight: Weight::Packets })
    );
    let key = KeyDefinition::Address(Side::Destination);
    assert_eq!(list.0[4], TaskSpec::Spread(SpreadTask { key, side: Side::Destination, threshold: 1000 }));
}

#[test]
fn defaults_may_be_explicit() {
    for (long, short) in [
        ("heavy:0.001", "heavy:0.1%"),
        ("heavy: 1 % :5tuple:packets", "heavy:1%"),
        ("heavy:1%:bytes:src/24", "heavy:1%:src/24:bytes"),
        ("heavy:1%:src/24/48", "heavy:1%:src/24"),
        ("change:30s>1%", "change:30s"),
        ("change:120s > 5%:dst", "change:2m>5%:dst"),
        ("spread:src", "spread:src>1000"),
        ("hhh:1%:src:packets", "hhh:1%"),
        ("moments:5tuple", "moments"),
    ] {
        assert_eq!(read(long).to_string(), short);
        assert_eq!(read(long), read(short));
    }
    assert_eq!("".parse(), Ok(TaskList::default()));
}

#[test]
fn errors_name_the_accepted_values() {
    for (text, expected) in [
        ("heavi:1%", "unknown task `heavi` (did you mean heavy?)"),
        ("xyzzy", "unknown task `xyzzy`: expected one of heavy, change,"),
        ("heavy:1%,,moments", "unknown task ``"),
        ("heavy", "task heavy: missing parameter: expected a share"),
        ("heavy:0%", "task heavy: invalid parameter `0%`: expected a share"),
        ("heavy:101%", "task heavy: invalid parameter `101%`"),
        ("heavy:NaN", "task heavy: invalid parameter `NaN`"),
        ("hhh:src", "task hhh: invalid parameter `src`: expected a share"),
        ("change", "task change: missing parameter: expected a duration"),
        ("change:0s", "task change: invalid parameter `0s`"),
        ("change:30s>0", "task change: invalid parameter `30s>0`"),
        ("spread:5tuple>10", "task spread: invalid parameter `5tuple>10`: expected src or dst"),
        ("spread:dst>many", "task spread: invalid parameter `dst>many`"),
        ("distinct:scr", "task distinct: invalid flow key `scr` (did you mean src?)"),
        ("heavy:1%:src/40", "task heavy: invalid prefix `src/40`"),
        ("entropy:src:bytes", "task entropy: unexpected `bytes`: expected a flow key"),
        ("hhh:1%:dst+port", "task hhh: unexpected `dst+port`: expected src or dst"),
        ("spread:dst>10:src", "task spread: unexpected `src`: expected nothing more"),
        ("heavy:1%:src:dst", "task heavy: unexpected `dst`: expected at most one key"),
        ("heavy:1%:bytes:bytes", "task heavy: unexpected `bytes`: expected at most one key"),
    ] {
        assert!(error(text).starts_with(expected), "{text}: {}", error(text));
    }
}
