use std::collections::BTreeMap;
use std::net::UdpSocket;

use parquet::record::Field;
use serde_json::Value;

use super::*;
use crate::kafka::tests::{TOPIC, cluster, messages};
use crate::kafka::{KafkaOptions, Statistics};

/// Returns the rows of all files as JSON objects.
fn stored_rows(folder: &Path) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut paths = vec![folder.join("flows")];
    while let Some(path) = paths.pop() {
        if path.is_dir() {
            paths.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        for row in SerializedFileReader::new(File::open(path).unwrap()).unwrap() {
            let columns = row.unwrap().into_columns().into_iter();
            rows.push(Value::Object(columns.map(|(name, field)| (name, value(&field))).collect()));
        }
    }
    rows
}

fn value(field: &Field) -> Value {
    match field {
        Field::TimestampMicros(us) => Timestamp(*us as u64 * 1000).to_string().into(),
        Field::Str(text) => text.as_str().into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        other => panic!("{other:?}"),
    }
}

/// Sorted, because neither files nor partitions have a total order.
fn texts(rows: impl IntoIterator<Item = Value>) -> Vec<String> {
    let mut texts: Vec<_> = rows.into_iter().map(|row| row.to_string()).collect();
    texts.sort();
    texts
}

fn rows_of(messages: &[Vec<(String, String)>]) -> Vec<Value> {
    let payloads = messages.iter().flatten().flat_map(|(_, payload)| payload.lines());
    payloads.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn kafka_has_the_rows_of_the_files_keyed_by_exporter() {
    let (folder, cluster) = (TempDir::new().unwrap(), cluster());
    let kafka = Some(KafkaOptions::new(cluster.bootstrap_servers(), TOPIC));
    let (mut process, address) = start(CollectOptions { kafka, ..options("udp:127.0.0.1:0", &folder) });
    for (number, from) in ["127.0.0.1:0", "127.0.0.2:0"].into_iter().enumerate() {
        let from = UdpSocket::bind(from).unwrap();
        for message in netflow9_messages(&mut netflow9_encoder(), 1_000).iter() {
            from.send_to(message, address).unwrap();
        }
        wait_for(&mut process, |report| report.records() == 1_000 * (number as u64 + 1));
    }
    let report = process.finish(clock());
    assert!(report.losses().is_none(), "{report:#?}");
    let Statistics { records, delivered, messages: count, queued, .. } = report.kafka.unwrap();
    assert_eq!((records, delivered, count, queued), (2_000, 2_000, 2_000, 0));
    let messages = messages(&cluster.bootstrap_servers());
    let (sent, mut stored) = (rows_of(&messages), stored_rows(folder.path()));
    // Messages lack columns that few exporters send, where they have no value.
    let is_sent = |name: &str| sent.iter().any(|row| row.get(name).is_some());
    for row in &mut stored {
        row.as_object_mut().unwrap().retain(|name, value| is_sent(name) || (*value != "" && *value != 0));
    }
    assert_eq!(texts(sent), texts(stored));
    let mut keys: BTreeMap<&str, u64> = BTreeMap::new();
    messages.iter().flatten().for_each(|(key, _)| *keys.entry(key).or_default() += 1);
    assert_eq!(keys, BTreeMap::from([("127.0.0.1", 1_000), ("127.0.0.2", 1_000)]));
}

#[test]
fn a_replay_waits_for_kafka_and_drops_nothing() {
    let (folder, cluster) = (TempDir::new().unwrap(), cluster());
    let kafka = KafkaOptions {
        queue_rows: 1,
        settings: vec!["queue.buffering.max.messages=500".parse().unwrap()],
        ..KafkaOptions::new(cluster.bootstrap_servers(), TOPIC)
    };
    let options = CollectOptions { kafka: Some(kafka), ..options("udp:0", &folder) };
    let mut capture = Replay::new(&options, Default::default(), None).unwrap();
    for message in netflow9_messages(&mut netflow9_encoder(), 60_000).iter() {
        capture.frame(&replay::frame(&replay::packet(2055, message), 0));
    }
    let report = capture.finish();
    let kafka = report.kafka.unwrap();
    assert_eq!((kafka.records, kafka.delivered, kafka.lost.total()), (60_000, 60_000, 0));
    assert_eq!(report.flows.written, 60_000);
}

#[test]
fn unreachable_brokers_do_not_affect_the_files() {
    let (folder, cluster) = (TempDir::new().unwrap(), cluster());
    cluster.broker_down(-1).unwrap();
    let kafka = KafkaOptions {
        close_timeout: Duration::from_millis(20),
        ..KafkaOptions::new(cluster.bootstrap_servers(), TOPIC)
    };
    let (mut process, address) =
        start(CollectOptions { kafka: Some(kafka), ..options("udp:127.0.0.1:0", &folder) });
    let from = UdpSocket::bind("127.0.0.1:0").unwrap();
    for message in netflow9_messages(&mut netflow9_encoder(), 1_000).iter() {
        from.send_to(message, address).unwrap();
    }
    wait_for(&mut process, |report| report.records() == 1_000);
    let report = process.finish(clock());
    assert_eq!(report.losses(), Losses { kafka_records: 1_000, ..Losses::default() });
    assert_eq!((report.kafka.unwrap().delivered, stored(folder.path(), "flows")), (0, 1_000));
}
