//! `thalweg._native`: the analyses of flow records in `thalweg_records` for Python. Conversions only.
//!
//! The types that Python sees are in `python/thalweg/_native.pyi`.

mod analyse;
mod errors;
mod progress;
mod top;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::analyse::analyse;
    #[pymodule_export]
    use super::top::top;
}
