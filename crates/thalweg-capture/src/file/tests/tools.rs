//! Interoperability with other tools.

use super::*;

/// Runs a tool with `input` as its standard input; returns its standard output, or prints a note and returns `None`
/// if the tool is not installed.
fn run_tool(name: &str, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        crate::skip::skip(format_args!("{name} is not installed"));
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    // A tool may close its input early.
    let _ = writer.join().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}

#[test]
fn capinfos_and_tshark_read_our_files() {
    let frames = some_frames(50);
    let data: u64 = frames.iter().map(|frame| u64::from(frame.2)).sum();
    for (file, interfaces) in [(pcap_file(&frames), 1), (pcapng_file(&frames), 2)] {
        let file = on_disk(&file);
        let path = file.path.to_str().unwrap();
        let Some(output) = run_tool("capinfos", &["-M", "-c", "-d", "-I", path], b"") else {
            return;
        };
        let output = String::from_utf8(output).unwrap();
        let has = |label: &str, value: &str| {
            output.lines().any(|line| line.starts_with(label) && line.trim_end().ends_with(value))
        };
        assert!(has("Number of packets:", " 50"), "{output}");
        assert!(has("Data size:", &format!(" {data} bytes")), "{output}");
        if interfaces == 2 {
            assert!(has("Number of interfaces in file:", " 2"), "{output}");
        }
        let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.cap_len", "-e", "frame.comment"];
        let arguments = [&["-r", path][..], &fields].concat();
        let Some(output) = run_tool("tshark", &arguments, b"") else { return };
        let output = String::from_utf8(output).unwrap();
        for (n, (line, frame)) in output.lines().zip(&frames).enumerate() {
            let comment = if interfaces == 2 && n % 3 == 0 { "a remark" } else { "" };
            let seconds = format!("{}.{:09}", frame.0 / 1_000_000_000, frame.0 % 1_000_000_000);
            assert_eq!(line.trim_end(), format!("{seconds}\t{}\t{comment}", frame.1.len()).trim_end());
        }
        assert_eq!(output.lines().count(), 50);
    }
}

#[test]
fn files_of_tcpdump_editcap_and_mergecap_are_read() {
    let frames = some_frames(50);
    let micros: Vec<Captured> =
        frames.iter().map(|(time, bytes, length)| (time / 1000 * 1000, bytes.clone(), *length)).collect();
    let file = pcap_file(&frames);
    let written = on_disk(&file);
    let path = written.path.to_str().unwrap();

    if let Some(output) = run_tool("tcpdump", &["-r", "-", "-w", "-"], &file) {
        assert_eq!(read(&output).0, micros, "tcpdump");
    }
    let nanos = ["-r", "-", "-w", "-", "--time-stamp-precision=nano"];
    if let Some(output) = run_tool("tcpdump", &nanos, &file) {
        assert_eq!(read(&output).0, frames, "tcpdump, nanoseconds");
    }
    for format in ["pcapng", "nsecpcap", "modpcap"] {
        if let Some(output) = run_tool("editcap", &["-F", format, path, "-"], b"") {
            let (read, fault) = read(&output);
            assert!(fault.is_none(), "{format}: {fault:?}");
            assert_eq!(read, if format == "modpcap" { micros.clone() } else { frames.clone() }, "{format}");
        }
    }
    if let Some(output) = run_tool("mergecap", &["-a", "-I", "none", "-w", "-", path, path], b"") {
        let mut source = FileSource::from_reader("mergecap", std::io::Cursor::new(output));
        let (read, fault) = drain(&mut source);
        assert!(fault.is_none(), "{fault:?}");
        assert_eq!(read, [frames.clone(), frames].concat());
        assert_eq!(source.decoder.interfaces().len(), 2);
    }
}
