//! Files of nfdump 1.7 (`nfcapd.202611221300`), layout version 2.
//!
//! A file has a header of 40 bytes, and blocks, each with a header of 12 bytes and a body that may be compressed. The body is a
//! sequence of records with type and size. Flow records (type 11) consist of extensions, each with type and length. All numbers
//! have the byte order of the machine that wrote them; those of little-endian machines are read here. The layout is that of
//! nfdump's sources (`nffileV2.h`, `nfxV3.h`, `exporter.h`).
//!
//! | module | contents |
//! |---|---|
//! | [`header`] | headers of files and blocks |
//! | [`record`] | the records of a block |
//! | [`error`] | what is wrong with a file |

pub mod error;
pub mod header;
pub mod record;

pub use error::{NfcapdError, NfcapdProblem};
pub use header::{BlockHeader, Compression, FileHeader};
pub use record::{Decoder, Tally};
