//! Capture through AF_XDP, and the choice between it and AF_PACKET.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use thalweg_capture::backend::Backend;
use thalweg_capture::live::{LinkState, LiveError, LiveOptions};
use thalweg_capture::xdp::{BusyPoll, MAX_BATCH, XdpMode, XdpOptions, XdpSource};
use thalweg_capture::{AnySource, CaptureError, Choice, InterfaceSpec, Opened, Readers, open};
use thalweg_wire::{Bytes, LinkType, Source};

use super::network::{Network, READER, SENDER, has_capabilities_only, in_namespace};
use super::{HEADERS, now, options, read_until_idle};

const MODES: [XdpMode; 2] = [XdpMode::Native, XdpMode::Generic];

fn xdp(mode: XdpMode) -> XdpOptions {
    XdpOptions { memory_size: Bytes(8 << 20), mode: Some(mode), ..XdpOptions::new("twl0") }
}

impl Network {
    fn open_xdp_group(&self, options: &XdpOptions) -> Result<Vec<XdpSource>, LiveError> {
        self.in_reader(|| XdpSource::open_group(options))
    }

    fn open_xdp(&self, options: &XdpOptions) -> XdpSource {
        let mut group = self.open_xdp_group(options).unwrap();
        assert_eq!(group.len(), 1, "one queue, one source");
        group.pop().unwrap()
    }

