//! Tests with librdkafka's mock cluster, which speaks the Kafka protocol on loopback.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::process::Command;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::Message;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use serde_json::Value;
use thalweg_wire::flow_export::{Address, Record, RecordBatch};

use super::*;

/// Deadline of waits that usually end at once.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) const TOPIC: &str = "flows";
const PARTITIONS: i32 = 3;

pub(crate) type Cluster = MockCluster<'static, DefaultProducerContext>;

pub(crate) fn cluster() -> Cluster {
    let cluster = MockCluster::new(3).unwrap();
    cluster.create_topic(TOPIC, PARTITIONS, 3).unwrap();
    cluster
}

fn options(cluster: &Cluster, records_per_message: usize, settings: &[&str]) -> KafkaOptions {
    KafkaOptions {
        records_per_message: NonZeroUsize::new(records_per_message).unwrap(),
        settings: settings.iter().map(|text| text.parse().unwrap()).collect(),
        queue_rows: 1,
        close_timeout: TIMEOUT,
        ..KafkaOptions::new(cluster.bootstrap_servers(), TOPIC)
    }
}

/// Returns rows of exporters that alternate as datagrams do; `octets` numbers the rows.
fn rows(numbers: std::ops::Range<u64>, exporters: u64) -> RecordBatch {
    let mut batch = RecordBatch::default();
    for number in numbers {
        let exporter = Address::v4(0xC000_0200 + (number / 24 % exporters) as u32);
        batch.push(&Record { exporter, octets: number, ..Record::default() });
    }
    batch
}

/// Queues rows as a source that waits does.
fn feed(kafka: &Kafka, numbers: std::ops::Range<u64>, exporters: u64) {
    let mut sender = kafka.sender();
    for from in numbers.clone().step_by(1000) {
        while !kafka.has_room() {
            std::thread::sleep(Duration::from_millis(1));
        }
        sender.append(&rows(from..numbers.end.min(from + 1000), exporters));
    }
}

/// Polls the counters until `is_so` holds.
#[track_caller]
fn wait_for(kafka: &Kafka, is_so: impl Fn(&Statistics) -> bool) -> Statistics {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let statistics = kafka.statistics();
        if is_so(&statistics) {
            return statistics;
        }
        assert!(Instant::now() < deadline, "{statistics:#?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns keys and payloads of each partition, up to its current end.
pub(crate) fn messages(brokers: &str) -> Vec<Vec<(String, String)>> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("group.id", "tests");
    let consumer: BaseConsumer = config.create().unwrap();
    let mut partitions = TopicPartitionList::new();
    let mut missing = 0;
    for partition in 0..PARTITIONS {
        partitions.add_partition_offset(TOPIC, partition, Offset::Beginning).unwrap();
        missing += consumer.fetch_watermarks(TOPIC, partition, TIMEOUT).unwrap().1;
    }
    consumer.assign(&partitions).unwrap();
    let mut messages = vec![Vec::new(); PARTITIONS as usize];
    let deadline = Instant::now() + TIMEOUT;
    while missing > 0 {
        assert!(Instant::now() < deadline, "{missing} messages are missing");
        let Some(message) = consumer.poll(Duration::from_millis(100)) else { continue };
        let message = message.unwrap();
        let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
        messages[message.partition() as usize].push((text(message.key()), text(message.payload())));
        missing -= 1;
    }
    messages
}

/// Returns the row numbers of each key, in reading order.
fn numbers(messages: &[Vec<(String, String)>]) -> BTreeMap<String, Vec<u64>> {
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (key, payload) in messages.iter().flatten() {
        for line in payload.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            assert_eq!(row["exporter"], key.as_str(), "a message has rows of its key");
            numbers.entry(key.clone()).or_default().push(row["bytes"].as_u64().unwrap());
        }
    }
    numbers
}

/// Returns what `numbers` must be if every row arrived once and in order.
fn all(numbers: std::ops::Range<u64>, exporters: u64) -> BTreeMap<String, Vec<u64>> {
    let batch = rows(numbers, exporters);
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (exporter, &number) in batch.exporter.iter().zip(&batch.octets) {
        all.entry(exporter.to_string()).or_default().push(number);
    }
    all
}

