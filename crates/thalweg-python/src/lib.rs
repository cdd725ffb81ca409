//! `thalweg._native`: Python bindings of the analyses and databases in `thalweg_records`, and of the sketches. It only converts values.
//!
//! Python types are declared in `python/thalweg/_native.pyi`.

mod analyse;
mod errors;
mod geo;
mod progress;
mod sketch;
mod top;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::analyse::analyse;
    #[pymodule_export]
    use super::geo::Databases;
    #[pymodule_export]
    use super::sketch::NativeSketch;
    #[pymodule_export]
    use super::top::top;
}
