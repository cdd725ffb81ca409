//! Files of nfdump.

use thalweg_wire::flow_export::RecordBatch;
use thalweg_wire::nfcapd::{BlockHeader, Decoder, FileHeader};

/// Checks that any bytes are a file whose flows are as many as its decoder counts, or an error within the file.
///
/// # Panics
/// When the property does not hold.
pub fn check(data: &[u8]) {
    if let Err(error) = FileHeader::read(data) {
        assert!(error.offset <= data.len() as u64, "{error}");
    }
    let rest = data.get(FileHeader::BYTES..).unwrap_or(data);
    let block = match BlockHeader::read(rest, FileHeader::BYTES) {
        Ok(_) => &rest[BlockHeader::BYTES..],
        Err(_) => rest,
    };
    let (mut decoder, mut batch) = (Decoder::default(), RecordBatch::default());
    if let Err(error) = decoder.block(block, &mut batch) {
        assert!(error.offset <= block.len() as u64, "{error}");
    }
    batch.check_invariants();
    assert_eq!(decoder.tally().flows, batch.len() as u64);
}
