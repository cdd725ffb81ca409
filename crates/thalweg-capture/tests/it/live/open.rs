//! Every backend, and files, through the one function that opens them.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use thalweg_capture::backend::Backend;
use thalweg_capture::filter::Filter;
use thalweg_capture::live::{LinkState, LiveError, LiveOptions, Way};
use thalweg_capture::xdp::XdpMode;
use thalweg_capture::{
    AnySource, CaptureError, FileAccess, InterfaceSpec, Namespace, Opened, Readers, Spec, choose, open,
    wait_any,
};
use thalweg_wire::{LinkType, Nanos, Source};

use super::network::{Network, READER, SENDER, has_capabilities_only};
use super::{options, read_until_idle};

const BACKENDS: [Backend; 3] = [Backend::AfPacket, Backend::Prompt, Backend::AfXdp];
const TAPS: [Backend; 2] = [Backend::AfPacket, Backend::Prompt];

impl Network {
    /// An interface in the reader's namespace, for threads outside it.
    fn spec(&self, options: LiveOptions, backend: Option<Backend>) -> InterfaceSpec {
        let namespace = Some(Namespace::named(self.reader()));
        InterfaceSpec { namespace, backend, ..InterfaceSpec::new(options) }
    }

    fn open_one(&self, options: LiveOptions, backend: Backend) -> Result<AnySource, CaptureError> {
        let opened = open(&self.spec(options, Some(backend)).into())?;
        assert_eq!(opened.sources.len(), 1);
        Ok(opened.sources.into_iter().next().unwrap())
    }
}

fn example() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/two-hosts.pcap")
}

fn filtered(expression: &str) -> LiveOptions {
    LiveOptions { filter: Some(expression.into()), ..options("twl0") }
}

/// Three datagrams arrive and two are sent. A filter still applies, and AF_XDP refuses.
#[test]
fn frames_are_selected_by_their_way() {
    let Some(network) = Network::new() else { return };
    let (udp, none) = (Some("udp"), Some("tcp"));
    for backend in TAPS {
        let cases = [
            (Way::Both, None, 5),
            (Way::In, None, 3),
            (Way::Out, None, 2),
            (Way::Out, udp, 2),
            (Way::Out, none, 0),
        ];
        for (way, filter, expected) in cases {
            let options = LiveOptions { way, filter: filter.map(str::to_owned), ..options("twl0") };
            let mut source = network.open_one(options, backend).unwrap();
            for _ in 0..3 {
                network.send_udp(SENDER, 5000, READER, 6000, 100);
            }
            for _ in 0..2 {
                network.send_udp(READER, 6000, SENDER, 5000, 100);
            }
            let seen = read_until_idle(&mut source, 2);
            assert_eq!(seen.len(), expected, "{backend} {way:?} {filter:?}");
        }
    }
    let out = LiveOptions { way: Way::Out, ..options("twl0") };
    assert_eq!(choose(&network.spec(out.clone(), None)).unwrap().backend, Backend::AfPacket);
    let error = network.open_one(out, Backend::AfXdp).err().unwrap().to_string();
    assert!(error.contains("way"), "{error}");
}

#[test]
fn every_backend_captures_in_a_given_namespace() {
    let Some(network) = Network::new() else { return };
    for backend in BACKENDS {
        let Opened { mut sources, choice } =
            open(&network.spec(options("twl0"), Some(backend)).into()).unwrap();
        let choice = choice.unwrap();
        assert_eq!(choice.backend, backend);
        assert!(choice.reason.starts_with(&format!("{backend}, as requested")), "{}", choice.reason);
        let source = &mut sources[0];
        assert_eq!((source.backend(), source.name()), (Some(backend), "twl0"));
        assert_eq!(
            (source.link_type(), source.link_state()),
            (Some(LinkType::Ethernet), Some(LinkState::Up))
        );
        assert!(source.is_live() && !source.is_down() && !source.is_ready());
        network.send_udp_many(SENDER, 5000, READER, 6000, 10, 5);
        assert!(wait_any([&mut *source], Nanos::from_secs(5)).unwrap() && source.is_ready(), "{backend}");
        assert_eq!(read_until_idle(source, 2).len(), 5, "{backend}");
        assert_eq!(source.counters().frames, 5, "{backend}");
        assert!(!source.is_ready() && !wait_any([&mut *source], Nanos::from_millis(1)).unwrap());
    }
}

#[test]
fn one_thread_waits_for_several_interfaces() {
    let Some(network) = Network::new() else { return };
    let mut sources: Vec<AnySource> =
        TAPS.into_iter().map(|tap| network.open_one(options("twl0"), tap).unwrap()).collect();
    sources.push(network.open_one(options("lo"), Backend::Prompt).unwrap());
    assert!(!wait_any(&mut sources, Nanos::from_millis(1)).unwrap());
    network.send_udp("127.0.0.1", 5000, "127.0.0.1", 5000, 10);
    assert!(wait_any(&mut sources, Nanos::from_secs(5)).unwrap());
    let ready: Vec<bool> = sources.iter().map(AnySource::is_ready).collect();
    assert_eq!(ready, [false, false, true]);
    sources.push(open(&Spec::file(example())).unwrap().sources.remove(0));
    assert_eq!(read_until_idle(&mut sources[2], 1).len(), 1);
    assert!(wait_any(&mut sources, Nanos::from_secs(5)).unwrap(), "a file never waits");
}

