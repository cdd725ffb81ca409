//! librdkafka: messages, and what became of them.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext as _, RDKafkaLogLevel};
use rdkafka::error::{KafkaError as Error, RDKafkaErrorCode as Code};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};

use super::options::Value;
use super::tallies::Tallies;
use super::{KafkaError, KafkaOptions};

/// What is not librdkafka's own default. Options override it.
const DEFAULTS: [(&str, &str); 7] = [
    ("client.id", "thalweg"),
    // Neither twice nor in another order when a message has to be sent again; implies acks=all.
    ("enable.idempotence", "true"),
    // Keys go to the partitions that Java's clients would choose.
    ("partitioner", "murmur2_random"),
    ("compression.type", "zstd"),
    // Nobody waits for a single row, and compression is better over many.
    ("linger.ms", "100"),
    // The payload that may wait for brokers, and bounds what each message costs beside it.
    ("queue.buffering.max.kbytes", "131072"),
    ("queue.buffering.max.messages", "262144"),
];

/// A producer.
pub(super) struct Client {
    producer: ThreadedProducer<Deliveries>,
    config: ClientConfig,
    topic: String,
    tallies: Arc<Tallies>,
}

/// Whether librdkafka took a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// What became of it is counted, now or later.
    Taken,
    /// Its buffer is full.
    NoRoom,
}

impl Client {
    pub(super) fn new(options: &KafkaOptions, tallies: Arc<Tallies>) -> Result<Client, KafkaError> {
        let mut config = ClientConfig::new();
        for (key, value) in DEFAULTS {
            config.set(key, value);
        }
        config.set("bootstrap.servers", &options.brokers);
        for setting in &options.settings {
            config.set(&setting.key, setting.read()?);
        }
        let of_file =
            |key: &str| options.settings.iter().any(|it| it.key == key && matches!(it.value, Value::File(_)));
        let refused = |error| match error {
            Error::ClientConfig(_, _, key, _) if of_file(&key) => KafkaError::Setting {
                key,
                message: "librdkafka does not take the value in the file".to_owned(),
            },
            Error::ClientConfig(_, message, key, _) => KafkaError::Setting { key, message },
            other => KafkaError::Client { message: other.to_string() },
        };
        let producer = producer(&config, &tallies).map_err(refused)?;
        Ok(Client { producer, config, topic: options.topic.clone(), tallies })
    }

    /// Hands over a message with so many rows.
    pub(super) fn send(&mut self, key: &[u8], payload: &[u8], rows: usize) -> Sent {
        let record = BaseRecord::with_opaque_to(&self.topic, rows).key(key).payload(payload);
        match self.producer.send(record) {
            Ok(()) => Sent::Taken,
            Err((Error::MessageProduction(Code::QueueFull), _)) => Sent::NoRoom,
            Err((error, _)) => {
                self.tallies.note_refused(rows);
                self.tallies.note_error(error.to_string());
                if error.rdkafka_error_code() == Some(Code::Fatal) {
                    self.begin_anew();
                }
                Sent::Taken
            }
        }
    }

    /// An idempotent producer that cannot keep its promise sends nothing any more; another one can.
    fn begin_anew(&mut self) {
        if let Some((_, reason)) = self.producer.client().fatal_error() {
            self.tallies.note_error(reason);
        }
        match producer(&self.config, &self.tallies) {
            Ok(producer) => self.producer = producer,
            Err(error) => self.tallies.note_error(error.to_string()),
        }
    }

    /// Waits until everything is answered, for so long at most. What is not then is counted as the producer is dropped.
    pub(super) fn finish(self, patience: Duration) {
        if let Err(error) = self.producer.flush(patience) {
            self.tallies.note_error(error.to_string());
        }
    }
}

fn producer(config: &ClientConfig, tallies: &Arc<Tallies>) -> Result<ThreadedProducer<Deliveries>, Error> {
    ThreadedProducer::from_config_and_context(config, Deliveries { tallies: tallies.clone() })
}

/// Is told what became of messages, on a thread of the producer's.
struct Deliveries {
    tallies: Arc<Tallies>,
}

impl ClientContext for Deliveries {
    /// What matters comes as an error, too.
    fn log(&self, _: RDKafkaLogLevel, _: &str, _: &str) {}

    fn error(&self, error: Error, reason: &str) {
        self.tallies.note_error(if reason.is_empty() { error.to_string() } else { reason.to_owned() });
    }
}

impl ProducerContext for Deliveries {
    /// Rows of the message.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, rows: usize) {
        let error = match result {
            Ok(message) => return self.tallies.note_delivered(rows, message.payload_len()),
            Err((error, _)) => error,
        };
        match error.rdkafka_error_code() {
            Some(Code::PurgeQueue | Code::PurgeInflight) => self.tallies.note_unanswered(rows),
            Some(Code::MessageTimedOut) => self.tallies.note_timed_out(rows),
            _ => self.tallies.note_refused(rows),
        }
        self.tallies.note_error(error.to_string());
    }
}
