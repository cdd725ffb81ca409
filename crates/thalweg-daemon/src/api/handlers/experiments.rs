//! Results of emulated experiments.

use schemars::JsonSchema;
use serde::Deserialize;
use thalweg_api::ExperimentResults;
use thalweg_api::problem::{Code, Problem};

use crate::api::Api;
use crate::experiments::{Experiments, ExperimentsError};
use thalweg_http::input::Path;
use thalweg_http::output::Json;

/// An experiment.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct ExperimentPath {
    /// Name of an experiment without a group, as in the list.
    #[schemars(example = &"incast")]
    name: String,
}

/// An experiment in a folder.
#[derive(Deserialize, JsonSchema)]
pub(in crate::api) struct NestedPath {
    /// Name of the group or the sweep.
    #[schemars(example = &"incast-schemes")]
    name: String,
    /// Name of the experiment in the group, or `run` of the table of the sweep.
    #[schemars(example = &"scheme=dctcp")]
    run: String,
}

/// `GET /v1/experiments`
pub(in crate::api) fn all(api: &Api) -> Result<Json<thalweg_api::Experiments>, Problem> {
    experiments(api)?.list().map(Json).map_err(|error| problem(&error))
}

/// `GET /v1/experiments/{name}`
pub(in crate::api) fn one(
    api: &Api,
    Path(ExperimentPath { name }): Path<ExperimentPath>,
) -> Result<Json<ExperimentResults>, Problem> {
    experiments(api)?.results(&name, None).map(Json).map_err(|error| problem(&error))
}

/// `GET /v1/experiments/{name}/{run}`
pub(in crate::api) fn nested(
    api: &Api,
    Path(NestedPath { name, run }): Path<NestedPath>,
) -> Result<Json<ExperimentResults>, Problem> {
    experiments(api)?.results(&name, Some(&run)).map(Json).map_err(|error| problem(&error))
}

fn experiments(api: &Api) -> Result<&Experiments, Problem> {
    let missing = || {
        let text = "no results of experiments: set experiments.folder in the configuration of the daemon";
        Problem::new(Code::NotConfigured, text)
    };
    api.parts().experiments.as_deref().ok_or_else(missing)
}

fn problem(error: &ExperimentsError) -> Problem {
    let code = match error {
        ExperimentsError::Unknown(_) => Code::NotFound,
        ExperimentsError::Folder { .. } => Code::Internal,
    };
    Problem::new(code, error)
}
