//! Decompresses blocks.

use std::io::Read as _;

use thalweg_wire::nfcapd::Compression;

/// The largest block without compression: twice that of nfdump.
const MAX_BLOCK: usize = 32 << 20;

/// Returns the bytes of a block, in `room` if it was compressed.
///
/// # Errors
/// If they are damaged, or more than a block may have.
pub(super) fn decompressed<'a>(
    compression: Compression,
    block: &'a [u8],
    room: &'a mut Vec<u8>,
) -> Result<&'a [u8], String> {
    let failed = |what: &str, reason: &dyn std::fmt::Display| format!("cannot decompress {what}: {reason}");
    match compression {
        Compression::None => return Ok(block),
        Compression::Lzo => {
            room.resize(MAX_BLOCK, 0);
            let length = lzokay::decompress::decompress(block, room)
                .map_err(|reason| failed("LZO", &format!("{reason:?}")))?;
            room.truncate(length);
        }
        Compression::Lz4 => {
            room.resize(MAX_BLOCK, 0);
            let length =
                lz4_flex::block::decompress_into(block, room).map_err(|reason| failed("LZ4", &reason))?;
            room.truncate(length);
        }
        Compression::Bzip2 => read_all(bzip2::read::BzDecoder::new(block), "bzip2", room)?,
        Compression::Zstd => {
            let decoder =
                zstd::stream::read::Decoder::new(block).map_err(|reason| failed("zstd", &reason))?;
            read_all(decoder, "zstd", room)?;
        }
    }
    Ok(room)
}

fn read_all(decoder: impl std::io::Read, what: &str, room: &mut Vec<u8>) -> Result<(), String> {
    room.clear();
    let read = decoder.take(MAX_BLOCK as u64 + 1).read_to_end(room);
    match read {
        Ok(length) if length > MAX_BLOCK => Err(format!("more than {MAX_BLOCK} bytes after decompression")),
        Ok(_) => Ok(()),
        Err(reason) => Err(format!("cannot decompress {what}: {reason}")),
    }
}
