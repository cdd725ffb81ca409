//! Alert rules.

use thalweg_api::Alerts;
use thalweg_api::problem::Problem;

use crate::api::{Api, convert};
use thalweg_http::output::Json;

/// `GET /v1/alerts`
pub(in crate::api) fn all(api: &Api) -> Result<Json<Alerts>, Problem> {
    Ok(Json(Alerts { alerts: api.parts().alerts.iter().map(convert::alert).collect() }))
}
