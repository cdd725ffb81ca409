//! Hanging disks and pipes: the daemon continues, notifies its watchdog, and stops in time.
//!
//! The tests use named pipes without a reader or a writer.

use std::os::unix::net::UnixDatagram;

use super::*;

/// Maximum time to stop, less than the timeout of systemd (`packaging/thalweg.service`).
const STOP_LIMIT: Duration = Duration::from_secs(12);

/// Creates a named pipe.
fn pipe(serve: &Serve, file: &str) {
    assert!(Command::new("mkfifo").args(["-m", "666"]).arg(serve.path(file)).status().unwrap().success());
}

/// Starts a daemon whose watchdog expects two notifications per second.
fn start_watched(serve: &mut Serve) -> UnixDatagram {
    let path = serve.path("notify");
    let systemd = UnixDatagram::bind(&path).unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(&path, open).unwrap();
    systemd.set_nonblocking(true).unwrap();
    let mut command = Command::new(THALWEG);
    command.env("NOTIFY_SOCKET", path).env("WATCHDOG_USEC", "1000000").env_remove("WATCHDOG_PID");
    serve.start_as(command);
    systemd
}

/// Checks that it sends several watchdog notifications.
#[track_caller]
fn is_well(systemd: &UnixDatagram) {
    let mut bytes = [0; 200];
    while systemd.recv(&mut bytes).is_ok() {}
    let started = Instant::now();
    let mut count = 0;
    while count < 4 {
        match systemd.recv(&mut bytes) {
            Ok(length) => count += u32::from(&bytes[..length] == b"WATCHDOG=1"),
            Err(_) => sleep(Duration::from_millis(20)),
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{count} notifications");
    }
}

#[track_caller]
fn stops_in_time(mut serve: Serve) -> String {
    let started = Instant::now();
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    assert!(started.elapsed() < STOP_LIMIT, "{:?}: {}", started.elapsed(), serve.log());
    serve.log()
}

#[test]
fn a_hanging_reload_blocks_neither_watchdog_nor_stop() {
    let mut serve = Serve::new(&[CAPTURE, "[records]\nfile = \"records.jsonl\"\n"].concat());
    let systemd = start_watched(&mut serve);
    serve.wait("the file has ended", |serve| serve.has("a", "ended"));
    fs::remove_file(serve.path("topology.toml")).unwrap();
    pipe(&serve, "topology.toml");
    serve.signal("-HUP");
    sleep(Duration::from_millis(200));
    is_well(&systemd);
    assert!(serve.has("a", "ended"), "the API answers");
    let log = stops_in_time(serve);
    assert!(!log.contains("stop timed out"), "{log}");
}

#[test]
fn a_hanging_dump_blocks_neither_watchdog_nor_stop() {
    let mut serve = Serve::new(&[CAPTURE, "[samples]\nfolder = \"samples\"\n"].concat());
    let systemd = start_watched(&mut serve);
    serve.wait("the file has ended", |serve| serve.has("a", "ended"));
    serve.signal("-USR1");
    let dump = |serve: &Serve| {
        let mut files = fs::read_dir(serve.path("samples")).into_iter().flatten();
        files.find_map(|file| {
            file.unwrap().file_name().into_string().ok().filter(|name| name.ends_with(".pcapng"))
        })
    };
    serve.wait("it is written", |serve| dump(serve).is_some());
    let next = dump(&serve).unwrap().replace(".pcapng", "-2.unfinished");
    pipe(&serve, &format!("samples/{next}"));
    serve.signal("-USR1");
    sleep(Duration::from_millis(300));
    is_well(&systemd);
    assert!(serve.has("a", "ended"), "the API answers");
    let log = stops_in_time(serve);
    assert!(log.contains("stop timed out"), "{log}");
}

#[test]
fn a_hanging_disk_blocks_neither_watchdog_nor_stop() {
    let records = "flow_capacity = 64\n[records]\nfile = \"records\"\n";
    let mut serve = Serve::new(&[CAPTURE, records].concat());
    pipe(&serve, "records");
    // Open and full: writers block.
    let mut reader = File::options().read(true).write(true).open(serve.path("records")).unwrap();
    reader.write_all(&[b'x'; 64 << 10]).unwrap();
    let systemd = start_watched(&mut serve);
    serve.wait("the file has ended", |serve| serve.has("a", "ended"));
    is_well(&systemd);
    let log = stops_in_time(serve);
    assert!(log.contains("stop timed out") && log.contains("records not written"), "{log}");
    assert!(!log.contains("unwritten=0"), "{log}");
}

#[test]
fn a_pipe_without_a_writer_blocks_neither_start_nor_stop() {
    let mut serve =
        Serve::new(&[CAPTURE, "[[collector]]\nname = \"b\"\nswitch = \"leaf0\"\nfile = \"pipe\"\n"].concat());
    pipe(&serve, "pipe");
    let systemd = start_watched(&mut serve);
    serve.wait("both read", |serve| serve.has("a", "ended") && serve.has("b", "running"));
    is_well(&systemd);
    let started = Instant::now();
    let log = stops_in_time(serve);
    assert!(started.elapsed() < Duration::from_secs(4) && !log.contains("stop timed out"), "{log}");
}
