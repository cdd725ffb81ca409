//! Delivers PRCA reports: by HTTP requests, and by e-mail (SMTP, RFC 5321).

use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Message, SmtpTransport, Transport as _};
use thalweg_api::{Delivery, ReportSubject, TransferReportFile};
use thalweg_wire::{Secret, WebUrl};

use crate::config::{MailEncryption, MailOptions};
use crate::webhook::WebhookClient;

/// Timeout of a delivery.
const TIMEOUT: Duration = Duration::from_secs(20);

/// What could not be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Undelivered {
    /// Where it could not be delivered.
    pub(super) left: Delivery,
    /// Why, without secrets.
    pub(super) failure: String,
}

/// Delivers reports.
#[derive(Debug)]
pub(super) struct Deliverer {
    mail: Option<MailOptions>,
    password: Option<Secret>,
    webhooks: WebhookClient,
}

impl Deliverer {
    /// Creates a deliverer, with the password of the mail server.
    pub(super) fn new(mail: Option<MailOptions>, password: Option<Secret>) -> Deliverer {
        Deliverer { mail, password, webhooks: WebhookClient::new(TIMEOUT) }
    }

    /// Returns why a delivery is impossible; `None` if it is not.
    pub(super) fn problem(&self, delivery: &Delivery) -> Option<String> {
        let Delivery { webhook, email } = delivery;
        if webhook.is_none() && email.is_none() {
            return Some("expected webhook, email, or both".to_owned());
        }
        if let Some(Err(error)) = webhook.as_ref().map(|url| url.parse::<WebUrl>()) {
            return Some(error.to_string());
        }
        if let Some(email) = email {
            if self.mail.is_none() {
                return Some("no mail server is configured (transfers.mail_server)".to_owned());
            }
            if let Err(error) = email.parse::<Mailbox>() {
                return Some(format!("invalid e-mail address {email:?}: {error}"));
            }
        }
        None
    }

    /// Delivers a report to a webhook, an e-mail address, or both. A failure of one does not stop the other.
    ///
    /// # Errors
    /// If one of them failed.
    pub(super) fn deliver(
        &self,
        delivery: &Delivery,
        report: &TransferReportFile,
        html: &str,
        json: &str,
    ) -> Result<(), Undelivered> {
        let Delivery { webhook, email } = delivery;
        let webhook_failure = webhook.as_ref().and_then(|url| self.post(url, json).err());
        let email_failure = email.as_ref().and_then(|to| self.send(to, report, html).err());
        let left = Delivery {
            webhook: webhook.clone().filter(|_| webhook_failure.is_some()),
            email: email.clone().filter(|_| email_failure.is_some()),
        };
        let failures: Vec<String> = [webhook_failure, email_failure].into_iter().flatten().collect();
        match failures.is_empty() {
            true => Ok(()),
            false => Err(Undelivered { left, failure: failures.join("; ") }),
        }
    }

    fn post(&self, url: &str, json: &str) -> Result<(), String> {
        let url: WebUrl = url.parse().map_err(|error| format!("webhook: {error}"))?;
        self.webhooks.post(&url, None, json).map_err(|error| format!("webhook: {error}"))
    }

    fn send(&self, to: &str, report: &TransferReportFile, html: &str) -> Result<(), String> {
        let Some(options) = &self.mail else {
            return Err("e-mail: no mail server is configured (transfers.mail_server)".to_owned());
        };
        let message = message(options, to, report, html).map_err(|error| format!("e-mail: {error}"))?;
        transport(options, self.password.as_ref())
            .and_then(|transport| transport.send(&message))
            .map(drop)
            .map_err(|error| format!("e-mail: {error}"))
    }
}

fn transport(
    options: &MailOptions,
    password: Option<&Secret>,
) -> Result<SmtpTransport, lettre::transport::smtp::Error> {
    let parameters = || TlsParameters::new(options.server.clone());
    let tls = match options.encryption {
        MailEncryption::Tls => Tls::Wrapper(parameters()?),
        // Without STARTTLS, nothing is sent: somebody on the path may have removed the offer.
        MailEncryption::StartTls => Tls::Required(parameters()?),
        MailEncryption::None => Tls::None,
    };
    let mut builder =
        SmtpTransport::builder_dangerous(&options.server).port(options.port).tls(tls).timeout(Some(TIMEOUT));
    if let (Some((user, _)), Some(password)) = (&options.credentials, password) {
        builder = builder.credentials(Credentials::new(user.clone(), password.expose().to_owned()));
    }
    Ok(builder.build())
}

