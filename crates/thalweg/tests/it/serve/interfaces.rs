//! Interfaces that are added by a reload, and such with several queues. They need root, and say so elsewhere.

use crate::live::Link;

use super::*;

/// A collector of this name on an interface.
fn on(name: &str, interface: &str) -> String {
    format!(
        "[[collector]]\nname = {name:?}\nswitch = \"leaf0\"\ninterface = {interface:?}\nring_size = \"4MiB\"\nsample_ring = \"1MiB\"\n"
    )
}

/// Runs the daemon where the link's sender is, which is another network than that of this test.
fn start_at(serve: &mut Serve, link: &Link) {
    link.ip_link("set lo up");
    serve.launch(link.at_sender(THALWEG));
    serve.wait("it has started", |serve| serve.log().contains("started version"));
}

#[test]
fn an_interface_added_by_a_reload_is_opened_with_the_capabilities_that_were_kept() {
    const NAME: &str = "an_interface_added_by_a_reload_is_opened_with_the_capabilities_that_were_kept";
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
fn an_interface_cannot_be_added_once_the_capabilities_are_gone_and_the_reload_says_what_to_do() {
    const NAME: &str =
        "an_interface_cannot_be_added_once_the_capabilities_are_gone_and_the_reload_says_what_to_do";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    let first = on("a", &link.interface);
    let bare = "[process]\nkeep_capabilities = false\n";
    // Without an interface at the start nothing is kept either.
    for before in [[&first, bare].concat(), CAPTURE.to_owned()] {
        let mut serve = Serve::new(&before);
        start_at(&mut serve, &link);
        serve.configure(&[&before, &*on("b", &link.interface)].concat());
        serve.signal("-HUP");
        serve.wait("it is refused", |serve| serve.log().contains("nothing changed"));
        assert!(
            serve.log().contains("collector b") && serve.log().contains("Start it again"),
            "{}",
            serve.log()
        );
        serve.signal("-TERM");
        assert_eq!(serve.ended(), Some(0), "{}", serve.log());
    }
}

#[test]
fn of_an_interface_with_several_queues_all_are_read_or_none() {
    const NAME: &str = "of_an_interface_with_several_queues_all_are_read_or_none";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    let queues = "numrxqueues 3 numtxqueues 3";
    link.ip_link(&format!("add many0 {queues} type veth peer name many1 {queues}"));
    link.ip_link("set many0 up");
    let collectors = [on("a", "many0"), on("b", "many0"), "backend = \"af_xdp\"\n".to_owned()].concat();
    let mut serve = Serve::new(&collectors);
    let check = link
        .at_sender(THALWEG)
        .args(["check", "-c", "thalweg.toml"])
        .current_dir(serve.folder.path())
        .output();
    let check = String::from_utf8(check.unwrap().stdout).unwrap();
    if !check.contains("3 receive queues") {
        return crate::program::skip(NAME, &format!("no AF_XDP here: {check}"));
    }
    start_at(&mut serve, &link);
    serve.wait("one is refused", |serve| serve.log().contains("`many0` has 3 receive queues"));
    let log = serve.log();
    let told = "AF_PACKET, since `many0` has 3 receive queues, and AF_XDP would need one socket each";
    for text in [&check, &log] {
        assert!(text.contains(told), "{text}");
        assert!(
            text.contains("a collector reads one through AF_XDP: `ethtool -L many0 combined 1`"),
            "{text}"
        );
    }
}

#[test]
fn a_collector_gets_each_packet_as_soon_as_it_comes_where_asked() {
    const NAME: &str = "a_collector_gets_each_packet_as_soon_as_it_comes_where_asked";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    let mut serve = Serve::new(&[&on("a", &link.interface), "backend = \"prompt\"\n"].concat());
    let mut check = link.at_sender(THALWEG);
    check.args(["check", "-c", "thalweg.toml"]).current_dir(serve.folder.path());
    let check = String::from_utf8(check.output().unwrap().stdout).unwrap();
    assert!(check.contains("prompt AF_PACKET, as requested"), "{check}");
    start_at(&mut serve, &link);
    serve.wait("it reads", |serve| serve.log().contains("prompt AF_PACKET, as requested"));
    serve.signal("-TERM");
    assert_eq!(serve.ended(), Some(0), "{}", serve.log());
}

#[test]
fn an_interface_where_nothing_comes_is_seen_to_go_down_and_away_whoever_reads_it() {
    const NAME: &str = "an_interface_where_nothing_comes_is_seen_to_go_down_and_away_whoever_reads_it";
    for threads in ["per_collector", "one"] {
        for backend in ["af_packet", "prompt"] {
            let Some(link) = Link::set_up(NAME, &[]) else { return };
            // Its other end is down: not even the kernel sends anything.
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
            serve.wait("it is gone", |serve| serve.log().contains("`silent0` is gone"));
            serve.signal("-TERM");
            assert_eq!(serve.ended(), Some(0), "{}", serve.log());
        }
    }
}

#[test]
fn a_namespace_that_is_not_there_is_told_before_anything_starts() {
    let serve = Serve::new(&[&on("a", "lo"), "namespace = \"no-such-namespace\"\n"].concat());
    let mut check = std::process::Command::new(THALWEG);
    check.args(["check", "thalweg.toml"]).current_dir(serve.folder.path());
    let check = check.output().unwrap();
    let told = String::from_utf8(check.stderr).unwrap();
    assert!(!check.status.success(), "{told}");
    assert!(told.contains("namespace: network namespace \"no-such-namespace\": cannot enter it"), "{told}");
}

#[test]
fn an_interface_is_looked_for_in_the_namespace_that_it_is_said_to_be_in() {
    const NAME: &str = "an_interface_is_looked_for_in_the_namespace_that_it_is_said_to_be_in";
    let Some(link) = Link::set_up(NAME, &[]) else { return };
    let namespace = format!("namespace = {:?}\n", link.sender);
    let check = |interface: &str| {
        let serve = Serve::new(&[on("a", interface), namespace.clone()].concat());
        let mut check = std::process::Command::new(THALWEG);
        let check = check.args(["check", "thalweg.toml"]).current_dir(serve.folder.path()).output().unwrap();
        [check.stdout, check.stderr].map(|said| String::from_utf8(said).unwrap()).concat()
    };
    let said = [check(&link.interface), check("elsewhere0")];
    assert!(said[0].contains(": OK") && !said[0].contains("no such interface"), "{}", said[0]);
    let absent = format!("there is no interface elsewhere0 in namespace {}", link.sender);
    assert!(said[1].contains(&absent), "{}", said[1]);
}

#[test]
fn an_interface_deleted_in_another_namespace_is_reported_with_the_remedy() {
    const NAME: &str = "an_interface_deleted_in_another_namespace_is_reported_with_the_remedy";
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