#[test]
fn every_row_arrives_once_and_in_order_at_any_message_size() {
    for (rows, messages_at_most) in [(1, 20_000), (10, 2_600), (100, 900)] {
        let cluster = cluster();
        // Responses that cause retransmissions.
        let retriable = [
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__TRANSPORT,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        ];
        cluster.request_errors(RDKafkaApiKey::Produce, &retriable);
        let mut kafka = Kafka::start(&options(&cluster, rows, &["retry.backoff.ms=10"])).unwrap();
        feed(&kafka, 0..20_000, 7);
        let statistics = kafka.finish();
        assert_eq!((statistics.records, statistics.delivered, statistics.queued), (20_000, 20_000, 0));
        assert_eq!(statistics.lost, Lost::default());
        let messages = messages(&cluster.bootstrap_servers());
        assert_eq!(numbers(&messages), all(0..20_000, 7));
        let count = messages.iter().flatten().count() as u64;
        assert_eq!(count, statistics.messages);
        assert!(count <= messages_at_most, "{count} messages of {rows} rows");
        let bytes: usize = messages.iter().flatten().map(|(_, payload)| payload.len()).sum();
        assert_eq!(bytes as u64, statistics.bytes);
        let keys = messages.iter().flat_map(|messages| {
            messages.iter().map(|(key, _)| key).collect::<std::collections::BTreeSet<_>>()
        });
        assert_eq!(keys.count(), 7, "a key is in one partition");
    }
}

#[test]
fn unreachable_brokers_bound_memory_and_delivery_resumes() {
    let cluster = cluster();
    let settings = ["queue.buffering.max.messages=1000", "reconnect.backoff.max.ms=200"];
    let mut kafka = Kafka::start(&options(&cluster, 1, &settings)).unwrap();
    feed(&kafka, 0..5_000, 1);
    wait_for(&kafka, |now| now.delivered == 5_000);
    cluster.broker_down(-1).unwrap();
    let mut sender = kafka.sender();
    for from in (5_000..105_000).step_by(1000) {
        sender.append(&rows(from..from + 1000, 1));
    }
    let statistics = wait_for(&kafka, |now| now.errors > 0);
    // Four batches in the queue, one being filled, one being sent; 1000 messages in librdkafka.
    assert!(statistics.queued <= 6 * 4096 + 1000, "{statistics:#?}");
    assert_eq!(statistics.lost.queue_full, 100_000 - statistics.queued, "{statistics:#?}");
    assert!(statistics.last_error.is_some());
    cluster.broker_up(-1).unwrap();
    // All but the sender's partial batch.
    wait_for(&kafka, |now| now.queued <= 4096);
    sender.append(&rows(200_000..200_010, 1));
    drop(sender);
    let statistics = kafka.finish();
    let lost = statistics.lost.queue_full;
    assert_eq!((statistics.queued, statistics.lost), (0, Lost { queue_full: lost, ..Lost::default() }));
    assert_eq!(statistics.delivered, 105_010 - lost);
    let numbers = numbers(&messages(&cluster.bootstrap_servers()));
    let [numbers] = numbers.values().collect::<Vec<_>>()[..] else { panic!("one exporter") };
    assert_eq!(numbers.len() as u64, statistics.delivered);
    assert!(numbers.is_sorted_by(|one, next| one < next), "no duplicates, and in order");
    assert_eq!(numbers[numbers.len() - 10..], (200_000..200_010).collect::<Vec<_>>());
}

#[test]
fn rows_not_acknowledged_in_time_are_counted() {
    let cluster = cluster();
    cluster.broker_down(-1).unwrap();
    let mut kafka = Kafka::start(&options(&cluster, 1, &["message.timeout.ms=500"])).unwrap();
    feed(&kafka, 0..300, 1);
    let statistics = wait_for(&kafka, |now| now.queued == 0);
    assert_eq!(statistics.lost, Lost { timed_out: 300, ..Lost::default() });
    assert_eq!(kafka.finish().delivered, 0);
}

