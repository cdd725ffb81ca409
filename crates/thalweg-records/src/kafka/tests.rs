//! Against librdkafka's mock cluster, which speaks Kafka's protocol on loopback.

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

/// How long anything may take that should take a moment.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const TOPIC: &str = "flows";
const PARTITIONS: i32 = 3;

pub(crate) type Cluster = MockCluster<'static, DefaultProducerContext>;

pub(crate) fn cluster() -> Cluster {
    let cluster = MockCluster::new(3).unwrap();
    cluster.create_topic(TOPIC, PARTITIONS, 3).unwrap();
    cluster
}

fn options(cluster: &Cluster, rows: usize, settings: &[&str]) -> KafkaOptions {
    KafkaOptions {
        rows: NonZeroUsize::new(rows).unwrap(),
        settings: settings.iter().map(|text| text.parse().unwrap()).collect(),
        queue_rows: 1,
        farewell: PATIENCE,
        ..KafkaOptions::new(cluster.bootstrap_servers(), TOPIC)
    }
}

/// Rows of some exporters, which take turns as datagrams do; `octets` numbers them.
fn rows(numbers: std::ops::Range<u64>, exporters: u64) -> RecordBatch {
    let mut batch = RecordBatch::default();
    for number in numbers {
        let exporter = Address::v4(0xC000_0200 + (number / 24 % exporters) as u32);
        batch.push(&Record { exporter, octets: number, ..Record::default() });
    }
    batch
}

/// Hands over rows as a source that waits does.
fn feed(kafka: &Kafka, numbers: std::ops::Range<u64>, exporters: u64) {
    let mut outlet = kafka.outlet();
    for from in numbers.clone().step_by(1000) {
        while !kafka.has_room() {
            std::thread::sleep(Duration::from_millis(1));
        }
        outlet.append(&rows(from..numbers.end.min(from + 1000), exporters));
    }
}

/// Looks at what became of rows until it is as expected.
#[track_caller]
fn wait_for(kafka: &Kafka, is_so: impl Fn(&Statistics) -> bool) -> Statistics {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let statistics = kafka.statistics();
        if is_so(&statistics) {
            return statistics;
        }
        assert!(Instant::now() < deadline, "{statistics:#?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Keys and payloads of each partition, from its beginning to what is its end now.
pub(crate) fn messages(brokers: &str) -> Vec<Vec<(String, String)>> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers).set("group.id", "tests");
    let consumer: BaseConsumer = config.create().unwrap();
    let mut partitions = TopicPartitionList::new();
    let mut missing = 0;
    for partition in 0..PARTITIONS {
        partitions.add_partition_offset(TOPIC, partition, Offset::Beginning).unwrap();
        missing += consumer.fetch_watermarks(TOPIC, partition, PATIENCE).unwrap().1;
    }
    consumer.assign(&partitions).unwrap();
    let mut messages = vec![Vec::new(); PARTITIONS as usize];
    let deadline = Instant::now() + PATIENCE;
    while missing > 0 {
        assert!(Instant::now() < deadline, "{missing} messages do not come");
        let Some(message) = consumer.poll(Duration::from_millis(100)) else { continue };
        let message = message.unwrap();
        let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
        messages[message.partition() as usize].push((text(message.key()), text(message.payload())));
        missing -= 1;
    }
    messages
}

/// Numbers of the rows of each key, in the order in which they are read.
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

/// What the cluster must have if everything came once, in the order in which it was sent.
fn all(numbers: std::ops::Range<u64>, exporters: u64) -> BTreeMap<String, Vec<u64>> {
    let batch = rows(numbers, exporters);
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (exporter, &number) in batch.exporter.iter().zip(&batch.octets) {
        all.entry(exporter.to_string()).or_default().push(number);
    }
    all
}

