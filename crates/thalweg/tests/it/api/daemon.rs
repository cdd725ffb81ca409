//! The daemon as a process, with collectors that read a capture, and its API.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::client::{Client, TIMEOUT};
use crate::api::schema::faults;

/// A process that is killed at the end of the test.
struct Daemon {
    child: Child,
    client: Client,
    folder: tempfile::TempDir,
}

impl Daemon {
    /// Starts a daemon whose collector `leaf0` reads the example capture at full speed.
    fn start() -> Daemon {
        let folder = tempfile::tempdir().unwrap();
        let samples = folder.path().join("samples");
        std::fs::create_dir(&samples).unwrap();
        // Started by root, the daemon changes its user.
        for (folder, mode) in [(folder.path(), 0o755), (&samples, 0o777)] {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/collector");
        let config = format!(
            "[api]\nlisten = \"127.0.0.1:0\"\n[network]\ntopology = \"{0}/topology.toml\"\n\
             [[collector]]\nname = \"leaf0\"\nfile = \"{0}/leaf0.pcapng.zst\"\n\
             tasks = [\"heavy:5%\", \"distinct\"]\nwindow = \"1ms\"\n\
             [[rule]]\nlinks = \"all\"\nupper = 0.5\nlower = 0.3\n[samples]\nfolder = \"{1}\"\n",
            example.display(),
            samples.display(),
        );
        let path = folder.path().join("thalweg.toml");
        std::fs::write(&path, config).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_thalweg"))
            .args(["serve", "-c"])
            .arg(&path)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("api=")?;
            rest.split_whitespace().next().map(str::to_owned)
        });
        // Keep reading: a full pipe would block the daemon.
        std::thread::spawn(move || lines.count());
        let client = Client::new(format!("http://{}", address.expect("it logs its address")));
        Daemon { child, client, folder }
    }

    /// Waits until the capture is read.
    fn wait_for_end(&self) {
        let until = Instant::now() + TIMEOUT;
        while self.client.get("/v1/collectors").json()["collectors"][0]["state"]["name"] != "ended" {
            assert!(Instant::now() < until, "{}", self.client.get("/v1/collectors").text);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_daemon_serves_measurements_as_documented() {
    let daemon = Daemon::start();
    daemon.wait_for_end();
    let document = daemon.client.get("/v1/openapi.json").json();
    let checked = |path: &str, request: &str| {
        let answer = daemon.client.get(request);
        assert_eq!(answer.status, 200, "{request}: {}", answer.text);
        let responses = &document["paths"][path]["get"]["responses"];
        let schema = &responses["200"]["content"]["application/json"]["schema"];
        assert_eq!(faults(&document, schema, &answer.json()), Vec::<String>::new(), "{request}");
        answer.json()
    };
    let flows = checked("/v1/flows", "/v1/flows?limit=10000");
    assert!(flows["total"].as_u64().unwrap() > 0, "{flows}");
    let key = flows["flows"][0]["key"].as_str().unwrap().replace(' ', "%20").replace('>', "%3E");
    checked("/v1/flows/{key}", &format!("/v1/flows/{key}"));
    let output = flows["flows"].as_array().unwrap().iter().find_map(|flow| flow["output"].as_str());
    let link = output.expect("ports are inferred");
    let on_link = checked("/v1/links/{link}/flows", &format!("/v1/links/{link}/flows"));
    assert!(on_link["total"].as_u64().unwrap() > 0, "{on_link}");
    let links = checked("/v1/links", "/v1/links");
    assert!(links["links"].as_array().unwrap().iter().any(|known| known["link"] == link), "{links}");
    let tasks = checked("/v1/tasks", "/v1/tasks");
    assert_eq!(tasks["collectors"][0]["tasks"][0]["result"]["type"], "heavy", "{tasks}");
    checked("/v1/cheetahs", "/v1/cheetahs");
    checked("/v1/topology", "/v1/topology");
    checked("/readyz", "/readyz");
    let frames = daemon.client.get("/metrics").text;
    let frames =
        frames.lines().find_map(|line| line.strip_prefix("thalweg_frames_total{collector=\"leaf0\"} "));
    assert!(frames.unwrap().parse::<u64>().unwrap() > 0);
}

#[test]
fn all_events_of_a_capture_can_be_read() {
    let daemon = Daemon::start();
    daemon.wait_for_end();
    let document = daemon.client.get("/v1/openapi.json").json();
    let mut events = daemon.client.events("?after=0", &[]);
    let mut types = std::collections::BTreeSet::new();
    for id in 1.. {
        let sent = events.next();
        let found = faults(&document, &json!({"$ref": "#/components/schemas/Event"}), &sent.data);
        assert_eq!(found, Vec::<String>::new(), "{}", sent.data);
        assert_eq!(sent.data["id"], id);
        let is_last = sent.data["state"]["name"] == "ended";
        types.insert(sent.event);
        if is_last {
            break;
        }
    }
    assert!(types.contains("congestion") && types.contains("collector"), "{types:?}");
}

#[test]
fn samples_are_written_to_files_or_returned() {
    let daemon = Daemon::start();
    daemon.wait_for_end();
    let written = daemon.client.send("POST", "/v1/samples?collector=leaf0", &[], b"");
    assert_eq!(written.status, 200, "{}", written.text);
    let document = daemon.client.get("/v1/openapi.json").json();
    let found = faults(&document, &json!({"$ref": "#/components/schemas/Samples"}), &written.json());
    assert_eq!(found, Vec::<String>::new());
    let file = &written.json()["files"][0];
    assert!(file["packets"].as_u64().unwrap() > 0, "{file}");
    let path = Path::new(file["path"].as_str().unwrap());
    assert!(path.starts_with(daemon.folder.path()), "{}", path.display());
    let bytes = std::fs::read(path).unwrap();
    let accept = [("accept", "application/pcapng")];
    let streamed = daemon.client.post_for_bytes("/v1/samples?collector=leaf0", &accept);
    assert_eq!(streamed, bytes);
    assert_eq!(daemon.client.send("POST", "/v1/samples", &accept, b"").problem().0, 400);
    assert_eq!(daemon.client.send("POST", "/v1/samples?format=gif", &[], b"").problem().0, 400);
    let absent: Value = daemon.client.send("POST", "/v1/samples?collector=x", &[], b"").json();
    assert!(absent["status"] == 404 || absent["status"] == 429, "{absent}");
}
