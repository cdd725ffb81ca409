//! Interfaces added by a reload, and interfaces with several queues. Skipped without root.

use crate::live::Link;

use super::*;

/// Returns the configuration of a collector on an interface.
fn on(name: &str, interface: &str) -> String {
    format!(
        "[[collector]]\nname = {name:?}\nswitch = \"leaf0\"\ninterface = {interface:?}\nring_size = \"4MiB\"\nsample_ring = \"1MiB\"\n"
    )
}

/// Starts the daemon in the network namespace of the link's sender.
fn start_at(serve: &mut Serve, link: &Link) {
    link.ip_link("set lo up");
    serve.launch(link.at_sender(THALWEG));
    serve.wait("it has started", |serve| serve.log().contains("started version"));
}

#[test]
fn a_reload_opens_an_interface_with_kept_capabilities() {
    const NAME: &str = "a_reload_opens_an_interface_with_kept_capabilities";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    link.ip_link("add second0 type veth peer name second1");
    link.ip_link("set second0 up");
    let first = on("a", &link.interface);
    let mut serve = Serve::new(&first);
    start_at(&mut serve, &link);
    serve.wait("it reads", |serve| serve.log().contains("collector=\"a\" source=\"interface"));
    let pid = serve.child.as_ref().unwrap().id();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(!status.lines().any(|line| line.starts_with("Uid:\t0")), "{status}");
    serve.configure(&[first, on("b", "second0")].concat());
    serve.signal("-HUP");
    serve.wait("it reads the second", |serve| serve.log().contains("collector=\"b\" source=\"interface"));
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

#[test]
fn a_reload_without_capabilities_reports_the_remedy() {
    const NAME: &str = "a_reload_without_capabilities_reports_the_remedy";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    let first = on("a", &link.interface);
    let bare = "[process]\nkeep_capabilities = false\n";
    // Without interfaces at the start, no capabilities are kept.
    for before in [[&first, bare].concat(), CAPTURE.to_owned()] {
        let mut serve = Serve::new(&before);
        start_at(&mut serve, &link);
        serve.configure(&[&before, &*on("b", &link.interface)].concat());
        serve.signal("-HUP");
        serve.wait("it is refused", |serve| serve.log().contains("nothing changed"));
        assert!(
            serve.log().contains("collector b") && serve.log().contains("restart the daemon"),
            "{}",
            serve.log()
        );
        serve.signal("-TERM");
        assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    }
}

#[test]
fn all_queues_of_an_interface_are_read_or_none() {
    const NAME: &str = "all_queues_of_an_interface_are_read_or_none";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    let queues = "numrxqueues 3 numtxqueues 3";
    link.ip_link(&format!("add many0 {queues} type veth peer name many1 {queues}"));
    link.ip_link("set many0 up");
    let collectors = [on("a", "many0"), on("b", "many0"), "backend = \"af_xdp\"\n".to_owned()].concat();
    let mut serve = Serve::new(&collectors);
    let check = link
        .at_sender(THALWEG)
        .args(["check", "--skip-interfaces", "thalweg.toml"])
        .current_dir(serve.folder.path())
        .output();
    let check = String::from_utf8(check.unwrap().stdout).unwrap();
    if !check.contains("3 receive queues") {
        return crate::program::skip(NAME, &format!("no AF_XDP here: {check}"));
    }
    start_at(&mut serve, &link);
    serve.wait("one is refused", |serve| serve.log().contains("`many0` has 3 receive queues"));
    let log = serve.log();
    let expected = "AF_PACKET, since `many0` has 3 receive queues, and AF_XDP would need one socket each";
    for text in [&check, &log] {
        assert!(text.contains(expected), "{text}");
        assert!(
            text.contains("a collector can read only one through AF_XDP: run `ethtool -L many0 combined 1`"),
            "{text}"
        );
    }
}

#[test]
fn prompt_mode_delivers_each_packet_at_once() {
    const NAME: &str = "prompt_mode_delivers_each_packet_at_once";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    let mut serve = Serve::new(&[&on("a", &link.interface), "backend = \"prompt\"\n"].concat());
    let mut check = link.at_sender(THALWEG);
    check.args(["check", "--skip-interfaces", "thalweg.toml"]).current_dir(serve.folder.path());
    let check = String::from_utf8(check.output().unwrap().stdout).unwrap();
    assert!(check.contains("prompt AF_PACKET, as requested"), "{check}");
    start_at(&mut serve, &link);
    serve.wait("it reads", |serve| serve.log().contains("prompt AF_PACKET, as requested"));
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

#[test]
fn an_idle_interface_is_seen_to_go_down_and_away() {
    const NAME: &str = "an_idle_interface_is_seen_to_go_down_and_away";
    for threads in ["per_collector", "one"] {
        for backend in ["af_packet", "prompt"] {
            let Some(link) = Link::set_up(NAME, &[]) else { return };
            // Its other end is down, so that not even the kernel sends packets.
            link.ip_link("add silent0 type veth peer name silent1");
            link.ip_link("set silent0 up");
            let process = format!("[process]\nthreads = {threads:?}\n");
            let backend = format!("backend = {backend:?}\n");
            let mut serve = Serve::new(&[process, on("a", "silent0"), backend].concat());
            start_at(&mut serve, &link);
            serve.wait("it reads", |serve| serve.log().contains("source=\"interface silent0\""));
            link.ip_link("set silent0 down");
            serve.wait("it is down", |serve| serve.log().contains("interface down"));
            link.ip_link("set silent0 up");
            serve.wait("it is up", |serve| serve.log().contains("interface up"));
            link.ip_link("delete silent0");
            serve.wait("it is gone", |serve| serve.log().contains("`silent0` was deleted"));
            serve.signal("-TERM");
            assert_eq!(serve.ended(), Some(0), "{}", serve.log());
        }
    }
}

#[test]
fn a_missing_namespace_is_reported_before_the_start() {
    let serve = Serve::new(&[&on("a", "lo"), "namespace = \"no-such-namespace\"\n"].concat());
    let mut check = std::process::Command::new(THALWEG);
    check.args(["check", "thalweg.toml"]).current_dir(serve.folder.path());
    let check = check.output().unwrap();
    let stderr = String::from_utf8(check.stderr).unwrap();
    assert!(!check.status.success(), "{stderr}");
    assert!(
        stderr.contains("namespace: network namespace \"no-such-namespace\" does not exist: `ip netns list`"),
        "{stderr}"
    );
}

#[test]
fn an_interface_is_opened_in_its_namespace() {
    const NAME: &str = "an_interface_is_opened_in_its_namespace";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    let namespace = format!("namespace = {:?}\n", link.sender);
    let check = |interface: &str| {
        let serve = Serve::new(&[on("a", interface), namespace.clone()].concat());
        let mut check = std::process::Command::new(THALWEG);
        let check = check.args(["check", "thalweg.toml"]).current_dir(serve.folder.path()).output().unwrap();
        [check.stdout, check.stderr].map(|output| String::from_utf8(output).unwrap()).concat()
    };
    let outputs = [check(&link.interface), check("elsewhere0")];
    assert!(outputs[0].contains(": OK") && !outputs[0].contains("no such interface"), "{}", outputs[0]);
    let absent = format!("\"elsewhere0\" does not exist in namespace {}", link.sender);
    assert!(outputs[1].contains(&absent), "{}", outputs[1]);
}

#[test]
fn a_deleted_interface_in_a_namespace_is_reported_with_the_remedy() {
    const NAME: &str = "a_deleted_interface_in_a_namespace_is_reported_with_the_remedy";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    link.ip_link("add gone0 type veth peer name gone1");
    link.ip_link("set gone0 up");
    let mut serve = Serve::new(&[on("a", "gone0"), format!("namespace = {:?}\n", link.sender)].concat());
    serve.start();
    serve.wait("it reads", |serve| serve.log().contains("source=\"interface gone0"));
    link.ip_link("delete gone0");
    serve.wait("the remedy is logged", |serve| {
        serve.log().contains("without the privileges of the start: restart the daemon")
    });
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

#[test]
fn idle_collectors_of_interfaces_take_little_memory() {
    const NAME: &str = "idle_collectors_of_interfaces_take_little_memory";
    const COUNT: u64 = 20;
    for backend in ["af_packet", "af_xdp"] {
        let Some(link) = Link::set_up(NAME, &[]) else { return };
        let collector = |number: u64| {
            let interface = match backend {
                "af_xdp" => {
                    link.ip_link(&format!("add idle{number} type veth peer name other{number}"));
                    link.ip_link(&format!("set idle{number} up"));
                    format!("idle{number}")
                }
                _ => "lo".to_owned(),
            };
            format!(
                "[[collector]]\nname = \"c{number}\"\nswitch = \"leaf0\"\ninterface = {interface:?}\nbackend = {backend:?}\n"
            )
        };
        let mut serve = Serve::new(&(0..COUNT).map(collector).collect::<String>());
        start_at(&mut serve, &link);
        serve.wait("one reads", |serve| serve.log().contains("source=\"interface"));
        // Interfaces are opened, and their memory is locked, before the daemon reports its start.
        if backend == "af_xdp" && !serve.log().contains("AF_XDP, as requested") {
            return crate::program::skip(NAME, &format!("no AF_XDP here: {}", serve.log()));
        }
        let kib = serve.resident_kib();
        assert!((COUNT * (4 << 10)..COUNT * 10_000).contains(&kib), "{backend}: {kib} KiB");
        let _ = writeln!(std::io::stderr(), "{COUNT} idle collectors, {backend}: {kib} KiB");
        serve.signal("-TERM");
        assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    }
}

#[test]
fn a_lost_carrier_of_a_local_interface_fails_its_link() {
    const NAME: &str = "a_lost_carrier_of_a_local_interface_fails_its_link";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    link.ip_link("add port0 type veth peer name port1");
    link.ip_link("set port0 up");
    link.ip_link("set port1 up");
    let control = "[control]\ndecider = \"static\"\nlink_interfaces = [\"leaf0:p2 port0\"]\n";
    let collector = on("a", &link.interface);
    let mut serve = Serve::new(&[&*collector, control].concat());
    start_at(&mut serve, &link);
    let failed = |serve: &Serve| serve.log().matches("link changed").count();
    // The other end goes down, so this one has no carrier.
    link.ip_link("set port1 down");
    serve.wait("it fails", |serve| failed(serve) == 1 && serve.log().contains("up=false"));
    link.ip_link("set port1 up");
    serve.wait("it is up", |serve| failed(serve) == 2 && serve.log().contains("up=true"));
    link.ip_link("delete port0");
    serve.wait("it fails again", |serve| failed(serve) == 3);
    let wrong = control.replace("leaf0:p2", "leaf0:eth9");
    serve.configure(&[&*collector, &*wrong].concat());
    let check =
        thalweg_in(serve.folder.path(), &["check", "--skip-interfaces", "thalweg.toml"]).ended_with(2);
    assert!(check.stderr.contains("no port eth9 at \"leaf0\""), "{}", check.stderr);
}
