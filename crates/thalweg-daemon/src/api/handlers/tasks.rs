//! Results of measurement tasks.

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::problem::{Code, Problem};
use thalweg_api::{TaskResults, Tasks};

use super::CollectorParam;
use crate::api::{Api, convert};
use thalweg_http::input::{Path, Query};
use thalweg_http::output::Json;

/// `GET /v1/tasks`
pub(in crate::api) fn all(
    api: &Api,
    Query(CollectorParam { collector }): Query<CollectorParam>,
) -> Result<Json<Tasks<convert::TaskView>>, Problem> {
    let collectors = super::selected(api, collector.as_deref())?.iter().map(convert::tasks).collect();
    Ok(Json(Tasks { collectors }))
}

/// A measurement task.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct TaskPath {
    /// Name of the collector.
    #[schemars(example = &"tor0")]
    collector: String,
    /// The task as configured, percent-encoded.
    #[schemars(example = &"heavy%3A0.1%25")]
    task: String,
}

/// `GET /v1/tasks/{collector}/{task}`
pub(in crate::api) fn history(
    api: &Api,
    Path(TaskPath { collector, task }): Path<TaskPath>,
) -> Result<Json<TaskResults<convert::TaskView>>, Problem> {
    let missing = |what: String| Problem::new(Code::NotFound, what);
    let handle = api.parts().collectors.named(&collector);
    let handle = handle.ok_or_else(|| missing(format!("unknown collector {collector:?}")))?;
    convert::task_results(&handle, &task)
        .map(Json)
        .ok_or_else(|| missing(format!("the collector {collector:?} has no task {task:?}")))
}
