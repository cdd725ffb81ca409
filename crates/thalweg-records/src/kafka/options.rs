//! Options of the Kafka producer.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Options of the Kafka producer.
#[derive(Clone, Debug)]
pub struct KafkaOptions {
    /// Initial brokers, `HOST:PORT` separated by commas.
    pub brokers: String,
    /// The topic.
    pub topic: String,
    /// Maximum number of records per message. Default 1, which every consumer reads without configuration.
    pub records_per_message: NonZeroUsize,
    /// librdkafka settings, in order; later ones override earlier ones.
    pub settings: Vec<Setting>,
    /// Queue length in rows (188 bytes each); when it is full, rows are lost and counted.
    pub queue_rows: usize,
    /// How long shutdown waits for brokers.
    pub close_timeout: Duration,
}

impl KafkaOptions {
    /// Returns the default options.
    pub fn new(brokers: impl Into<String>, topic: impl Into<String>) -> KafkaOptions {
        KafkaOptions {
            brokers: brokers.into(),
            topic: topic.into(),
            records_per_message: NonZeroUsize::MIN,
            settings: Vec::new(),
            queue_rows: 1 << 18,
            close_timeout: Duration::from_secs(10),
        }
    }
}

/// A librdkafka setting: `compression.type=lz4`, or `sasl.password=@FILE`, which keeps a secret out of process lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the setting.
    pub key: String,
    /// Value of the setting.
    pub value: Value,
}

/// The value of a setting.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// A literal value.
    Plain(String),
    /// A file that contains the value; trailing whitespace is removed.
    File(PathBuf),
}

#[cfg(any(feature = "kafka", test))]
impl Setting {
    /// Returns the value, read from its file if necessary.
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

/// A malformed setting.
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

/// Hides literal values, which may be passwords.
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
    fn settings_have_literal_or_file_values_and_hide_secrets() {
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