#[test]
fn every_row_comes_once_and_each_exporters_in_order_however_many_are_a_message() {
    for (rows, messages_at_most) in [(1, 20_000), (10, 2_600), (100, 900)] {
        let cluster = cluster();
        // Answers that make a producer send again.
        let again = [
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__TRANSPORT,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
        ];
        cluster.request_errors(RDKafkaApiKey::Produce, &again);
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
fn without_brokers_memory_is_bounded_the_rest_is_counted_and_rows_flow_again_when_they_are_back() {
    let cluster = cluster();
    let settings = ["queue.buffering.max.messages=1000", "reconnect.backoff.max.ms=200"];
    let mut kafka = Kafka::start(&options(&cluster, 1, &settings)).unwrap();
    feed(&kafka, 0..5_000, 1);
    wait_for(&kafka, |now| now.delivered == 5_000);
    cluster.broker_down(-1).unwrap();
    let mut outlet = kafka.outlet();
    for from in (5_000..105_000).step_by(1000) {
        outlet.append(&rows(from..from + 1000, 1));
    }
    let statistics = wait_for(&kafka, |now| now.errors > 0);
    // Four batches in the queue, one that is filled, one that is sent; a thousand with librdkafka.
    assert!(statistics.queued <= 6 * 4096 + 1000, "{statistics:#?}");
    assert_eq!(statistics.lost.queue_full, 100_000 - statistics.queued, "{statistics:#?}");
    assert!(statistics.last_error.is_some());
    cluster.broker_up(-1).unwrap();
    // All but what the outlet has: it waits for the next rows.
    wait_for(&kafka, |now| now.queued <= 4096);
    outlet.append(&rows(200_000..200_010, 1));
    drop(outlet);
    let statistics = kafka.finish();
    let lost = statistics.lost.queue_full;
    assert_eq!((statistics.queued, statistics.lost), (0, Lost { queue_full: lost, ..Lost::default() }));
    assert_eq!(statistics.delivered, 105_010 - lost);
    let numbers = numbers(&messages(&cluster.bootstrap_servers()));
    let [numbers] = numbers.values().collect::<Vec<_>>()[..] else { panic!("one exporter") };
    assert_eq!(numbers.len() as u64, statistics.delivered);
    assert!(numbers.is_sorted_by(|one, next| one < next), "nothing twice, and in order");
    assert_eq!(numbers[numbers.len() - 10..], (200_000..200_010).collect::<Vec<_>>());
}

#[test]
fn what_brokers_do_not_acknowledge_in_time_is_given_up_and_counted() {
    let cluster = cluster();
    cluster.broker_down(-1).unwrap();
    let mut kafka = Kafka::start(&options(&cluster, 1, &["message.timeout.ms=500"])).unwrap();
    feed(&kafka, 0..300, 1);
    let statistics = wait_for(&kafka, |now| now.queued == 0);
    assert_eq!(statistics.lost, Lost { timed_out: 300, ..Lost::default() });
    assert_eq!(kafka.finish().delivered, 0);
}

#[test]
fn the_end_leaves_what_brokers_do_not_take_and_counts_it() {
    let cluster = cluster();
    cluster.broker_down(-1).unwrap();
    let options = KafkaOptions {
        farewell: Duration::from_millis(50),
        ..options(&cluster, 1, &["queue.buffering.max.messages=100"])
    };
    let mut kafka = Kafka::start(&options).unwrap();
    let mut outlet = kafka.outlet();
    outlet.append(&rows(0..10_000, 1));
    drop(outlet);
    let statistics = kafka.finish();
    assert_eq!((statistics.queued, statistics.delivered), (0, 0), "{statistics:#?}");
    assert_eq!(statistics.lost, Lost { unanswered: 10_000, ..Lost::default() });
    assert_eq!(kafka.finish(), statistics, "a second time it only says");
}

#[test]
fn a_message_that_is_not_taken_is_counted_with_what_was_said_and_the_others_go_on() {
    let cluster = cluster();
    let settings = ["message.max.bytes=2000"];
    let mut kafka = Kafka::start(&options(&cluster, 100, &settings)).unwrap();
    let mut outlet = kafka.outlet();
    outlet.append(&rows(0..24, 1));
    outlet.append(&rows(24..26, 2));
    drop(outlet);
    let statistics = kafka.finish();
    assert_eq!((statistics.delivered, statistics.lost), (2, Lost { refused: 24, ..Lost::default() }));
    let error = statistics.last_error.unwrap();
    assert!(error.contains("too large"), "{error}");
}

#[test]
fn a_client_that_cannot_go_on_is_replaced() {
    let cluster = cluster();
    let denied = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED];
    cluster.request_errors(RDKafkaApiKey::InitProducerId, &denied);
    let mut kafka = Kafka::start(&options(&cluster, 1, &[])).unwrap();
    wait_for(&kafka, |now| now.last_error.as_ref().is_some_and(|error| error.contains("uthoriz")));
    feed(&kafka, 0..1_000, 1);
    let statistics = kafka.finish();
    assert_eq!(statistics.lost, Lost { refused: 1, ..Lost::default() }, "the one that told");
    assert_eq!(statistics.delivered, 999);
}

#[test]
fn settings_are_librdkafkas_and_a_wrong_one_is_named_without_its_secret() {
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
fn kcat_reads_what_was_sent() {
    let cluster = cluster();
    let mut kafka = Kafka::start(&options(&cluster, 10, &[])).unwrap();
    feed(&kafka, 0..2_000, 3);
    assert_eq!(kafka.finish().delivered, 2_000);
    let arguments = ["-C", "-q", "-e", "-t", TOPIC, "-o", "beginning", "-f", "%k %s\\n"];
    let kcat = Command::new("kcat")
        .args(["-b", &cluster.bootstrap_servers()])
        .args(arguments)
        // Cargo names the folder of our librdkafka there, which is not the one that kcat was built for.
        .env_remove("LD_LIBRARY_PATH")
        .output();
    let Ok(output) = kcat else { return skip("there is no kcat") };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut read: Vec<u64> = Vec::new();
    for line in text.lines() {
        // The first line of a message begins with its key.
        let row: Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
        assert!(line.starts_with('{') || row["exporter"] == line.split(' ').next().unwrap());
        read.push(row["bytes"].as_u64().unwrap());
    }
    read.sort_unstable();
    assert_eq!(read, (0..2_000).collect::<Vec<_>>());
}

/// Says why a test is skipped, past the test runner's capture.
fn skip(reason: &str) {
    use std::io::Write as _;
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    // Nobody is left to tell.
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}
