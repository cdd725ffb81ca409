//! Collectors.

use thalweg_api::Collectors;
use thalweg_api::problem::Problem;

use super::Patience;
use crate::api::{Api, convert};
use thalweg_http::output::Json;

/// `GET /v1/collectors`: one that does not answer is shown all the same, as that is what one looks here for.
pub(in crate::api) fn all(api: &Api) -> Result<Json<Collectors>, Problem> {
    let patience = Patience::new();
    let (mut answered, mut collectors) = (Vec::new(), Vec::new());
    for handle in api.parts().collectors.all() {
        let counters = handle.counters(patience.left());
        answered.push(convert::answered(&handle, &counters));
        collectors.push(convert::collector(&handle, counters.ok().map(|asked| asked.value).as_ref()));
    }
    Ok(Json(Collectors { answered, collectors }))
}
