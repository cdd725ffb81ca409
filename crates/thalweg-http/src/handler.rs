//! Handlers: functions from the server's state and inputs to an output or a problem.
//!
//! ```ignore
//! fn flows(api: &Api, Path(on): Path<OnLink>, Query(choice): Query<Choice>) -> Result<Json<Flows>, Problem>
//! ```

use schemars::SchemaGenerator;
use thalweg_api::problem::Problem;

use super::input::{Content, Input};
use super::output::Output;
use super::parameters::Parameter;
use super::reply::Reply;
use super::request::Request;

/// A handler of requests. It may block for a limited time.
pub trait Handler<S, I, O>: Clone + Send + Sync + 'static {
    /// Whether it reads the query. If not, a query is refused.
    const READS_QUERY: bool;

    /// Whether it reads the body.
    const READS_BODY: bool;

    /// Returns the parameters that it reads.
    fn parameters(generator: &mut SchemaGenerator) -> Vec<Parameter>;

    /// Returns the alternative bodies that it reads.
    fn bodies(generator: &mut SchemaGenerator) -> Vec<Content>;

    /// Reads the inputs. The returned function answers the request, and may block.
    ///
    /// # Errors
    /// If an input is missing or invalid.
    fn prepare(&self, request: &Request) -> Result<Prepared<S>, Problem>;
}

/// A handler with its inputs, ready to run.
pub type Prepared<S> = Box<dyn FnOnce(&S) -> Result<Reply, Problem> + Send>;

macro_rules! handlers_of {
    ($($input:ident $value:ident),*) => {
        impl<S, F, O, $($input),*> Handler<S, ($($input,)*), O> for F
        where
            F: Fn(&S, $($input),*) -> Result<O, Problem> + Clone + Send + Sync + 'static,
            O: Output,
            $($input: Input,)*
        {
            const READS_QUERY: bool = false $(|| $input::READS_QUERY)*;
            const READS_BODY: bool = false $(|| $input::READS_BODY)*;

            fn parameters(generator: &mut SchemaGenerator) -> Vec<Parameter> {
                [$($input::parameters(generator)),*].concat()
            }

            fn bodies(generator: &mut SchemaGenerator) -> Vec<Content> {
                [$($input::bodies(generator)),*].concat()
            }

            fn prepare(&self, request: &Request) -> Result<Prepared<S>, Problem> {
                let answer = self.clone();
                $(let $value = $input::read(request)?;)*
                Ok(Box::new(move |state| answer(state, $($value),*)?.into_reply()))
            }
        }
    };
}

handlers_of!(A a);
handlers_of!(A a, B b);
handlers_of!(A a, B b, C c);

impl<S, F, O> Handler<S, (), O> for F
where
    F: Fn(&S) -> Result<O, Problem> + Clone + Send + Sync + 'static,
    O: Output,
{
    const READS_QUERY: bool = false;
    const READS_BODY: bool = false;

    fn parameters(_: &mut SchemaGenerator) -> Vec<Parameter> {
        Vec::new()
    }

    fn bodies(_: &mut SchemaGenerator) -> Vec<Content> {
        Vec::new()
    }

    fn prepare(&self, _: &Request) -> Result<Prepared<S>, Problem> {
        let answer = self.clone();
        Ok(Box::new(move |state| answer(state)?.into_reply()))
    }
}
