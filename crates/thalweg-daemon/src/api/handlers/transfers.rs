//! Reports of transfer hosts.

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{
    AgentReport, Delivery, ReportAnswer, ReportSubject, TransferHosts, TransferReports, TransferSubscriptions,
};
use thalweg_http::access::Permit;
use thalweg_http::input::{JsonBody, Path, Permitted};
use thalweg_http::output::{Html, Json, OneOf, WrittenJson};
use thalweg_http::parameters::Parsed;
use thalweg_linux::clock::realtime;

use crate::api::Api;
use crate::transfers::Transfers;
use crate::transfers::reports::{Report, ReportsError};

/// A report on slow transfers.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct ReportName {
    /// Period of the report, as in the list.
    #[schemars(example = &"20261127T00_20261128T00")]
    period: String,
    /// Name of the report, as in the list.
    #[schemars(example = &"all.json")]
    report: String,
}

/// `POST /v1/transfers/agent-reports`
pub(in crate::api) fn agent_report(
    api: &Api,
    Permitted(Permit { token, .. }): Permitted,
    JsonBody(report): JsonBody<AgentReport>,
) -> Result<Json<ReportAnswer>, Problem> {
    reception(api)?.report(token.as_deref(), report).map(Json)
}

/// `GET /v1/transfers/hosts`
pub(in crate::api) fn hosts(api: &Api) -> Result<Json<TransferHosts>, Problem> {
    Ok(Json(TransferHosts { hosts: reception(api)?.hosts() }))
}

/// `GET /v1/transfers/reports`
pub(in crate::api) fn reports(api: &Api) -> Result<Json<TransferReports>, Problem> {
    reception(api)?.reports().list(realtime()).map(Json).map_err(|error| wrong(&error))
}

/// `GET /v1/transfers/reports/{period}/{report}`
pub(in crate::api) fn report_file(
    api: &Api,
    Path(ReportName { period, report }): Path<ReportName>,
) -> Result<OneOf<WrittenJson, Html>, Problem> {
    let found =
        reception(api)?.reports().read(&period, &report, realtime()).map_err(|error| wrong(&error))?;
    Ok(match found {
        Report::Json(text) => OneOf::Usual(WrittenJson(text.into())),
        Report::Html(text) => OneOf::Other(Html(text)),
    })
}

/// What a subscription is to.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct SubscriptionPath {
    /// `user`, `host` or `all`.
    #[schemars(example = &"host")]
    subject: Parsed<ReportSubject>,
    /// Name of the user, as reported, or of the host; `*` for all transfers.
    #[schemars(example = &"dtn1")]
    name: String,
}

/// `GET /v1/transfers/subscriptions`
pub(in crate::api) fn subscriptions(api: &Api) -> Result<Json<TransferSubscriptions>, Problem> {
    Ok(Json(reception(api)?.subscriptions()))
}

/// `PUT /v1/transfers/subscriptions/{subject}/{name}`
pub(in crate::api) fn subscribe(
    api: &Api,
    Path(SubscriptionPath { subject: Parsed(subject), name }): Path<SubscriptionPath>,
    JsonBody(delivery): JsonBody<Delivery>,
) -> Result<Json<TransferSubscriptions>, Problem> {
    let transfers = reception(api)?;
    transfers.subscribe(subject, name_of(subject, name)?, delivery)?;
    Ok(Json(transfers.subscriptions()))
}

/// `DELETE /v1/transfers/subscriptions/{subject}/{name}`
pub(in crate::api) fn unsubscribe(
    api: &Api,
    Path(SubscriptionPath { subject: Parsed(subject), name }): Path<SubscriptionPath>,
) -> Result<Json<TransferSubscriptions>, Problem> {
    let transfers = reception(api)?;
    match transfers.unsubscribe(subject, name_of(subject, name.clone())?)? {
        true => Ok(Json(transfers.subscriptions())),
        false => Err(Problem::new(Code::NotFound, format!("no subscription to reports about {name:?}"))),
    }
}

/// Returns the name of a subject: that of all transfers is empty, which a path cannot have.
fn name_of(subject: ReportSubject, name: String) -> Result<String, Problem> {
    match (subject, name.as_str()) {
        (ReportSubject::All, "*") => Ok(String::new()),
        (ReportSubject::All, _) => {
            Err(Problem::new(Code::BadParameter, "expected the name * for all transfers"))
        }
        _ => Ok(name),
    }
}

fn wrong(error: &ReportsError) -> Problem {
    let code = match error {
        ReportsError::None(_) | ReportsError::Unknown(_) => Code::NotFound,
        ReportsError::Unreadable { .. } => Code::Internal,
    };
    Problem::new(code, error)
}

fn reception(api: &Api) -> Result<&Transfers, Problem> {
    let missing = || {
        let text = "no reports of transfer hosts are received: add [transfers] with receive = true to the configuration";
        Problem::new(Code::NotConfigured, text)
    };
    api.parts().transfers.as_ref().ok_or_else(missing)
}
