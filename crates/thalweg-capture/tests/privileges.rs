//! Privileges, dropped in processes of one thread each: this program starts itself again. It has no test harness,
//! which would run the tests in threads.

#![expect(unsafe_code, reason = "unshare(2)")]

use std::net::UdpSocket;
use std::process::Command;

use caps::{CapSet, Capability};
use thalweg_capture::live::{LiveError, LiveOptions, LiveSource};
use thalweg_capture::xdp::{XdpOptions, XdpSource};
use thalweg_linux::privileges::{
    Keep, PrivilegeError, UserChange, can_capture, drop_privileges, drop_privileges_except,
    drop_thread_capabilities,
};
use thalweg_wire::{Bytes, Source};

/// Set in the processes that drop their privileges.
const IN_CHILD: &str = "THALWEG_TEST_DROP_PRIVILEGES";

fn main() {
    match std::env::var(IN_CHILD).as_deref() {
        Ok("keep") => return opens_again_with_what_is_kept(),
        Ok(_) => return captures_without_privileges(),
        Err(_) => {}
    }
    let tests: [(&str, fn()); 5] = [
        ("privileges_are_not_dropped_while_other_threads_keep_theirs", other_threads),
        ("root_becomes_nobody_and_goes_on_capturing", root),
        ("root_through_sudo_becomes_the_user_who_called_it", sudo),
        ("what_opening_an_interface_takes_can_be_kept_and_nothing_else", keep),
        ("a_thread_gives_up_its_capabilities_and_those_of_its_children_and_no_others", one_thread),
    ];
    for (name, test) in tests {
        println!("test {name} ...");
        test();
    }
    println!("test result: ok. {} passed", tests.len());
}

fn other_threads() {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || receiver.recv());
    let result = drop_privileges();
    drop(sender);
    other.join().unwrap().unwrap_err();
    assert!(matches!(result, Err(PrivilegeError::ThreadsRunning { thread_count: 2 })), "{result:?}");
}

fn root() {
    run_child(&[]);
}

fn sudo() {
    run_child(&[("SUDO_UID", "4321"), ("SUDO_GID", "8765")]);
}

fn keep() {
    run_child(&[(IN_CHILD, "keep")]);
}

fn one_thread() {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 || !can_capture() {
        return println!("skipped: needs root");
    }
    std::thread::spawn(|| {
        LiveSource::open(&LiveOptions::new("lo")).unwrap();
        drop_thread_capabilities().unwrap();
        has_nothing("the thread");
        std::thread::spawn(|| has_nothing("its child")).join().unwrap();
    })
    .join()
    .unwrap();
    assert!(can_capture(), "others keep theirs");
    LiveSource::open(&LiveOptions::new("lo")).unwrap();
}

fn has_nothing(thread: &str) {
    for set in [CapSet::Effective, CapSet::Permitted, CapSet::Inheritable, CapSet::Ambient] {
        assert!(caps::read(None, set).unwrap().is_empty(), "{thread}: {set:?}");
    }
    let opened = LiveSource::open(&LiveOptions::new("lo"));
    assert!(!can_capture() && matches!(opened, Err(LiveError::NoPermission { .. })), "{thread}");
}

fn opens_again_with_what_is_kept() {
    let error = drop_privileges_except(Keep::Capture, Some("no such user")).unwrap_err();
    assert_eq!(error.to_string(), "unknown user \"no such user\"");
    let dropped = drop_privileges_except(Keep::Capture, Some("nobody")).unwrap();
    let UserChange::To { uid, .. } = dropped.user else { panic!("{dropped:?}") };
    assert_ne!(uid, 0);
    for set in [CapSet::Effective, CapSet::Permitted] {
        let held = caps::read(None, set).unwrap();
        assert_eq!(held, dropped.kept.iter().copied().collect(), "{set:?}");
        assert!(held.contains(&Capability::CAP_NET_RAW) && !held.contains(&Capability::CAP_SETUID));
    }
    for set in [CapSet::Ambient, CapSet::Inheritable] {
        assert!(caps::read(None, set).unwrap().is_empty(), "{set:?}");
    }
    assert!(std::fs::File::open("/etc/shadow").is_err());
    LiveSource::open(&LiveOptions::new("lo")).unwrap();
}

fn run_child(environment: &[(&str, &str)]) {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return println!("skipped: needs root");
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(IN_CHILD, "1").env_remove("SUDO_UID").env_remove("SUDO_GID");
    assert!(command.envs(environment.iter().copied()).status().unwrap().success());
}

fn captures_without_privileges() {
    // SAFETY: takes a number; only this process, which has one thread, moves to a network of its own.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0);
    assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
    let options = LiveOptions::new("lo");
    let mut source = LiveSource::open(&options).unwrap();
    let through_xdp = XdpOptions { memory_size: Bytes(256 << 10), ..XdpOptions::new("lo") };
    let mut xdp_source = XdpSource::open_group(&through_xdp).unwrap().pop().unwrap();

    let dropped = drop_privileges().unwrap();
    assert!(dropped.capability_count > 0 && dropped.is_bounding_set_empty, "{dropped:?}");
    let UserChange::To { uid, gid } = dropped.user else { panic!("{dropped:?}") };
    if std::env::var_os("SUDO_UID").is_some() {
        assert_eq!((uid, gid), (4321, 8765));
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(field("Uid:"), vec![uid.to_string(); 4]);
    assert_eq!(field("Gid:"), vec![gid.to_string(); 4]);
    assert!(field("Groups:").is_empty());
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    for set in [CapSet::Ambient, CapSet::Inheritable, CapSet::Effective, CapSet::Permitted, CapSet::Bounding]
    {
        assert!(caps::read(None, set).unwrap().is_empty(), "{set:?}");
    }
    assert!(std::fs::File::open("/etc/shadow").is_err());
    assert!(matches!(LiveSource::open(&options), Err(LiveError::NoPermission { .. })));
    assert!(matches!(XdpSource::open_group(&through_xdp), Err(LiveError::NoXdpPermission { .. })));

    // First through AF_XDP, which leaves nothing for the tap.
    send_a_datagram();
    assert!(sees_the_datagram(&mut xdp_source));
    assert_eq!(xdp_source.counters().kernel_drops, 0);
    drop(xdp_source);
    let shown = Command::new("ip").args(["link", "show", "lo"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&shown.stdout).contains("xdp"), "detached without privileges");
    send_a_datagram();
    assert!(sees_the_datagram(&mut source));
    source.counters();
}

fn send_a_datagram() {
    UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"still captured", "127.0.0.1:9").unwrap();
}

fn sees_the_datagram(source: &mut impl Source) -> bool {
    (0..20).any(|_| {
        let batch = source.next_batch().unwrap().unwrap();
        batch.iter().any(|frame| frame.bytes.ends_with(b"still captured"))
    })
}
