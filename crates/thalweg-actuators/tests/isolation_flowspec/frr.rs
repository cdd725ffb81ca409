//! A router: FRR's bgpd alone in a network namespace, without zebra and kernel routes. A speaker is in another namespace.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use thalweg_linux::Namespace;

/// Where Debian has it.
const BGPD: &str = "/usr/lib/frr/bgpd";

/// Addresses of the router and of the speaker.
pub(crate) const ROUTER: &str = "198.18.0.1";
pub(crate) const SPEAKER: &str = "198.18.0.2";
pub(crate) const ROUTER6: &str = "2001:db8:18::1";
pub(crate) const SPEAKER6: &str = "2001:db8:18::2";

/// The autonomous system of the router.
pub(crate) const ROUTER_AS: u32 = 64_500;

/// Maximum time of any step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Both namespaces and bgpd, removed on drop.
pub(crate) struct Frr {
    router: Namespace,
    pub(crate) speaker: Namespace,
    folder: TempDir,
    bgpd: Option<Child>,
}

/// How the router sees the speaker.
pub(crate) struct Neighbour<'a> {
    pub(crate) address: &'a str,
    pub(crate) asn: u32,
    /// Families of rules that it accepts.
    pub(crate) families: &'a [&'a str],
    /// Further lines, without `neighbor ADDRESS`.
    pub(crate) lines: &'a [&'a str],
}

impl Neighbour<'_> {
    fn configuration(&self) -> String {
        let Neighbour { address, asn, families, lines } = self;
        let mut text = format!(
            "router bgp {ROUTER_AS}\n bgp router-id {ROUTER}\n no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n \
             neighbor {address} remote-as {asn}\n neighbor {address} passive\n"
        );
        for line in *lines {
            text += &format!(" neighbor {address} {line}\n");
        }
        for family in *families {
            let activate = format!("  neighbor {address} activate\n exit-address-family\n");
            text += &format!(" address-family {family} flowspec\n{activate}");
        }
        text
    }
}

fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = std::io::stderr().write_all(format!("skipped: {name}: {reason}\n").as_bytes());
}

impl Frr {
    /// Creates both namespaces and starts bgpd, or reports why the test is skipped.
    pub(crate) fn start(neighbour: &Neighbour<'_>) -> Option<Frr> {
        Frr::start_with(&neighbour.configuration())
    }

    /// The same with this configuration of bgpd.
    pub(crate) fn start_with(configuration: &str) -> Option<Frr> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end: &str| format!("tfs-{}-{number}{end}", std::process::id());
        let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
        if !has(BGPD) || !has("vtysh") {
            skip("needs bgpd and vtysh (package frr)");
            return None;
        }
        let router = match Namespace::create(name("r")) {
            Ok(router) => router,
            Err(error) => {
                skip(&format!("needs root: {error}"));
                return None;
            }
        };
        let speaker = Namespace::create(name("s")).unwrap();
        let mut frr = Frr { router, speaker, folder: tempfile::tempdir().unwrap(), bgpd: None };
        fs::set_permissions(frr.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let peer = frr.speaker.name().to_owned();
        run(&frr.router, &["link", "add", "south", "type", "veth", "peer", "name", "north", "netns", &peer]);
        for (namespace, interface, addresses) in
            [(&frr.router, "south", [ROUTER, ROUTER6]), (&frr.speaker, "north", [SPEAKER, SPEAKER6])]
        {
            run(namespace, &["link", "set", "lo", "up"]);
            run(namespace, &["addr", "add", &format!("{}/24", addresses[0]), "dev", interface]);
            run(namespace, &["addr", "add", &format!("{}/64", addresses[1]), "dev", interface, "nodad"]);
            run(namespace, &["link", "set", interface, "up"]);
        }
        fs::write(frr.folder.path().join("bgpd.conf"), configuration).unwrap();
        frr.start_bgpd();
        Some(frr)
    }

    /// Starts bgpd, and waits until it answers.
    pub(crate) fn start_bgpd(&mut self) {
        let mut command = Command::new(BGPD);
        command
            .args(["-S", "-n", "-Z", "-P", "0", "-f", "bgpd.conf", "-i", "pid", "--vty_socket"])
            .arg(self.folder.path())
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.bgpd = Some(self.router.spawn(&mut command).unwrap());
        self.wait("bgpd answers", |frr| frr.vtysh("show bgp summary").contains("local AS number"));
    }

    /// Ends bgpd at once, so that it says nothing to its neighbour.
    pub(crate) fn kill_bgpd(&mut self) {
        if let Some(mut bgpd) = self.bgpd.take() {
            let _ = bgpd.kill();
            let _ = bgpd.wait();
        }
    }

    /// Sets the router's interface up or down.
    pub(crate) fn set_link(&self, state: &str) {
        run(&self.router, &["link", "set", "south", state]);
    }

    /// Runs a command of vtysh.
    pub(crate) fn vtysh(&self, command: &str) -> String {
        let mut vtysh = Command::new("vtysh");
        vtysh.arg("--vty_socket").arg(self.folder.path()).args(["-c", command]);
        String::from_utf8(vtysh.output().unwrap().stdout).unwrap()
    }

    /// Returns the number of rules of a family, `ipv4` or `ipv6`.
    pub(crate) fn count(&self, family: &str) -> usize {
        let text = self.vtysh(&format!("show bgp {family} flowspec detail"));
        text.matches("BGP flowspec entry:").count()
    }

    /// Waits until something holds.
    #[track_caller]
    pub(crate) fn wait(&self, what: &str, holds: impl Fn(&Frr) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < until, "{what}: {}", self.vtysh("show bgp neighbors"));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        self.kill_bgpd();
        for namespace in [&self.router, &self.speaker] {
            let _ = namespace.kill_processes();
            let _ = namespace.delete();
        }
    }
}

fn run(namespace: &Namespace, arguments: &[&str]) {
    let status = namespace.spawn(Command::new("ip").args(arguments)).unwrap().wait().unwrap();
    assert!(status.success(), "ip {arguments:?}");
}
