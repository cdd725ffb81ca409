//! `thalweg._native.GeoDatabases`.

use std::net::IpAddr;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use thalweg_records::geo::{GeoDatabases, GeoError};

use crate::errors::os_error;

/// Countries and AS numbers of addresses, from files in MMDB format.
#[pyclass(name = "GeoDatabases", module = "thalweg._native", frozen)]
pub(crate) struct Databases(GeoDatabases);

#[pymethods]
impl Databases {
    #[new]
    fn new(paths: Vec<PathBuf>) -> PyResult<Databases> {
        GeoDatabases::open(&paths).map(Databases).map_err(|error| match &error {
            GeoError::Read { path, source } => os_error(path, source),
            _ => PyValueError::new_err(error.to_string()),
        })
    }

    /// Returns the addresses that a database knows, with their countries and AS numbers, as three columns.
    fn lookup(&self, py: Python<'_>, addresses: Vec<String>) -> (Vec<String>, Vec<&'static str>, Vec<u32>) {
        py.detach(|| {
            let (mut known, mut countries, mut as_numbers) = (Vec::new(), Vec::new(), Vec::new());
            for text in addresses {
                let place = text.parse().map(|address: IpAddr| self.0.lookup(address)).unwrap_or_default();
                if place.country.is_some() || place.as_number != 0 {
                    known.push(text);
                    countries.push(place.country.text());
                    as_numbers.push(place.as_number);
                }
            }
            (known, countries, as_numbers)
        })
    }
}
