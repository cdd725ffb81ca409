//! Loads the configuration for a start, or for `thalweg check`: with what only this host can answer.
//!
//! That is whether the files exist that the start reads, whether the directories can be written, and whether the user exists. A reload
//! does without ([`Config::load`]): it happens as another user, who need not be able to read them again.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use thalweg_api::client::Client;
use thalweg_config::{Document, Problem, Typed};
use thalweg_http::access::{Tls, Tokens};
use thalweg_linux::folders::check_folder;
use thalweg_linux::privileges::{changes_user, check_user, check_writable};
use thalweg_records::export::TlsFiles as ExportTlsFiles;

use super::config::names::{ActuatorName, IsolatorName, PollSourceName};
use super::config::table::{Alert, Api, Control, Isolation, Poll, Process, Records, Threshold, Transfers};
use super::config::{Config, ConfigError, InterfaceCheck, client_options, missing_interfaces, tls_files};
use super::isolation::{read_password, read_token};
use super::polls::credentials;

/// Reads a file for the start of the daemon.
///
/// # Errors
/// Returns all problems of the file, on this host.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    Config::load_with(path, problems).map_err(|mut errors| errors.swap_remove(0))
}

/// Reads a file for `thalweg check`.
///
/// # Errors
/// Returns one error per file, with all problems of the file on this host.
pub fn check(path: &Path, interfaces: InterfaceCheck) -> Result<Config, Vec<ConfigError>> {
    Config::load_with(path, |document| {
        let mut problems = problems(document);
        if interfaces == InterfaceCheck::Done {
            problems.extend(missing_interfaces(document));
        }
        problems
    })
}

/// A key that names a file, and the name.
type FileKey<'a> = (&'static str, &'a Option<String>);

/// Collects the problems of this host.
struct Check<'d> {
    document: &'d Document,
    problems: Vec<Problem>,
}

/// Returns what of a file does not fit this host. Sections with problems of their own are left out.
fn problems(document: &Document) -> Vec<Problem> {
    let mut check = Check { document, problems: Vec::new() };
    check.api();
    check.control();
    check.isolation();
    check.polls();
    check.transfers();
    check.alerts();
    check.records();
    check.folders();
    check.problems
}

