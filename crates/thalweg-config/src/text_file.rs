//! Reads text files.

use std::io;
use std::path::Path;

/// Reads a UTF-8 file.
///
/// # Errors
/// If the file cannot be read. If it is not UTF-8, the error names the first invalid byte by its line and its offset in the file.
pub fn read_text(path: impl AsRef<Path>) -> io::Result<String> {
    String::from_utf8(std::fs::read(path)?).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let bytes = error.as_bytes();
        let line = 1 + bytes[..offset].iter().filter(|&&byte| byte == b'\n').count();
        let reason = format!(
            "line {line} has the byte 0x{:02x} (offset {offset} in the file): expected UTF-8 text, not a binary file",
            bytes[offset]
        );
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_invalid_byte_is_named_with_its_line() {
        let path = std::env::temp_dir().join(format!("thalweg-text-file-{}", std::process::id()));
        std::fs::write(&path, b"a = 1\nb = \"\xff\"\n").unwrap();
        let error = read_text(&path).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            error.to_string(),
            "line 2 has the byte 0xff (offset 11 in the file): expected UTF-8 text, not a binary file"
        );
    }
}
