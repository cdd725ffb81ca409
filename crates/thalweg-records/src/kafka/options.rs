//! What a producer is told.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// What a producer is told.
#[derive(Clone, Debug)]
pub struct KafkaOptions {
    /// Brokers to begin with, `HOST:PORT` with commas between: the others are learned from them.
    pub brokers: String,
    /// The topic.
    pub topic: String,
    /// Rows of a message at most. Default 1: every reader takes it, and many (Spark, Flink, Kafka Connect) without further ado.
    pub rows: NonZeroUsize,
    /// librdkafka's own settings, in order: a later one overrides.
    pub settings: Vec<Setting>,
    /// Rows that may wait for librdkafka, in memory (146 bytes each); what comes when so many do is lost, and counted.
    pub queue_rows: usize,
    /// How long the end waits for brokers.
    pub farewell: Duration,
}

impl KafkaOptions {
    /// The defaults, for some brokers and a topic.
    pub fn new(brokers: impl Into<String>, topic: impl Into<String>) -> KafkaOptions {
        KafkaOptions {
            brokers: brokers.into(),
            topic: topic.into(),
            rows: NonZeroUsize::MIN,
            settings: Vec::new(),
            queue_rows: 1 << 18,
            farewell: Duration::from_secs(10),
        }
    }
}

/// One of librdkafka's settings: `compression.type=lz4`, or `sasl.password=@FILE` for what is not to be seen in a list of
/// processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, as librdkafka has it.
    pub key: String,
    /// Its value.
    pub value: Value,
}

/// The value of a setting.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// As it is.
    Plain(String),
    /// The text of a file, without the white space at its end.
    File(PathBuf),
}

#[cfg(any(feature = "kafka", test))]
impl Setting {
    /// The value, read from its file if it is there.
    pub(super) fn read(&self) -> Result<String, super::KafkaError> {
        match &self.value {
            Value::Plain(value) => Ok(value.clone()),
            Value::File(path) => {
                let failed = |source| super::KafkaError::SettingFile {
                    key: self.key.clone(),
                    path: path.clone(),
                    source,
                };
                Ok(std::fs::read_to_string(path).map_err(failed)?.trim_end().to_owned())
            }
        }
    }
}

/// Why a text is no setting.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "expected KEY=VALUE or KEY=@FILE, such as compression.type=zstd or sasl.password=@/etc/thalweg/password"
)]
pub struct ParseSettingError;

impl FromStr for Setting {
    type Err = ParseSettingError;

    fn from_str(text: &str) -> Result<Setting, ParseSettingError> {
        let (key, value) = text.split_once('=').ok_or(ParseSettingError)?;
        let value = match value.strip_prefix('@') {
            Some("") => return Err(ParseSettingError),
            Some(path) => Value::File(path.into()),
            None => Value::Plain(value.to_owned()),
        };
        match key {
            "" => Err(ParseSettingError),
            key => Ok(Setting { key: key.to_owned(), value }),
        }
    }
}

/// A value that was typed may be a password all the same, and is not shown.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Plain(_) => f.write_str("Plain(..)"),
            Value::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_its_value_on_the_line_or_in_a_file_and_tells_no_secrets() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "open=sesame\n").unwrap();
        let read = |text: &str| text.parse::<Setting>().unwrap().read();
        assert_eq!(read("acks=all").unwrap(), "all");
        assert_eq!(read("sasl.jaas.config=a=b").unwrap(), "a=b");
        assert_eq!(read("client.rack=").unwrap(), "");
        assert_eq!(read(&format!("sasl.password=@{}", file.display())).unwrap(), "open=sesame");
        let missing = read("sasl.password=@/no/such/file").unwrap_err().to_string();
        assert!(missing.contains("sasl.password") && missing.contains("/no/such/file"), "{missing}");
        for wrong in ["", "acks", "=all", "sasl.password=@"] {
            assert_eq!(wrong.parse::<Setting>(), Err(ParseSettingError));
        }
        let shown = format!("{:?}", "sasl.password=sesame".parse::<Setting>().unwrap());
        assert!(!shown.contains("sesame"), "{shown}");
    }
}
