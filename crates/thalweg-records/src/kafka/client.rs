//! The librdkafka producer, and delivery results.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext as _, RDKafkaLogLevel};
use rdkafka::error::{KafkaError as Error, RDKafkaErrorCode as Code};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};

use super::counters::Counters;
use super::options::Value;
use super::{KafkaError, KafkaOptions};

/// Settings that differ from librdkafka's defaults. Options override them.
const DEFAULTS: [(&str, &str); 7] = [
    ("client.id", "thalweg"),
    // No duplicates and no reordering on retransmission; implies acks=all.
    ("enable.idempotence", "true"),
    // Selects the same partitions as Java clients.
    ("partitioner", "murmur2_random"),
    ("compression.type", "zstd"),
    // Latency does not matter, and larger batches compress better.
    ("linger.ms", "100"),
    // Limits the payload that waits for brokers, and the overhead of its messages.
    ("queue.buffering.max.kbytes", "131072"),
    ("queue.buffering.max.messages", "262144"),
];

/// A Kafka producer.
pub(super) struct Client {
    producer: ThreadedProducer<Deliveries>,
    config: ClientConfig,
    topic: String,
    counters: Arc<Counters>,
}

/// Whether librdkafka accepted a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Accepted, or rejected and counted.
    Accepted,
    /// The buffer is full; try again.
    QueueFull,
}

impl Client {
    pub(super) fn new(options: &KafkaOptions, counters: Arc<Counters>) -> Result<Client, KafkaError> {
        let mut config = ClientConfig::new();
        for (key, value) in DEFAULTS {
            config.set(key, value);
        }
        config.set("bootstrap.servers", &options.brokers);
        for setting in &options.settings {
            config.set(&setting.key, setting.read()?);
        }
        let is_from_file =
            |key: &str| options.settings.iter().any(|it| it.key == key && matches!(it.value, Value::File(_)));
        let refused = |error| match error {
            Error::ClientConfig(_, _, key, _) if is_from_file(&key) => KafkaError::Setting {
                key,
                message: "librdkafka does not take the value in the file".to_owned(),
            },
            Error::ClientConfig(_, message, key, _) => KafkaError::Setting { key, message },
            other => KafkaError::Client { message: other.to_string() },
        };
        let producer = producer(&config, &counters).map_err(refused)?;
        Ok(Client { producer, config, topic: options.topic.clone(), counters })
    }

    /// Sends a message that contains `rows` rows.
    pub(super) fn send(&mut self, key: &[u8], payload: &[u8], rows: usize) -> Sent {
        let record = BaseRecord::with_opaque_to(&self.topic, rows).key(key).payload(payload);
        match self.producer.send(record) {
            Ok(()) => Sent::Accepted,
            Err((Error::MessageProduction(Code::QueueFull), _)) => Sent::QueueFull,
            Err((error, _)) => {
                self.counters.count_refused(rows);
                self.counters.set_last_error(error.to_string());
                if error.rdkafka_error_code() == Some(Code::Fatal) {
                    self.restart();
                }
                Sent::Accepted
            }
        }
    }

    /// Replaces the producer after a fatal error. An idempotent producer sends nothing after one.
    fn restart(&mut self) {
        if let Some((_, reason)) = self.producer.client().fatal_error() {
            self.counters.set_last_error(reason);
        }
        match producer(&self.config, &self.counters) {
            Ok(producer) => self.producer = producer,
            Err(error) => self.counters.set_last_error(error.to_string()),
        }
    }

    /// Waits at most `timeout` for outstanding results. Dropping the producer counts the rest.
    pub(super) fn finish(self, timeout: Duration) {
        if let Err(error) = self.producer.flush(timeout) {
            self.counters.set_last_error(error.to_string());
        }
    }
}

fn producer(config: &ClientConfig, counters: &Arc<Counters>) -> Result<ThreadedProducer<Deliveries>, Error> {
    ThreadedProducer::from_config_and_context(config, Deliveries { counters: counters.clone() })
}

/// Receives delivery results, on a thread of the producer.
struct Deliveries {
    counters: Arc<Counters>,
}

impl ClientContext for Deliveries {
    /// Ignored: important messages are also reported as errors.
    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {}

    fn error(&self, error: Error, reason: &str) {
        // The errors of the brokers, which came before, say why.
        if error.rdkafka_error_code() == Some(Code::AllBrokersDown) && self.counters.has_error() {
            return;
        }
        self.counters.set_last_error(if reason.is_empty() { error.to_string() } else { reason.to_owned() });
    }
}

impl ProducerContext for Deliveries {
    /// Number of rows in the message.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, rows: usize) {
        let error = match result {
            Ok(message) => return self.counters.count_delivered(rows, message.payload_len()),
            Err((error, _)) => error,
        };
        match error.rdkafka_error_code() {
            Some(Code::PurgeQueue | Code::PurgeInflight) => self.counters.count_unanswered(rows),
            Some(Code::MessageTimedOut) => self.counters.count_timed_out(rows),
            _ => self.counters.count_refused(rows),
        }
        self.counters.set_last_error(error.to_string());
    }
}
