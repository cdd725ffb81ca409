//! The sketch behind a pointer.

use thalweg_sketch::any::AnySketch;

/// A sketch: Count-Min, Count Sketch, K-ary or UnivMon, with NitroSketch sampling.
pub struct Sketch {
    pub(crate) any: AnySketch,
}
