//! Interface counters that the daemon polls.

use thalweg_api::Interfaces;
use thalweg_api::problem::{Code, Problem};

use crate::api::{Api, convert};
use thalweg_http::output::Json;

/// `GET /v1/interfaces`
pub(in crate::api) fn all(api: &Api) -> Result<Json<Interfaces>, Problem> {
    let polls = api.parts().polls.all();
    if polls.is_empty() {
        let message = "no interface counters are polled: add [[poll]] to the configuration";
        return Err(Problem::new(Code::NotConfigured, message));
    }
    Ok(Json(Interfaces { interfaces: polls.iter().map(convert::polled_interface).collect() }))
}
