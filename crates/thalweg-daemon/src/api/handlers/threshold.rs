//! Adaptation of the rate threshold.

use thalweg_api::Threshold;
use thalweg_api::problem::{Code, Problem};

use crate::api::{Api, convert};
use thalweg_http::output::Json;

/// `GET /v1/threshold`
pub(in crate::api) fn get(api: &Api) -> Result<Json<Threshold>, Problem> {
    let missing = || {
        Problem::new(
            Code::NotConfigured,
            "the rate threshold is not adapted: add [threshold] with a collector to the configuration",
        )
    };
    let threshold = api.parts().threshold.as_ref().ok_or_else(missing)?;
    let report = threshold.report().ok_or_else(missing)?;
    Ok(Json(convert::threshold(threshold.config(), &report)))
}
