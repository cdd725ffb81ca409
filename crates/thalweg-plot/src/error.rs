//! Why a figure was not drawn.

use std::error::Error;
use std::io;

use plotters::drawing::DrawingAreaErrorKind;
use thiserror::Error;

/// The plotting library could not draw a figure.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct DrawError(Box<dyn Error + Send + Sync>);

impl From<DrawingAreaErrorKind<io::Error>> for DrawError {
    fn from(error: DrawingAreaErrorKind<io::Error>) -> DrawError {
        DrawError(Box::new(error))
    }
}
