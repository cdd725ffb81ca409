//! `[transfers]`: reports of transfer hosts, and reports on slow transfers.

use std::path::PathBuf;

use thalweg_config::{Document, Problem, Typed};
use thalweg_wire::Nanos;

use super::names::MailEncryptionName;
use super::table::{Records, Transfers};

/// Options of the reception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferOptions {
    /// Maximum rows per second of a host, on average; a minute of them may arrive at once.
    pub rows_per_second: u64,
    /// Maximum number of hosts.
    pub max_hosts: usize,
    /// Age from which the reports of the latest analysis are outdated.
    pub report_age: Nanos,
    /// The mail server, if any.
    pub mail: Option<MailOptions>,
}

/// The server that takes e-mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailOptions {
    /// Its name.
    pub server: String,
    /// Its port.
    pub port: u16,
    /// How the connection is encrypted.
    pub encryption: MailEncryption,
    /// User, and the file with the password, if it needs them.
    pub credentials: Option<(String, PathBuf)>,
    /// Address of the sender.
    pub from: String,
}

/// How the connection to a mail server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailEncryption {
    /// From the beginning.
    Tls,
    /// After STARTTLS (RFC 3207), or not at all.
    StartTls,
    /// Not: for a server on this host.
    None,
}

/// Returns the reception of reports, if it is on.
pub(super) fn read(document: &Document, problems: &mut Vec<Problem>) -> Option<TransferOptions> {
    let entry = document.one::<Transfers>();
    if !entry.receive {
        return None;
    }
    if document.one::<Records>().folder.is_none() {
        problems.push(entry.refuse(Transfers::receive, "requires records.folder"));
    }
    Some(TransferOptions {
        rows_per_second: entry.rows_per_second,
        max_hosts: entry.max_hosts,
        report_age: entry.report_age,
        mail: mail(document, &entry, problems),
    })
}

fn mail(
    document: &Document,
    entry: &Typed<'_, Transfers>,
    problems: &mut Vec<Problem>,
) -> Option<MailOptions> {
    let encryption = match entry.mail_encryption {
        MailEncryptionName::Tls => MailEncryption::Tls,
        MailEncryptionName::StartTls => MailEncryption::StartTls,
        MailEncryptionName::None => MailEncryption::None,
    };
    let server = entry.mail_server.as_ref()?;
    let (server, port) = match server.rsplit_once(':') {
        Some((name, port)) => match port.parse() {
            Ok(port) => (name.to_owned(), port),
            Err(_) => {
                problems.push(entry.refuse(Transfers::mail_server, "invalid port: expected 1 to 65535"));
                return None;
            }
        },
        None => (server.clone(), default_port(encryption)),
    };
    let Some(from) = entry.mail_from.clone() else {
        problems.push(entry.refuse(Transfers::mail_server, "requires transfers.mail_from"));
        return None;
    };
    let credentials = match (&entry.mail_user, &entry.mail_password_file) {
        (Some(user), Some(file)) => Some((user.clone(), document.folder.join(file))),
        (None, None) => None,
        _ => {
            let reason = "mail_user and mail_password_file must be set together";
            problems.push(entry.refuse(Transfers::mail_server, reason));
            None
        }
    };
    Some(MailOptions { server, port, encryption, credentials, from })
}

/// The port of each kind of encryption (RFC 8314, RFC 6409, RFC 5321).
const fn default_port(encryption: MailEncryption) -> u16 {
    match encryption {
        MailEncryption::Tls => 465,
        MailEncryption::StartTls => 587,
        MailEncryption::None => 25,
    }
}