/// Returns a message with a summary, and the report as an attached page.
fn message(
    options: &MailOptions,
    to: &str,
    report: &TransferReportFile,
    html: &str,
) -> Result<Message, Box<dyn std::error::Error>> {
    let subject = match report.subject {
        ReportSubject::User | ReportSubject::All => {
            format!("{} of {} transfers were slow", report.slow, report.transfers)
        }
        ReportSubject::Host => {
            format!("{}: {} of {} transfers were slow", report.name, report.slow, report.transfers)
        }
    };
    let day = |time: thalweg_api::UtcTime| time.to_string().get(..16).unwrap_or_default().replace('T', " ");
    let text = format!(
        "{subject}, from {} to {} (UTC).\n\nThe attached page names the cause of each, with the evidence, and what to change.\n",
        day(report.start),
        day(report.end)
    );
    let name = report.html.rsplit('/').next().unwrap_or("report.html");
    let page = Attachment::new(name.to_owned()).body(html.to_owned(), ContentType::TEXT_HTML);
    Ok(Message::builder()
        .from(options.from.parse()?)
        .to(to.parse()?)
        .subject(format!("Slow transfers: {subject}"))
        .multipart(MultiPart::mixed().singlepart(SinglePart::plain(text)).singlepart(page))?)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use thalweg_api::UtcTime;
    use thalweg_wire::Timestamp;

    use super::*;

    /// A mail server that takes one message. Returns the lines that it received.
    fn mail_server() -> (u16, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut heard = String::new();
            stream.write_all(b"220 test\r\n").unwrap();
            let mut is_data = false;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap() == 0 {
                    return heard;
                }
                heard += &line;
                let answer = match line.trim_end() {
                    "." if is_data => {
                        is_data = false;
                        "250 taken\r\n"
                    }
                    _ if is_data => continue,
                    "DATA" => {
                        is_data = true;
                        "354 go on\r\n"
                    }
                    "QUIT" => {
                        stream.write_all(b"221 bye\r\n").unwrap();
                        return heard;
                    }
                    _ => "250 ok\r\n",
                };
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        (port, thread)
    }

    fn report() -> TransferReportFile {
        let time = UtcTime(Timestamp(1_795_352_700_000_000_000));
        TransferReportFile {
            subject: ReportSubject::Host,
            name: "dtn1".to_owned(),
            start: time,
            end: time,
            made: time,
            transfers: 40,
            slow: 3,
            causes: [("streams".to_owned(), 3)].into(),
            html: "transfers/p/host-dtn1.html".to_owned(),
            json: "transfers/p/host-dtn1.json".to_owned(),
        }
    }

    fn options(port: u16, encryption: MailEncryption) -> MailOptions {
        MailOptions {
            server: "127.0.0.1".to_owned(),
            port,
            encryption,
            credentials: Some(("thalweg".to_owned(), "password".into())),
            from: "thalweg@example.net".to_owned(),
        }
    }

    fn to_nora() -> Delivery {
        Delivery { webhook: None, email: Some("Nora <nora@example.net>".to_owned()) }
    }

    /// A port on which nothing listens.
    fn free_port() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn a_report_is_sent_as_a_page_attached_to_a_summary() {
        let (port, server) = mail_server();
        let deliverer = Deliverer::new(Some(options(port, MailEncryption::None)), None);
        assert_eq!(deliverer.problem(&to_nora()), None);
        deliverer.deliver(&to_nora(), &report(), "<p>page</p>", "{}").unwrap();
        drop(deliverer);
        let heard = server.join().unwrap();
        for expected in [
            "MAIL FROM:<thalweg@example.net>",
            "RCPT TO:<nora@example.net>",
            "Subject: Slow transfers: dtn1: 3 of 40 transfers were slow",
            "host-dtn1.html",
            "<p>page</p>",
        ] {
            assert!(heard.contains(expected), "{expected} in {heard}");
        }
    }

    #[test]
    fn impossible_deliveries_are_refused_and_failures_have_no_secrets() {
        let deliverer = Deliverer::new(None, None);
        let problem = |webhook: Option<&str>, email: Option<&str>| {
            deliverer
                .problem(&Delivery { webhook: webhook.map(str::to_owned), email: email.map(str::to_owned) })
        };
        assert_eq!(problem(None, None).unwrap(), "expected webhook, email, or both");
        assert!(problem(None, Some("a@b.c")).unwrap().contains("transfers.mail_server"));
        assert!(problem(Some("ftp://x"), None).unwrap().starts_with("invalid URL"));
        assert_eq!(problem(Some("https://example.net/hook?token=secret"), None), None);
        let webhook = format!("http://127.0.0.1:{}/?token=secret", free_port());
        let delivery = Delivery { webhook: Some(webhook), email: None };
        let Undelivered { left, failure } = deliverer.deliver(&delivery, &report(), "", "{}").unwrap_err();
        assert_eq!(left, delivery);
        assert!(failure.starts_with("webhook: ") && !failure.contains("secret"), "{failure}");
    }

    #[test]
    fn nothing_is_sent_if_starttls_is_not_offered() {
        let (port, server) = mail_server();
        let password = Some(Secret::new("secret".to_owned()));
        let deliverer = Deliverer::new(Some(options(port, MailEncryption::StartTls)), password);
        let failure = deliverer.deliver(&to_nora(), &report(), "", "{}").unwrap_err().failure;
        assert!(failure.contains("STARTTLS"), "{failure}");
        drop(deliverer);
        let heard = server.join().unwrap();
        assert!(heard.starts_with("EHLO") && !heard.contains("AUTH") && !heard.contains("MAIL"), "{heard}");
    }

    #[test]
    fn a_failure_of_one_delivery_does_not_stop_the_other() {
        let (port, server) = mail_server();
        let webhook = Some(format!("http://127.0.0.1:{}/", free_port()));
        let both = Delivery { webhook: webhook.clone(), ..to_nora() };
        let deliverer = Deliverer::new(Some(options(port, MailEncryption::None)), None);
        let undelivered = deliverer.deliver(&both, &report(), "", "{}").unwrap_err();
        assert_eq!(undelivered.left, Delivery { webhook, email: None });
        drop(deliverer);
        assert!(server.join().unwrap().contains("RCPT TO:<nora@example.net>"));
    }
}