    /// Sends datagrams, fewer at a time than the ring of the veth pair holds.
    fn send_gently(&self, count: u32) {
        for _ in 0..count / 100 {
            self.send_udp_many(SENDER, 5000, READER, 6000, 300, 100);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Removes the addresses of `twl0`, so that the host does not use it.
    pub(crate) fn make_monitor_port(&self) {
        self.ip_reader(&["address", "flush", "dev", "twl0"]);
    }
}

/// Frames with and without VLAN tags, from the shortest to what fits in an MTU of 1500 bytes.
fn frames_of_many_lengths(network: &Network) -> Vec<Vec<u8>> {
    let ethertypes: [&[u8]; 3] =
        [&[8, 0], &[0x81, 0, 0x60, 5, 8, 0], &[0x88, 0xa8, 0, 0x64, 0x81, 0, 0x0f, 0xff, 0x86, 0xdd]];
    [46, 50, 100, 192, 512, 1000, 1490]
        .into_iter()
        .flat_map(|length| ethertypes.map(|ethertypes| network.frame(ethertypes, length)))
        .collect()
}

#[test]
fn frames_arrive_unchanged_and_in_order() {
    let Some(network) = Network::new() else { return };
    let frames = frames_of_many_lengths(&network);
    for mode in MODES {
        let mut source = network.open_xdp(&xdp(mode));
        assert_eq!((source.mode(), source.queue(), source.name()), (mode, 0, "twl0"));
        let before = now();
        frames.iter().for_each(|frame| network.send_frame(frame));
        let seen = read_until_idle(&mut source, 2);
        assert_eq!(seen.len(), frames.len(), "{mode:?}");
        for (seen, sent) in seen.iter().zip(&frames) {
            assert_eq!(&seen.bytes, sent, "{mode:?}");
            assert_eq!(seen.original_length as usize, sent.len());
            assert!((before..=now()).contains(&seen.time), "{}", seen.time);
        }
        assert!(seen.is_sorted_by_key(|seen| seen.time));
        let counters = source.counters();
        assert_eq!((counters.frames, counters.kernel_drops), (frames.len() as u64, 0), "{mode:?}");
    }
}

#[test]
fn the_snap_length_does_not_change_lengths() {
    let Some(network) = Network::new() else { return };
    let mut source = network.open_xdp(&XdpOptions { snap_length: 96, ..xdp(XdpMode::Native) });
    let frame = network.frame(&[8, 0], 1000);
    network.send_frame(&frame);
    let seen = read_until_idle(&mut source, 2);
    assert_eq!((seen.len(), &seen[0].bytes[..], seen[0].original_length), (1, &frame[..96], 1014));
}

#[test]
fn chunks_are_reused() {
    let Some(network) = Network::new() else { return };
    for mode in MODES {
        // 128 chunks, fewer than a batch may have.
        let mut source = network.open_xdp(&XdpOptions { memory_size: Bytes(256 << 10), ..xdp(mode) });
        for round in 0..20 {
            network.send_udp_many(SENDER, 5000, READER, 6000, 300, 90);
            let seen = read_until_idle(&mut source, 1);
            let numbers: Vec<_> = seen
                .iter()
                .map(|seen| u32::from_be_bytes(*seen.bytes[HEADERS..].first_chunk().unwrap()))
                .collect();
            assert_eq!(numbers, (0..90).collect::<Vec<_>>(), "{mode:?}, round {round}");
        }
        assert_eq!((source.counters().frames, source.counters().kernel_drops), (1800, 0));
    }
}

#[test]
fn frames_without_a_chunk_are_counted() {
    let Some(network) = Network::new() else { return };
    for mode in MODES {
        let mut source = network.open_xdp(&XdpOptions { memory_size: Bytes(256 << 10), ..xdp(mode) });
        let dropped_before = network.dropped_by_sender();
        network.send_udp_many(SENDER, 5000, READER, 6000, 300, 3000);
        let seen = read_until_idle(&mut source, 2).len() as u64;
        let counters = source.counters();
        assert_eq!(counters.frames, seen);
        assert!(counters.kernel_drops > 0, "{counters:?}");
        let on_the_way = network.dropped_by_sender() - dropped_before;
        assert_eq!(counters.frames + counters.kernel_drops + on_the_way, 3000, "{mode:?}");
        assert_eq!(source.counters(), counters, "reading the counters does not change them");

        network.send_gently(100);
        assert_eq!(read_until_idle(&mut source, 2).len(), 100, "it continues after it was full");
    }
}

#[test]
fn frames_longer_than_a_chunk_arrive_with_their_length() {
    let Some(network) = Network::new() else { return };
    network.ip_reader(&["link", "set", "twl0", "mtu", "9000"]);
    network.ip_sender(&["link", "set", "twl1", "mtu", "9000"]);
    let lengths = [8986, 100, 1780, 5000, 3000, 1779, 9000];
    let frames = lengths.map(|length| network.frame(&[8, 0], length));
    // The smallest memory has 128 chunks, so that frames also continue from its end to its start.
    let memory_size = Bytes(256 << 10);
    for (mode, chunk_size) in MODES.into_iter().flat_map(|mode| [(mode, 2048), (mode, 4096)]) {
        let options = XdpOptions { chunk_size: Bytes(chunk_size), memory_size, ..xdp(mode) };
        let mut source = network.open_xdp(&options);
        // A round takes 15 chunks of 2 KiB or more.
        for round in 0..24 {
            frames.iter().for_each(|frame| network.send_frame(frame));
            let seen = read_until_idle(&mut source, 1);
            assert_eq!(seen.len(), frames.len(), "{mode:?}, {chunk_size}, round {round}");
            for (seen, sent) in seen.iter().zip(&frames) {
                let visible = sent.len().min(chunk_size as usize - 256);
                assert!(seen.bytes == sent[..visible], "{mode:?}, {chunk_size}: {} bytes", sent.len());
                assert_eq!(seen.original_length as usize, sent.len());
            }
        }
        assert_eq!(source.counters().kernel_drops, 0, "{mode:?}, {chunk_size}");
    }
}

#[test]
fn the_time_of_a_frame_is_that_of_its_arrival() {
    let Some(network) = Network::new() else { return };
    for mode in MODES {
        let mut source = network.open_xdp(&xdp(mode));
        let mut sent = Vec::new();
        for _ in 0..20 {
            let before = now();
            network.send_frame(&network.frame(&[8, 0], 100));
            sent.push(before..now());
            std::thread::sleep(Duration::from_millis(5));
        }
        // Read long after all of them have arrived.
        std::thread::sleep(Duration::from_millis(50));
        let batch = source.next_batch().unwrap().unwrap();
        assert_eq!(batch.frames.len(), sent.len());
        for (frame, sent) in batch.frames.iter().zip(&sent) {
            assert!(sent.contains(&frame.time), "{mode:?}: {:?} is not in {sent:?}", frame.time);
        }
    }
}

#[test]
fn a_batch_is_bounded() {
    let Some(network) = Network::new() else { return };
    let mut source = network.open_xdp(&xdp(XdpMode::Native));
    network.send_gently(1000);
    let mut sizes = Vec::new();
    while sizes.iter().sum::<usize>() < 1000 {
        let batch = source.next_batch().unwrap().unwrap();
        assert!(!batch.frames.is_empty(), "{sizes:?} and no more");
        assert!(batch.frames.is_sorted_by_key(|frame| frame.time));
        sizes.push(batch.frames.len());
    }
    assert_eq!(sizes.iter().max(), Some(&(MAX_BATCH as usize)), "{sizes:?}");
}

#[test]
fn filters_run_on_whole_frames() {
    let Some(network) = Network::new() else { return };
    let options =
        XdpOptions { filter: Some("vlan 5 or len > 600".into()), snap_length: 64, ..xdp(XdpMode::Native) };
    let mut source = match network.open_xdp_group(&options) {
        Err(LiveError::Filter(error)) => return crate::skip::skip(error),
        opened => opened.unwrap().pop().unwrap(),
    };
    let frames = frames_of_many_lengths(&network);
    frames.iter().for_each(|frame| network.send_frame(frame));
    let seen = read_until_idle(&mut source, 2);
    let expected: Vec<_> =
        frames.iter().filter(|frame| frame[12..16] == [0x81, 0, 0x60, 5] || frame.len() > 600).collect();
    assert_eq!(seen.len(), expected.len());
    assert!(seen.iter().zip(&expected).all(|(seen, sent)| seen.bytes == sent[..64.min(sent.len())]));
    assert_eq!(source.counters().filtered as usize, frames.len() - expected.len());
    assert_eq!(source.counters().frames as usize, expected.len());
}

#[test]
fn busy_polling_yields_the_same_frames() {
    let Some(network) = Network::new() else { return };
    let options = XdpOptions { busy_poll: Some(BusyPoll::default()), ..xdp(XdpMode::Native) };
    let mut source = network.open_xdp(&options);
    let frames = frames_of_many_lengths(&network);
    frames.iter().for_each(|frame| network.send_frame(frame));
    let start = Instant::now();
    let seen: Vec<_> = read_until_idle(&mut source, 2).into_iter().map(|seen| seen.bytes).collect();
    assert!(start.elapsed() > Duration::from_millis(180), "an empty batch comes after the timeout");
    assert_eq!(seen, frames);
}

#[test]
fn each_queue_has_a_source_and_no_frame_is_lost() {
    let Some(network) = Network::with_queues(2) else { return };
    for mode in MODES {
        let mut group = network.open_xdp_group(&xdp(mode)).unwrap();
        assert_eq!(group.iter().map(XdpSource::queue).collect::<Vec<_>>(), [0, 1]);
        for port in 5000..5064 {
            network.send_udp_many(SENDER, port, READER, 6000, 20, 3);
        }
        let mut queues_of_flow: BTreeMap<[u8; 2], BTreeSet<u32>> = BTreeMap::new();
        let mut frame_counts = Vec::new();
        for source in &mut group {
            let seen = read_until_idle(source, 2);
            frame_counts.push(seen.len());
            for frame in seen {
                let port = [frame.bytes[34], frame.bytes[35]];
                queues_of_flow.entry(port).or_default().insert(source.queue());
            }
        }
        assert_eq!(frame_counts.iter().sum::<usize>(), 64 * 3, "{mode:?}: {frame_counts:?}");
        assert_eq!(queues_of_flow.len(), 64);
        assert!(queues_of_flow.values().all(|queues| queues.len() == 1), "{queues_of_flow:?}");
        if mode == XdpMode::Native {
            // All 64 flows on one of two queues by chance: once in 2^63 runs.
            assert!(frame_counts.iter().all(|&count| count > 0), "{frame_counts:?}");
        }
    }
}

#[test]
fn the_xdp_program_stays_until_the_last_source_closes() {
    let Some(network) = Network::with_queues(2) else { return };
    for mode in MODES {
        assert!(!network.show_reader().contains("xdp"), "{}", network.show_reader());
        let mut group = network.open_xdp_group(&xdp(mode)).unwrap();
        let shown = network.show_reader();
        assert!(shown.contains("prog/xdp") && shown.contains("name thalweg"), "{shown}");
        assert_eq!(shown.contains("xdpgeneric"), mode == XdpMode::Generic, "{shown}");
        group.pop();
        assert!(network.show_reader().contains("prog/xdp"));
        group.pop();
        assert!(!network.show_reader().contains("xdp"), "{}", network.show_reader());
    }
}

/// The killed process is this program again; an environment variable passes the namespace.
#[test]
fn a_killed_process_leaves_no_xdp_program() {
    const NAMESPACE: &str = "THALWEG_TEST_XDP_NAMESPACE";
    if let Ok(namespace) = std::env::var(NAMESPACE) {
        let _group = in_namespace(&namespace, || XdpSource::open_group(&xdp(XdpMode::Native)).unwrap());
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let Some(network) = Network::new() else { return };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "live::xdp::a_killed_process_leaves_no_xdp_program"])
        .env(NAMESPACE, network.reader())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !network.show_reader().contains("prog/xdp") {
        assert!(start.elapsed() < Duration::from_secs(20), "the child never captured");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!network.show_reader().contains("xdp"), "{}", network.show_reader());
    network.open_xdp(&xdp(XdpMode::Generic));
}

#[test]
fn a_second_capture_reports_that_the_interface_is_in_use() {
    let Some(network) = Network::new() else { return };
    let first = network.open_xdp(&xdp(XdpMode::Native));
    for mode in [None, Some(XdpMode::Native), Some(XdpMode::Generic)] {
        let error = network.open_xdp_group(&XdpOptions { mode, ..xdp(XdpMode::Native) }).unwrap_err();
        assert!(matches!(error, LiveError::XdpInUse { .. }), "{mode:?}: {error}");
    }
    drop(first);
    network.open_xdp(&xdp(XdpMode::Generic));
}

#[test]
fn a_driver_without_xdp_uses_generic_mode() {
    let Some(network) = Network::new() else { return };
    network.ip_reader(&["link", "add", "twl-br", "type", "bridge"]);
    let bridge = XdpOptions { interface: "twl-br".into(), mode: None, ..xdp(XdpMode::Native) };
    assert_eq!(network.open_xdp(&bridge).mode(), XdpMode::Generic);
    assert_eq!(network.open_xdp(&XdpOptions { mode: None, ..xdp(XdpMode::Native) }).mode(), XdpMode::Native);
    let native_only = XdpOptions { mode: Some(XdpMode::Native), ..bridge };
    assert!(matches!(network.open_xdp_group(&native_only), Err(LiveError::Kernel { .. })));
}

#[test]
fn capture_resumes_when_the_interface_comes_up() {
    let Some(network) = Network::new() else { return };
    for mode in MODES {
        let mut source = network.open_xdp(&xdp(mode));
        wait_for(&mut source, LinkState::Up);
        network.ip_reader(&["link", "set", "twl0", "down"]);
        wait_for(&mut source, LinkState::Down);
        network.ip_reader(&["link", "set", "twl0", "up"]);
        network.add_neighbours();
        wait_for(&mut source, LinkState::Up);
        network.send_udp_many(SENDER, 5000, READER, 6000, 10, 5);
        assert_eq!(read_until_idle(&mut source, 2).len(), 5, "{mode:?}");
    }
}

#[test]
fn a_deleted_interface_ends_the_source_after_its_last_packet() {
    for mode in MODES {
        for busy_poll in [None, Some(BusyPoll::default())] {
            let Some(network) = Network::new() else { return };
            let mut source = network.open_xdp(&XdpOptions { busy_poll, ..xdp(mode) });
            network.send_gently(1500);
            // The last of them may still be in the pair.
            std::thread::sleep(Duration::from_millis(50));
            if busy_poll.is_some() {
                source.next_batch().unwrap();
            }
            let before = source.counters().frames;
            network.ip_reader(&["link", "delete", "twl0"]);
            let (mut seen, start) = (before, Instant::now());
            let error = loop {
                assert!(start.elapsed() < Duration::from_secs(10), "the source never ended");
                match source.next_batch() {
                    Ok(batch) => seen += batch.unwrap().frames.len() as u64,
                    Err(error) => break error,
                }
            };
            assert!(matches!(&error, LiveError::InterfaceGone { name } if name == "twl0"), "{error}");
            assert_eq!((seen, source.counters().frames), (1500, 1500), "{mode:?} {busy_poll:?}");
            assert_eq!(source.link_state(), LinkState::Gone);
        }
    }
}

#[test]
fn only_ethernet_is_accepted() {
    let Some(network) = Network::new() else { return };
    network.ip_reader(&["tuntap", "add", "dev", "twl-tun", "mode", "tun"]);
    let tunnel = XdpOptions { interface: "twl-tun".into(), ..xdp(XdpMode::Generic) };
    assert!(matches!(network.open_xdp_group(&tunnel), Err(LiveError::NotEthernet { .. })));
    let misspelt = XdpOptions { interface: "twl00".into(), ..tunnel };
    let error = network.open_xdp_group(&misspelt).unwrap_err();
    assert!(matches!(error, LiveError::NoSuchInterface { nearest: Some(name), .. } if name == "twl0"));
}

#[test]
fn missing_capabilities_and_locked_memory_are_explained() {
    use caps::Capability::{CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW};
    let Some(network) = Network::new() else { return };
    network.make_monitor_port();
    network.in_reader(|| {
        has_capabilities_only(&[CAP_NET_RAW, CAP_NET_ADMIN, CAP_BPF]);
        let large = XdpOptions { memory_size: Bytes(1 << 30), ..xdp(XdpMode::Native) };
        let error = XdpSource::open_group(&large).unwrap_err();
        assert!(matches!(error, LiveError::LockedMemory { needed: Bytes(0x4000_0000), .. }), "{error}");
        let little = XdpOptions { memory_size: Bytes(1 << 20), ..xdp(XdpMode::Native) };
        XdpSource::open_group(&little).unwrap();
        let choice = choose(None);
        assert_eq!(choice.backend, Backend::AfPacket);
        assert!(choice.reason.contains("locked memory"), "{}", choice.reason);

        has_capabilities_only(&[CAP_NET_RAW]);
        let error = XdpSource::open_group(&little).unwrap_err();
        assert!(matches!(error, LiveError::NoXdpPermission { .. }), "{error}");
        assert!(error.to_string().contains("cap_bpf"), "{error}");
        let choice = choose(None);
        assert_eq!(choice.reason, "AF_PACKET, since AF_XDP needs the capability CAP_NET_ADMIN");
    });
}

#[test]
fn af_xdp_is_chosen_only_for_unused_interfaces() {
    let Some(network) = Network::new() else { return };
    let reason_against = |expected: &str| {
        let choice = network.in_reader(|| choose(None));
        assert_eq!(choice.backend, Backend::AfPacket, "{}", choice.reason);
        assert!(choice.reason.contains(expected), "{}", choice.reason);
    };
    reason_against("has an IP address, and AF_XDP would hide its packets from the host");
    let choice = network.in_reader(|| choose(Some(Backend::AfXdp)));
    assert_eq!(choice.backend, Backend::AfXdp);
    assert!(choice.reason.contains("no longer reach it"), "{}", choice.reason);

    network.make_monitor_port();
    network.enable_ipv6_at_reader();
    let choice = network.in_reader(|| choose(None));
    assert_eq!(choice.backend, Backend::AfXdp, "{}", choice.reason);
    assert_eq!(choice.reason, "AF_XDP, since this host does not use `twl0`");
    assert_eq!(network.in_reader(|| choose(Some(Backend::AfXdp))).reason, "AF_XDP, as requested");

    network.ip_reader(&["link", "add", "link", "twl0", "name", "twl-up", "type", "macvlan"]);
    reason_against("carries `twl-up`");
    network.ip_reader(&["link", "delete", "twl-up"]);
    network.ip_reader(&["link", "add", "twl-br", "type", "bridge"]);
    network.ip_reader(&["link", "set", "twl0", "master", "twl-br"]);
    reason_against("is a port of `twl-br`");
    network.ip_reader(&["link", "set", "twl0", "nomaster"]);
    let capture = network.open_xdp(&xdp(XdpMode::Generic));
    reason_against("another XDP program is attached");
    drop(capture);
    assert_eq!(network.in_reader(|| choose(None)).backend, Backend::AfXdp);
}

/// The choice for `twl0`, in the calling thread's namespace.
fn choose(backend: Option<Backend>) -> Choice {
    let options = LiveOptions::new("twl0");
    thalweg_capture::choose(&InterfaceSpec { backend, ..InterfaceSpec::new(options) }).unwrap()
}

#[test]
fn both_sources_have_a_common_type() {
    let Some(network) = Network::new() else { return };
    let two = NonZeroUsize::new(2).unwrap();
    let spec = |backend, xdp_mode| InterfaceSpec {
        backend,
        readers: Readers::Workers(two),
        xdp_mode,
        ..InterfaceSpec::new(options("twl0"))
    };
    let open = |wanted, xdp_mode| {
        let opened = network.in_reader(|| open(&spec(wanted, xdp_mode).into())).unwrap();
        let Opened { sources, choice } = opened;
        (sources, choice.unwrap())
    };
    let any_mode = None;
    let see = |mut group: Vec<AnySource>| {
        network.send_udp_many(SENDER, 5000, READER, 6000, 10, 5);
        group.iter_mut().map(|source| read_until_idle(source, 2).len()).sum::<usize>()
    };
    for (wanted, source_count) in [(Backend::AfPacket, 2), (Backend::AfXdp, 1)] {
        let (group, choice) = open(Some(wanted), any_mode);
        assert_eq!((group.len(), choice.backend), (source_count, wanted));
        assert!(group.iter().all(|source| source.backend() == Some(wanted)));
        assert_eq!((group[0].name(), group[0].link_type()), ("twl0", Some(LinkType::Ethernet)));
        assert_eq!((see(group), wanted), (5, wanted));
    }
    assert_eq!(open(None, any_mode).1.backend, Backend::AfPacket, "it has an address");

    network.make_monitor_port();
    let (group, choice) = open(None, any_mode);
    assert_eq!(choice.backend, Backend::AfXdp);
    assert_eq!(group[0].link_state(), Some(LinkState::Up));
    // Frames of an interface in use by the first group go to no other source.
    drop(group);

    // The driver of bridges has no native mode.
    network.ip_reader(&["link", "add", "twl-br", "type", "bridge"]);
    let bridge = InterfaceSpec { options: options("twl-br"), ..spec(None, Some(XdpMode::Native)) };
    let Opened { sources: group, choice } =
        network.in_reader(|| thalweg_capture::open(&bridge.into())).unwrap();
    let choice = choice.unwrap();
    assert!(group.iter().all(|source| source.backend() == Some(Backend::AfPacket)));
    assert!(
        choice.reason.starts_with("AF_PACKET, since AF_XDP cannot be used: `twl-br`: cannot"),
        "{}",
        choice.reason
    );
    let short = LiveOptions { snap_length: 1, ..options("twl0") };
    let bad = InterfaceSpec { options: short, ..spec(None, None) };
    let refused = network.in_reader(|| thalweg_capture::open(&bad.clone().into()));
    assert!(matches!(refused, Err(CaptureError::Live(LiveError::BadOption { .. }))));
}

/// Calls `next_batch` until the link is in `state`.
fn wait_for(source: &mut XdpSource, state: LinkState) {
    let start = Instant::now();
    while source.link_state() != state {
        assert!(start.elapsed() < Duration::from_secs(5), "the link never was {state:?}");
        source.next_batch().unwrap();
    }
}