#[test]
fn every_backend_restores_vlan_tags() {
    let Some(network) = Network::new() else { return };
    let frames = [
        network.frame(&[0x81, 0x00, 0x60, 0x05, 0x08, 0x00], 60),
        network.frame(&[0x88, 0xa8, 0x00, 0x64, 0x81, 0x00, 0x0f, 0xff, 0x08, 0x00], 60),
        network.frame(&[0x81, 0x00, 0x00, 0x00, 0x86, 0xdd], 1400),
        network.frame(&[0x08, 0x00], 60),
    ];
    for tap in TAPS {
        let mut source = network.open_one(options("twl0"), tap).unwrap();
        frames.iter().for_each(|frame| network.send_frame(frame));
        let seen = read_until_idle(&mut source, 2);
        assert_eq!(seen.len(), frames.len(), "{tap}");
        for (seen, sent) in seen.iter().zip(&frames) {
            assert_eq!(seen.original_length as usize, sent.len(), "{tap}");
            assert_eq!(seen.bytes, sent[..sent.len().min(192)], "{tap}");
        }
    }
}

#[test]
fn every_backend_agrees_with_file_filters() {
    let Some(network) = Network::new() else { return };
    let udp = |ethertypes: &[u8]| {
        let mut frame = network.frame(ethertypes, 46);
        let at = 12 + ethertypes.len();
        frame[at] = 0x45;
        frame[at + 6..at + 8].fill(0);
        frame[at + 9] = 17;
        frame
    };
    let frames = [udp(&[8, 0]), udp(&[0x81, 0, 0, 5, 8, 0]), udp(&[0x81, 0, 0, 6, 8, 0]), udp(&[8, 6])];
    for expression in ["udp", "vlan", "vlan 5", "udp or (vlan 6 and udp)", "arp or len > 62"] {
        let filter = match Filter::compile(expression, LinkType::Ethernet, 0) {
            Err(error) => return crate::skip::skip(error),
            Ok(filter) => filter,
        };
        let on_file: Vec<_> =
            frames.iter().filter(|frame| filter.matches(frame, frame.len() as u32)).cloned().collect();
        for backend in BACKENDS {
            let mut source = network.open_one(filtered(expression), backend).unwrap();
            frames.iter().for_each(|frame| network.send_frame(frame));
            let seen: Vec<_> = read_until_idle(&mut source, 2).into_iter().map(|seen| seen.bytes).collect();
            assert_eq!(seen, on_file, "{backend}: {expression}");
        }
    }
}

#[test]
fn an_invalid_filter_is_rejected_at_open() {
    let Some(network) = Network::new() else { return };
    let wrong = "udp and and";
    let mut errors: Vec<CaptureError> =
        BACKENDS.into_iter().map(|backend| network.open_one(filtered(wrong), backend).unwrap_err()).collect();
    errors.push(open(&network.spec(filtered(wrong), None).into()).unwrap_err());
    errors.push(
        open(&Spec::File { path: example(), filter: Some(wrong.into()), access: FileAccess::Mapped })
            .unwrap_err(),
    );
    for error in errors {
        assert!(
            matches!(error, CaptureError::Filter(_) | CaptureError::Live(LiveError::Filter(_))),
            "{error}"
        );
    }
}

#[test]
fn missing_sources_are_named() {
    let Some(network) = Network::new() else { return };
    for backend in BACKENDS {
        let error = network.open_one(options("twl00"), backend).unwrap_err();
        assert!(
            error.to_string().contains("`twl00` does not exist (did you mean `twl0`?)"),
            "{backend}: {error}"
        );
    }
    let namespace = Some(Namespace::named("twl-no-such-namespace"));
    let error = open(&InterfaceSpec { namespace, ..InterfaceSpec::new(options("lo")) }.into()).unwrap_err();
    assert!(matches!(error, CaptureError::Namespace(_)), "{error}");
    let error = open(&Spec::file("no/such/file.pcap")).unwrap_err();
    assert!(matches!(error, CaptureError::File(_)), "{error}");
}

#[test]
fn a_file_opens_with_and_without_a_filter() {
    let all = open(&Spec::file(example())).unwrap();
    assert_eq!(all.choice, None);
    let frames = |mut source: AnySource| {
        assert!(!source.is_live() && source.is_ready() && source.backend().is_none());
        let mut count = 0;
        while let Some(batch) = source.next_batch().unwrap() {
            count += batch.frames.len();
        }
        count
    };
    let count = |opened: Opened| opened.sources.into_iter().map(frames).sum::<usize>();
    let total = count(all);
    let none = match open(&Spec::File {
        path: example(),
        filter: Some("less 1".into()),
        access: FileAccess::Mapped,
    }) {
        Err(CaptureError::Filter(error)) => return crate::skip::skip(error),
        opened => count(opened.unwrap()),
    };
    assert!(total > 0 && none == 0);
}