impl Check<'_> {
    fn path(&self, file: &Option<String>) -> Option<PathBuf> {
        file.as_ref().map(|file| self.document.folder.join(file))
    }

    /// Reports an error about one of several files, at the key of the file that it names.
    fn refuse<T>(&mut self, entry: &Typed<'_, T>, files: &[FileKey<'_>], error: impl Display) {
        let error = error.to_string();
        let is_named = |(_, file): &&FileKey<'_>| {
            self.path(file).is_some_and(|path| error.contains(&*path.to_string_lossy()))
        };
        let length = |(_, file): &&FileKey<'_>| file.as_ref().map_or(0, String::len);
        let named = files.iter().filter(is_named).max_by_key(length);
        let key = named.or_else(|| files.iter().find(|(_, file)| file.is_some())).map_or("", |(key, _)| key);
        self.problems.push(entry.refuse(key, format!("{error} (on this host)")));
    }

    fn api(&mut self) {
        for entry in self.document.valid::<Api>() {
            let tokens = [(Api::token_file, &entry.token_file)];
            if let Some(Err(error)) = self.path(&entry.token_file).map(|path| Tokens::load(&path)) {
                self.refuse(&entry, &tokens, error);
            }
            let files = [
                (Api::tls_certificate, &entry.tls_certificate),
                (Api::tls_key, &entry.tls_key),
                (Api::client_ca_file, &entry.client_ca_file),
            ];
            let [certificate, key, authority] = files.map(|(_, file)| self.path(file));
            if let (Some(certificate), Some(key)) = (certificate, key)
                && let Err(error) = Tls::load(&certificate, &key, authority.as_deref())
            {
                self.refuse(&entry, &files, error);
            }
        }
    }

    fn control(&mut self) {
        for entry in self.document.valid::<Control>().filter(|entry| entry.decider.is_some()) {
            let files = [
                (Control::remote_token_file, &entry.remote_token_file),
                (Control::remote_ca_file, &entry.remote_ca_file),
            ];
            let remotes = client_options(self.document, &entry);
            let remotes = remotes.iter().filter(|remote| remote.base().is_some());
            if let Some(error) = remotes.map(Client::new).find_map(Result::err) {
                self.refuse(&entry, &files, error);
            }
            if entry.actuator == ActuatorName::OpenFlow {
                let files = [
                    (Control::openflow_certificate, &entry.openflow_certificate),
                    (Control::openflow_key, &entry.openflow_key),
                    (Control::openflow_ca_file, &entry.openflow_ca_file),
                ];
                self.openflow(&entry, files);
            }
        }
    }

    fn isolation(&mut self) {
        for entry in self.document.valid::<Isolation>() {
            match entry.actuator {
                Some(IsolatorName::Webhook) => {
                    if let Some(Err(error)) = self.path(&entry.token_file).map(|path| read_token(&path)) {
                        self.refuse(&entry, &[(Isolation::token_file, &entry.token_file)], error);
                    }
                }
                Some(IsolatorName::Flowspec) => {
                    if let Some(Err(error)) = self.path(&entry.password_file).map(|path| read_password(&path))
                    {
                        self.refuse(&entry, &[(Isolation::password_file, &entry.password_file)], error);
                    }
                }
                Some(IsolatorName::OpenFlow) => {
                    let files = [
                        (Isolation::openflow_certificate, &entry.openflow_certificate),
                        (Isolation::openflow_key, &entry.openflow_key),
                        (Isolation::openflow_ca_file, &entry.openflow_ca_file),
                    ];
                    self.openflow(&entry, files);
                }
                _ => {}
            }
        }
    }

    fn polls(&mut self) {
        for entry in self.document.valid::<Poll>() {
            match entry.source {
                PollSourceName::Snmp => {
                    if let Some(Err(error)) =
                        self.path(&entry.credentials_file).map(|path| credentials(&path))
                    {
                        self.refuse(&entry, &[(Poll::credentials_file, &entry.credentials_file)], error);
                    }
                }
                PollSourceName::OpenFlow => {
                    let files = [
                        (Poll::openflow_certificate, &entry.openflow_certificate),
                        (Poll::openflow_key, &entry.openflow_key),
                        (Poll::openflow_ca_file, &entry.openflow_ca_file),
                    ];
                    self.openflow(&entry, files);
                }
                PollSourceName::Qdisc => {}
            }
        }
    }

    fn transfers(&mut self) {
        for entry in self.document.valid::<Transfers>() {
            if let Some(Err(error)) = self.path(&entry.mail_password_file).map(|path| read_password(&path)) {
                self.refuse(&entry, &[(Transfers::mail_password_file, &entry.mail_password_file)], error);
            }
        }
    }

    fn alerts(&mut self) {
        for entry in self.document.valid::<Alert>() {
            if let Some(Err(error)) = self.path(&entry.token_file).map(|path| read_token(&path)) {
                self.refuse(&entry, &[(Alert::token_file, &entry.token_file)], error);
            }
        }
    }

    /// Checks the TLS files of connections to switches.
    fn openflow<T>(&mut self, entry: &Typed<'_, T>, files: [FileKey<'_>; 3]) {
        let set = tls_files(&self.document.folder, files.map(|(_, file)| file));
        // Files that are not set together are reported elsewhere.
        if let Ok(Some(set)) = set
            && let Err(error) = set.read()
        {
            self.refuse(entry, &files, error);
        }
    }

    fn records(&mut self) {
        for entry in self.document.valid::<Records>() {
            let files = [
                (Records::ipfix_ca_file, &entry.ipfix_ca_file),
                (Records::ipfix_certificate, &entry.ipfix_certificate),
                (Records::ipfix_key, &entry.ipfix_key),
            ];
            let [authority, certificate, key] = files.map(|(_, file)| self.path(file));
            if let Some(authority) = authority {
                let tls = ExportTlsFiles { authority, identity: certificate.zip(key) };
                if let Err(error) = tls.check() {
                    self.refuse(&entry, &files, error);
                }
            }
            // Opened before the daemon changes its user.
            if let Some(path) = self.path(&entry.file) {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
                let writable = match path.exists() {
                    true => std::fs::OpenOptions::new().append(true).open(&path).map(drop),
                    false => check_writable(folder.unwrap_or(Path::new("."))),
                };
                if let Err(error) = writable {
                    let error = format!("cannot write to {}: {error}", path.display());
                    self.refuse(&entry, &[(Records::file, &entry.file)], error);
                }
            }
        }
    }

    /// Checks the user, and the directories without which the daemon does not start.
    fn folders(&mut self) {
        let Some(process) = self.document.valid::<Process>().next() else { return };
        let user = process.user.as_deref();
        if let Some(Err(error)) = user.map(check_user) {
            return self.problems.push(process.refuse(Process::user, format!("{error} (on this host)")));
        }
        for entry in self.document.valid::<Threshold>() {
            self.folder(&entry, (Threshold::folder, &entry.folder), user);
        }
        for entry in self.document.valid::<Records>() {
            self.folder(&entry, (Records::folder, &entry.folder), user);
        }
    }

    fn folder<T>(&mut self, entry: &Typed<'_, T>, key: FileKey<'_>, user: Option<&str>) {
        let Some(path) = self.path(key.1) else { return };
        if let Err(error) = check_folder(&path, user) {
            let who = match (changes_user(), user) {
                (true, Some(user)) => format!("user {user}, to which the daemon changes,"),
                (true, None) => "the user to which the daemon changes".to_owned(),
                (false, _) => "the user of this process".to_owned(),
            };
            self.refuse(entry, &[key], format!("{who} cannot create files in {}: {error}", path.display()));
        }
    }
}
