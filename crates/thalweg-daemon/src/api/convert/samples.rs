//! Files of samples.

use thalweg_api::SampleFile;

use crate::samples::DumpedFile;

/// Converts a file of samples.
pub fn sample_file(file: &DumpedFile) -> SampleFile {
    SampleFile {
        collector: file.collector.clone(),
        path: file.path.display().to_string(),
        packets: file.packets,
        overwritten_packets: file.overwritten,
    }
}