#[test]
fn every_backend_explains_missing_capabilities() {
    let Some(network) = Network::new() else { return };
    network.in_reader(|| {
        has_capabilities_only(&[]);
        for backend in BACKENDS {
            let spec = InterfaceSpec { backend: Some(backend), ..InterfaceSpec::new(options("twl0")) };
            let error = open(&spec.into()).unwrap_err();
            let is_explained = matches!(
                &error,
                CaptureError::Live(LiveError::NoPermission { .. } | LiveError::NoXdpPermission { .. })
            );
            assert!(is_explained && error.to_string().contains("sudo setcap cap_net_raw"), "{error}");
        }
    });
}

#[test]
fn a_prompt_source_ends_with_its_interface() {
    let Some(network) = Network::new() else { return };
    let mut source = network.open_one(options("twl0"), Backend::Prompt).unwrap();
    let wait_for = |source: &mut AnySource, state| {
        let start = Instant::now();
        while source.link_state() != Some(state) {
            assert!(start.elapsed() < Duration::from_secs(5), "the link never was {state:?}");
            source.next_batch().unwrap();
        }
    };
    network.ip_reader(&["link", "set", "twl0", "down"]);
    wait_for(&mut source, LinkState::Down);
    assert!(source.is_down());
    network.ip_reader(&["link", "set", "twl0", "up"]);
    network.add_neighbours();
    wait_for(&mut source, LinkState::Up);
    network.send_udp_many(SENDER, 5000, READER, 6000, 300, 500);
    network.ip_reader(&["link", "delete", "twl0"]);
    let (mut seen, start) = (0, Instant::now());
    let error = loop {
        assert!(start.elapsed() < Duration::from_secs(10), "the source never ended");
        match source.next_batch() {
            Ok(batch) => seen += batch.unwrap().frames.len(),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(&error, CaptureError::Live(LiveError::InterfaceGone { name }) if name == "twl0"),
        "{error}"
    );
    assert_eq!((seen, source.link_state()), (500, Some(LinkState::Gone)));
}

#[test]
fn workers_share_the_flows_of_each_interface() {
    let Some(network) = Network::new() else { return };
    for tap in TAPS {
        let readers = Readers::Workers(NonZeroUsize::new(2).unwrap());
        let spec = InterfaceSpec { readers, ..network.spec(options("twl0"), Some(tap)) };
        let mut group = open(&spec.into()).unwrap().sources;
        for port in 5000..5064 {
            network.send_udp(SENDER, port, READER, 6000, 20);
            network.send_udp(READER, 6000, SENDER, port, 20);
        }
        let mut workers_of_flow: BTreeMap<u16, BTreeSet<usize>> = BTreeMap::new();
        let mut frame_counts = Vec::new();
        for (worker, source) in group.iter_mut().enumerate() {
            let seen = read_until_idle(source, 2);
            frame_counts.push(seen.len());
            for frame in seen {
                let port = |at: usize| u16::from_be_bytes([frame.bytes[at], frame.bytes[at + 1]]);
                workers_of_flow.entry(port(34).min(port(36))).or_default().insert(worker);
            }
        }
        assert_eq!(frame_counts.iter().sum::<usize>(), 128, "{tap}: {frame_counts:?}");
        assert!(workers_of_flow.values().all(|workers| workers.len() == 1), "{workers_of_flow:?}");
        // All 64 flows on one of two workers by chance: once in 2^63 runs.
        assert!(frame_counts.iter().all(|&count| count > 0), "{tap}: {frame_counts:?}");
    }
}

#[test]
fn one_af_xdp_source_rejects_several_queues() {
    let Some(network) = Network::with_queues(2) else { return };
    network.make_monitor_port();
    let asked = network.spec(options("twl0"), Some(Backend::AfXdp));
    for error in [choose(&asked).unwrap_err(), open(&asked.clone().into()).unwrap_err()] {
        assert!(error.to_string().starts_with("`twl0` has 2 receive queues"), "{error}");
    }
    let all = InterfaceSpec {
        readers: Readers::Workers(NonZeroUsize::MIN),
        xdp_mode: Some(XdpMode::Native),
        ..asked
    };
    assert_eq!(open(&all.into()).unwrap().sources.len(), 2, "a source for each queue");
    let Opened { sources, choice } = open(&network.spec(options("twl0"), None).into()).unwrap();
    assert_eq!((sources.len(), sources[0].backend()), (1, Some(Backend::AfPacket)));
    let reason = "AF_PACKET, since `twl0` has 2 receive queues, and AF_XDP would need one socket each";
    assert_eq!(choice.unwrap().reason, reason);
}
