//! What `[records]` says of flows that are sent, and kept.

use std::path::PathBuf;

use thalweg_records::export::{ExportOptions, TlsFiles, Transport};
use thalweg_records::handoff::HandoffOptions;
use thalweg_records::store::StoreOptions;
use thalweg_wire::flow_export::encode::ipfix::{self, Times};

use super::SURE;
use thalweg_config::{Document, Entry, Problem};

/// Begins the names of Parquet files.
const FILES_BEGIN_WITH: &str = "serve";

/// Where flows go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandoffConfig {
    /// A collector.
    pub export: Option<ExportOptions>,
    /// A folder for Parquet.
    pub folder: Option<PathBuf>,
}

impl HandoffConfig {
    /// Whether they go anywhere.
    pub fn is_set(&self) -> bool {
        self.export.is_some() || self.folder.is_some()
    }

    /// With what is the same for all daemons.
    pub fn options(&self) -> HandoffOptions {
        let store = self.folder.as_ref();
        let store = store
            .map(|folder| StoreOptions { name: FILES_BEGIN_WITH.to_owned(), ..StoreOptions::new(folder) });
        HandoffOptions { export: self.export.clone(), store }
    }
}

pub(super) fn read(document: &Document, entry: &Entry, problems: &mut Vec<Problem>) -> HandoffConfig {
    let file = |key| entry.text(key).map(|file| document.folder.join(file));
    let export = entry.text("ipfix").and_then(|text| match text.parse() {
        Ok(destination) => Some(ExportOptions::new(destination)),
        Err(error) => {
            problems.push(entry.refuse("ipfix", format!("{error}")));
            None
        }
    });
    let identity = match (file("ipfix_certificate"), file("ipfix_key")) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => {
            let key = if entry.is_set("ipfix_key") { "ipfix_key" } else { "ipfix_certificate" };
            problems.push(entry.refuse(key, "ipfix_certificate and ipfix_key go together"));
            None
        }
    };
    let tls = file("ipfix_authority").map(|authority| TlsFiles { authority, identity });
    let export = export.map(|export| {
        let times = match entry.text("ipfix_times").expect(SURE) {
            "milliseconds" => Times::Milliseconds,
            _ => Times::Microseconds,
        };
        ExportOptions { tls, ipfix: ipfix::Options { times, ..export.ipfix }, ..export }
    });
    if let Some(ExportOptions { destination, tls, .. }) = &export {
        match (destination.transport, tls) {
            (Transport::Tls, None) => problems.push(entry.refuse("ipfix", "TLS needs ipfix_authority")),
            (Transport::Udp | Transport::Tcp, Some(_)) => {
                problems.push(entry.refuse("ipfix_authority", "certificates are for tls:// only"));
            }
            _ => {}
        }
    }
    HandoffConfig { export, folder: file("folder") }
}
