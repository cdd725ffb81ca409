//! Mapped files, and streams.

use super::*;

#[test]
fn a_large_mapped_file_is_read_to_its_end() {
    let frames = some_frames(100_000);
    let bytes = pcap_file(&frames);
    assert!(bytes.len() > 12 << 20, "the step is 4 MiB");
    let (read, fault) = read(&bytes);
    assert!(fault.is_none() && read == frames);
}

/// Returns its bytes in portions of varying size, sometimes with nothing between them.
struct SlowReader {
    bytes: std::io::Cursor<Vec<u8>>,
    turn: usize,
}

impl Read for SlowReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(3) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let portion = out.len().min(1 + self.turn % 5 * 7);
        self.bytes.read(&mut out[..portion])
    }
}

#[test]
fn a_slow_stream_yields_the_same_frames() {
    let frames = some_frames(300);
    for plain in [pcap_file(&frames), pcapng_file(&frames)] {
        for bytes in [plain.clone(), in_two(gzip, &plain), in_two(zstd, &plain)] {
            let slow = SlowReader { bytes: std::io::Cursor::new(bytes), turn: 0 };
            let mut source = FileSource::from_reader("a slow stream", slow);
            assert!(source.next_batch().unwrap().unwrap().frames.is_empty(), "no data yet");
            let (read, fault) = drain(&mut source);
            assert!(fault.is_none() && read == frames, "{fault:?}");
        }
    }
}

#[test]
fn the_buffer_grows_only_for_data_received() {
    let jumbo: Captured = (5, vec![7; 3 << 20], 3 << 20);
    let file = pcap_file(std::slice::from_ref(&jumbo));
    let mut source = FileSource::from_reader("a stream", std::io::Cursor::new(file));
    assert_eq!(drain(&mut source).0, [jumbo]);

    for claim in [MAX_RECORD_LENGTH as u32 - 16, MAX_RECORD_LENGTH as u32 - 15] {
        let mut file = pcap_file(&[]);
        file.extend([&[0; 8][..], &claim.to_le_bytes(), &claim.to_le_bytes(), &[0; 1000]].concat());
        let mut source = FileSource::from_reader("a stream", std::io::Cursor::new(file));
        let fault = drain(&mut source).1.unwrap();
        assert_eq!(fault.is_truncation(), claim as usize + 16 <= MAX_RECORD_LENGTH, "{fault}");
        let Input::Stream(stream) = &source.input else { panic!("a stream") };
        assert!(stream.buffer_length() <= 512 << 10, "{} bytes", stream.buffer_length());
    }
}

#[test]
fn a_named_pipe_ends_with_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut source = FileSource::open(&path).unwrap();
    for _ in 0..2 {
        assert!(source.next_batch().unwrap().unwrap().frames.is_empty(), "no writer yet");
    }
    let frames = some_frames(300);
    let bytes = pcap_file(&frames);
    let writing = std::thread::spawn(move || std::fs::write(path, bytes).unwrap());
    let mut count = 0;
    while let Some(batch) = source.next_batch().unwrap() {
        count += batch.frames.len();
    }
    assert_eq!(count, frames.len());
    writing.join().unwrap();
}

#[test]
fn a_silent_pipe_yields_empty_batches() {
    let frames = some_frames(2);
    let file = pcap_file(&frames);
    let (reader, mut writer) = std::io::pipe().unwrap();
    let file_end = File::from(std::os::fd::OwnedFd::from(reader));
    let mut source = FileSource::from_reader("a pipe", TimeoutReader::new(file_end));

    let begun = Instant::now();
    assert!(source.next_batch().unwrap().unwrap().frames.is_empty());
    assert!(begun.elapsed() >= Duration::from_millis(90), "it must block, not spin");

    let second = file.len() - 16 - frames[1].1.len();
    writer.write_all(&file[..second + 7]).unwrap();
    assert_eq!(
        source.next_batch().unwrap().unwrap().frames.len(),
        1,
        "available frames are delivered at once"
    );
    assert!(source.next_batch().unwrap().unwrap().frames.is_empty());
    writer.write_all(&file[second + 7..]).unwrap();
    assert_eq!(source.next_batch().unwrap().unwrap().frames.len(), 1);
    drop(writer);
    assert!(source.next_batch().unwrap().is_none());
}

#[test]
fn a_buffered_file_that_becomes_shorter_is_truncated() {
    let frames = some_frames(20_000);
    let at_a_record = pcap_file(&frames[..5_000]).len() as u64;
    for length in [at_a_record, at_a_record + 20] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shrinks.pcap");
        std::fs::write(&path, pcap_file(&frames)).unwrap();
        let mut source = FileSource::open_with(&path, FileAccess::Buffered).unwrap();
        assert!(source.next_batch().unwrap().is_some());
        File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        let error = loop {
            match source.next_batch() {
                Ok(batch) => assert!(batch.is_some(), "the end is not reported"),
                Err(error) => break error,
            }
        };
        assert!(error.is_truncation(), "{error}");
        assert_eq!(source.counters().frames, 5_000);
    }
}

#[test]
fn a_buffered_file_yields_the_same_frames_as_a_mapped_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.pcap");
    std::fs::write(&path, pcap_file(&some_frames(5_000))).unwrap();
    let read = |access| drain(&mut FileSource::open_with(&path, access).unwrap()).0;
    assert_eq!(read(FileAccess::Buffered), read(FileAccess::Mapped));
}
