//! Results of measurement tasks.

use thalweg_api::Tasks;
use thalweg_api::problem::Problem;

use super::CollectorParam;
use crate::api::{Api, convert};
use thalweg_http::input::Query;
use thalweg_http::output::Json;

/// `GET /v1/tasks`
pub(in crate::api) fn all(
    api: &Api,
    Query(CollectorParam { collector }): Query<CollectorParam>,
) -> Result<Json<Tasks<convert::TaskView>>, Problem> {
    let collectors = super::selected(api, collector.as_deref())?.iter().map(convert::tasks).collect();
    Ok(Json(Tasks { collectors }))
}