#[test]
fn shutdown_counts_undelivered_rows() {
    let cluster = cluster();
    cluster.broker_down(-1).unwrap();
    let options = KafkaOptions {
        close_timeout: Duration::from_millis(50),
        ..options(&cluster, 1, &["queue.buffering.max.messages=100"])
    };
    let mut kafka = Kafka::start(&options).unwrap();
    let mut sender = kafka.sender();
    sender.append(&rows(0..10_000, 1));
    drop(sender);
    let statistics = kafka.finish();
    assert_eq!((statistics.queued, statistics.delivered), (0, 0), "{statistics:#?}");
    assert_eq!(statistics.lost, Lost { unanswered: 10_000, ..Lost::default() });
    assert_eq!(kafka.finish(), statistics, "a second call only returns the counters");
}

#[test]
fn a_rejected_message_is_counted_with_its_error() {
    let cluster = cluster();
    let settings = ["message.max.bytes=2000"];
    let mut kafka = Kafka::start(&options(&cluster, 100, &settings)).unwrap();
    let mut sender = kafka.sender();
    sender.append(&rows(0..24, 1));
    sender.append(&rows(24..26, 2));
    drop(sender);
    let statistics = kafka.finish();
    assert_eq!((statistics.delivered, statistics.lost), (2, Lost { refused: 24, ..Lost::default() }));
    let error = statistics.last_error.unwrap();
    assert!(error.contains("too large"), "{error}");
}

#[test]
fn a_client_is_replaced_after_a_fatal_error() {
    let cluster = cluster();
    let denied = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED];
    cluster.request_errors(RDKafkaApiKey::InitProducerId, &denied);
    let mut kafka = Kafka::start(&options(&cluster, 1, &[])).unwrap();
    wait_for(&kafka, |now| now.last_error.as_ref().is_some_and(|error| error.contains("uthoriz")));
    feed(&kafka, 0..1_000, 1);
    let statistics = kafka.finish();
    assert_eq!(statistics.lost, Lost { refused: 1, ..Lost::default() }, "the one that reported the error");
    assert_eq!(statistics.delivered, 999);
}

#[test]
fn an_invalid_setting_is_named_without_its_secret() {
    let cluster = cluster();
    for compression in ["none", "lz4", "snappy", "zstd"] {
        Kafka::start(&options(&cluster, 1, &[&format!("compression.type={compression}")])).unwrap();
    }
    let refused = |settings: &[&str]| Kafka::start(&options(&cluster, 1, settings)).map(drop).unwrap_err();
    let error = refused(&["linger=5"]).to_string();
    assert!(error.contains("linger"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "sesame").unwrap();
    let error = refused(&[&format!("security.protocol=@{}", file.display())]).to_string();
    assert!(error.contains("security.protocol") && !error.contains("sesame"), "{error}");
}

#[test]
fn kcat_reads_all_rows() {
    let cluster = cluster();
    let mut kafka = Kafka::start(&options(&cluster, 10, &[])).unwrap();
    feed(&kafka, 0..2_000, 3);
    assert_eq!(kafka.finish().delivered, 2_000);
    let arguments = ["-C", "-q", "-e", "-t", TOPIC, "-o", "beginning", "-f", "%k %s\\n"];
    let kcat = Command::new("kcat")
        .args(["-b", &cluster.bootstrap_servers()])
        .args(arguments)
        // Cargo adds the folder of our librdkafka, which does not match the one of kcat.
        .env_remove("LD_LIBRARY_PATH")
        .output();
    let Ok(output) = kcat else { return skip("there is no kcat") };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut read: Vec<u64> = Vec::new();
    for line in text.lines() {
        // The first line of a message starts with its key.
        let row: Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
        assert!(line.starts_with('{') || row["exporter"] == line.split(' ').next().unwrap());
        read.push(row["bytes"].as_u64().unwrap());
    }
    read.sort_unstable();
    assert_eq!(read, (0..2_000).collect::<Vec<_>>());
}

/// Reports why a test is skipped, bypassing the test runner's capture.
fn skip(reason: &str) {
    use std::io::Write as _;
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Nothing else can be done if standard error is closed.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}
