//! Export of flow records as IPFIX and Parquet, from `[records]`.

use std::path::PathBuf;

use thalweg_records::export::{ExportOptions, TlsFiles, Transport};
use thalweg_records::handoff::HandoffOptions;
use thalweg_records::store::StoreOptions;
use thalweg_wire::Nanos;
use thalweg_wire::flow_export::encode::ipfix::{self, Times};

use super::names::TimesName;
use super::table::Records;
use thalweg_config::{Document, Problem, Typed};

/// Prefix of the names of Parquet files.
const FILE_PREFIX: &str = "serve";

/// Destinations of flow records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowExportConfig {
    /// IPFIX receiver.
    pub export: Option<ExportOptions>,
    /// Directory for Parquet files.
    pub folder: Option<PathBuf>,
    /// Maximum age of files.
    pub keep: Option<Nanos>,
    /// Maximum size of a dataset in bytes.
    pub keep_bytes: Option<u64>,
}

impl FlowExportConfig {
    /// Whether there is a destination.
    pub fn is_set(&self) -> bool {
        self.export.is_some() || self.folder.is_some()
    }

    /// Returns the options, with those that all daemons share.
    pub fn options(&self) -> HandoffOptions {
        let store = self.folder.as_ref();
        let store = store.map(|folder| StoreOptions {
            name: FILE_PREFIX.to_owned(),
            keep: self.keep,
            keep_bytes: self.keep_bytes,
            ..StoreOptions::new(folder)
        });
        HandoffOptions { export: self.export.clone(), store }
    }
}

pub(super) fn read(
    document: &Document,
    entry: &Typed<'_, Records>,
    problems: &mut Vec<Problem>,
) -> FlowExportConfig {
    let file = |file: &Option<String>| file.as_ref().map(|file| document.folder.join(file));
    let export = entry.ipfix.as_ref().and_then(|text| match text.parse() {
        Ok(destination) => Some(ExportOptions::new(destination)),
        Err(error) => {
            problems.push(entry.refuse(Records::ipfix, format!("{error}")));
            None
        }
    });
    let identity = match (file(&entry.ipfix_certificate), file(&entry.ipfix_key)) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => {
            let has_key = entry.ipfix_key.is_some();
            let key = if has_key { Records::ipfix_key } else { Records::ipfix_certificate };
            problems.push(entry.refuse(key, "ipfix_certificate and ipfix_key must be set together"));
            None
        }
    };
    let tls = file(&entry.ipfix_ca_file).map(|authority| TlsFiles { authority, identity });
    let export = export.map(|export| {
        let times = match entry.ipfix_times {
            TimesName::Milliseconds => Times::Milliseconds,
            TimesName::Microseconds => Times::Microseconds,
        };
        ExportOptions { tls, ipfix: ipfix::Options { times, ..export.ipfix }, ..export }
    });
    if let Some(ExportOptions { destination, tls, .. }) = &export {
        match (destination.transport, tls) {
            (Transport::Tls, None) => {
                problems.push(entry.refuse(Records::ipfix, "tls:// requires ipfix_ca_file"))
            }
            (Transport::Udp | Transport::Tcp, Some(_)) => {
                problems.push(entry.refuse(Records::ipfix_ca_file, "requires a tls:// destination"));
            }
            _ => {}
        }
    }
    let unused = [
        (Records::retention_age, entry.retention_age.is_some()),
        (Records::retention_size, entry.retention_size.is_some()),
    ];
    for (key, _) in unused.into_iter().filter(|(_, is_set)| *is_set && entry.folder.is_none()) {
        problems.push(entry.refuse(key, "requires records.folder"));
    }
    FlowExportConfig {
        export,
        folder: file(&entry.folder),
        keep: entry.retention_age,
        keep_bytes: entry.retention_size.map(|size| size.0),
    }
}
