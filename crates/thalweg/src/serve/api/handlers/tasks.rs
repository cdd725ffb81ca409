//! What sketches say.

use thalweg_api::Tasks;
use thalweg_api::problem::Problem;

use super::OfCollector;
use crate::serve::api::{Api, convert};
use crate::serve::http::input::Query;
use crate::serve::http::output::Json;

/// `GET /v1/tasks`
pub(in crate::serve::api) fn all(
    api: &Api,
    Query(OfCollector { collector }): Query<OfCollector>,
) -> Result<Json<Tasks<convert::TaskView>>, Problem> {
    let collectors = super::asked(api, collector.as_deref())?.iter().map(convert::tasks).collect();
    Ok(Json(Tasks { collectors }))
}
