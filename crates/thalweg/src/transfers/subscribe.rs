//! Subscriptions to reports on slow transfers.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use thalweg_api::client::{Client, ClientOptions, segment};
use thalweg_api::{Delivery, ReportSubject, TransferSubscriptions};
use thalweg_transfers::privacy::Privacy;

/// The path of subscriptions.
const PATH: &str = "/v1/transfers/subscriptions";

/// What to do.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the reports are about, and its name; `None` to list all subscriptions.
    pub subject: Option<(ReportSubject, String)>,
    /// File with the salt by which agents hide names of users.
    pub salt_file: Option<PathBuf>,
    /// Where to send reports.
    pub delivery: Delivery,
    /// Whether to remove the subscription.
    pub remove: bool,
    /// Whether to return JSON.
    pub json: bool,
}

/// Changes a subscription, if asked to, and returns all of them.
///
/// # Errors
/// If the daemon cannot be reached or refuses, or the salt cannot be read.
pub fn text(options: &ClientOptions, request: Request) -> anyhow::Result<String> {
    let client = Client::new(options)?;
    let context = || client.base().to_owned();
    let answer = match request.subject {
        None => client.text(PATH).with_context(context)?,
        Some((subject, name)) => {
            let name = match (&request.salt_file, subject) {
                (Some(salt), ReportSubject::User) => Privacy::existing(salt)?.name(&name),
                _ => name,
            };
            let subject = name_of(subject);
            let path = format!("{PATH}/{subject}/{}", segment(&name));
            match request.remove {
                true => client.delete(&path).with_context(context)?,
                false => {
                    let body = serde_json::to_string(&request.delivery)?;
                    client.put(&path, &body).with_context(context)?
                }
            }
        }
    };
    let list: TransferSubscriptions = serde_json::from_str(&answer).with_context(context)?;
    match request.json {
        true => Ok(serde_json::to_string(&list)? + "\n"),
        false => Ok(table(&list)),
    }
}

fn table(list: &TransferSubscriptions) -> String {
    if list.subscriptions.is_empty() {
        return "no subscriptions\n".to_owned();
    }
    let mut text = String::new();
    for of in &list.subscriptions {
        let subject = match of.subject {
            ReportSubject::All => "all transfers".to_owned(),
            subject => format!("{} {}", name_of(subject), of.name),
        };
        let delivery: Vec<&str> =
            [&of.delivery.email, &of.delivery.webhook].into_iter().flatten().map(String::as_str).collect();
        let latest = of.delivered.map_or("nothing sent yet".to_owned(), |time| {
            let time = time.to_string();
            format!("sent {} UTC", time.get(..16).unwrap_or(&time).replace('T', " "))
        });
        let _ = write!(text, "{subject}: {}; {latest}", delivery.join(", "));
        text += &match of.failure.as_str() {
            "" => "\n".to_owned(),
            failure => format!("; FAILED: {failure}\n"),
        };
    }
    text
}

fn name_of(subject: ReportSubject) -> &'static str {
    match subject {
        ReportSubject::All => "all",
        ReportSubject::User => "user",
        ReportSubject::Host => "host",
    }
}
