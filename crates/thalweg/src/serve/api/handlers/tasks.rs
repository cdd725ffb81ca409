//! What sketches say.

use thalweg_api::problem::Problem;

use super::OfCollector;
use crate::serve::api::Api;
use crate::serve::api::json::{CollectorTasks, Tasks};
use crate::serve::http::input::Query;
use crate::serve::http::output::Json;

/// `GET /v1/tasks`
pub(in crate::serve::api) fn all(
    api: &Api,
    Query(OfCollector { collector }): Query<OfCollector>,
) -> Result<Json<Tasks>, Problem> {
    let collectors = super::asked(api, collector.as_deref())?.iter().map(CollectorTasks::from).collect();
    Ok(Json(Tasks { collectors }))
}
