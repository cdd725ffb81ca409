//! Seeds for fuzzing: small inputs that reach all code under test.

use thalweg_wire::capture_file::{ByteOrder, pcap, pcapng};
use thalweg_wire::{Frame, Interface, LinkType, Timestamp};

use crate::frames::{
    ACK, ARP, GRE, IPV4, IPV6, SYN, TCP, UDP, ethernet, gre, ipv4, ipv4_fragment, ipv6, tcp, udp, vxlan,
};
use crate::fuzz::headers::LINK_TYPES;

/// Target, file name, bytes.
pub(crate) type Seed = (&'static str, &'static str, Vec<u8>);

pub(crate) fn all() -> Vec<Seed> {
    let of = |target, seeds: Vec<(&'static str, Vec<u8>)>| {
        seeds.into_iter().map(move |(name, bytes)| (target, name, bytes)).collect::<Vec<_>>()
    };
    [
        of("headers", headers()),
        of("pcap", pcap_files()),
        of("pcapng", pcapng_files()),
        of("filter", filters()),
        of("flow_filter", flow_filters()),
        of("config", configurations()),
        of("experiment", experiments()),
        of("sketch_state", sketch_states()),
        of("topology", topologies()),
        of("network", networks()),
        of("workload", workloads()),
        of("openflow", crate::fuzz_corpus::openflow::streams()),
        of("emulation_protocol", crate::fuzz_corpus::emulation_protocol::datagrams()),
        of("arbiter", crate::fuzz_corpus::arbiter::steps()),
        of("netflow", crate::fuzz_corpus::flow_export::netflow()),
        of("ipfix", crate::fuzz_corpus::flow_export::ipfix_messages()),
        of("sflow", crate::fuzz_corpus::flow_export::sflow()),
        of("transfer_logs", crate::fuzz_corpus::transfer_logs::logs()),
    ]
    .concat()
}

fn segment() -> Vec<u8> {
    ipv4(1, 2, TCP, &tcp(443, 51_000, SYN | ACK, b"hello"))
}

fn segment_v6() -> Vec<u8> {
    ipv6(1, 2, TCP, &tcp(443, 51_000, ACK, b"hello"))
}

fn headers() -> Vec<(&'static str, Vec<u8>)> {
    let seed = |link_type: LinkType, longer: u8, bytes: &[u8]| {
        let selector = LINK_TYPES.iter().position(|known| *known == link_type).unwrap() as u8;
        [&[selector, longer][..], bytes].concat()
    };
    let on_ethernet = |ethertype, payload: &[u8]| seed(LinkType::Ethernet, 0, &ethernet(ethertype, payload));
    let in_udp =
        |dst_port, payload: &[u8]| on_ethernet(IPV4, &ipv4(1, 2, UDP, &udp(50_000, dst_port, payload)));
    let in_gre = |payload: &[u8]| on_ethernet(IPV4, &ipv4(1, 2, GRE, payload));
    let (inner, inner_frame) = (segment(), ethernet(IPV4, &segment()));
    let jumbo = [&[TCP, 0, 0xC2, 4, 0, 1, 0x11, 0x70][..], &tcp(1, 2, ACK, b"")].concat();
    let mut jumbogram = ipv6(1, 2, 0, &jumbo);
    jumbogram[4..6].fill(0);
    let mut big_tcp = segment();
    big_tcp[2..4].fill(0);
    let mut options = ipv4(1, 2, UDP, &[&[1, 1, 1, 0][..], &udp(53, 4096, b"?")].concat());
    options[0] = 0x46;
    let authenticated = [&[TCP, 4, 0, 0][..], &[9; 20], &tcp(22, 2222, ACK, b"")].concat();
    let fragment_header = [&[UDP, 0, 0, 1, 0, 0, 0, 9][..], &udp(7, 8, b"part")].concat();
    vec![
        ("tcp", on_ethernet(IPV4, &segment())),
        ("tcp-over-ipv6", on_ethernet(IPV6, &segment_v6())),
        (
            "udp-snapped",
            seed(LinkType::Ethernet, 150, &ethernet(IPV4, &ipv4(1, 2, UDP, &udp(53, 4096, b"")))),
        ),
        ("icmp-echo", on_ethernet(IPV4, &ipv4(1, 2, 1, &[8, 0, 0, 0, 0x12, 0x34, 0, 1]))),
        ("icmp6-echo", on_ethernet(IPV6, &ipv6(1, 2, 58, &[129, 0, 0, 0, 0x12, 0x34, 0, 1]))),
        ("sctp", on_ethernet(IPV4, &ipv4(1, 2, 132, &[0x0B, 0x59, 0x0B, 0x5A, 0, 0, 0, 1, 0, 0, 0, 0]))),
        ("dccp", on_ethernet(IPV4, &ipv4(1, 2, 33, &[0, 7, 0, 8, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))),
        ("arp", on_ethernet(ARP, &[0, 1, 8, 0, 6, 4, 0, 1])),
        ("options", on_ethernet(IPV4, &options)),
        ("fragment-first", on_ethernet(IPV4, &ipv4_fragment(0, true, UDP, &udp(7, 8, b"half")))),
        ("fragment-later", on_ethernet(IPV4, &ipv4_fragment(1480, false, UDP, b"the rest"))),
        ("fragment-ipv6", on_ethernet(IPV6, &ipv6(1, 2, 44, &fragment_header))),
        ("authentication", on_ethernet(IPV4, &ipv4(1, 2, 51, &authenticated))),
        (
            "extension-headers",
            on_ethernet(
                IPV6,
                &ipv6(
                    1,
                    2,
                    60,
                    &[&[43, 0, 1, 4, 0, 0, 0, 0, TCP, 0, 4, 0, 0, 0, 0, 0][..], &tcp(1, 2, SYN, b"")]
                        .concat(),
                ),
            ),
        ),
        ("jumbogram", seed(LinkType::Ethernet, 255, &ethernet(IPV6, &jumbogram))),
        ("big-tcp", seed(LinkType::Ethernet, 255, &ethernet(IPV4, &big_tcp))),
        ("vlan", on_ethernet(0x8100, &[&[0, 7, 8, 0][..], &inner].concat())),
        ("qinq", on_ethernet(0x88A8, &[&[0, 7, 0x81, 0, 0, 8, 8, 0][..], &inner].concat())),
        ("mpls", on_ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64][..], &inner].concat())),
        ("pppoe", on_ethernet(0x8864, &[&[0x11, 0, 0, 1, 0, 47, 0, 0x21][..], &inner].concat())),
        ("snap", on_ethernet(53, &[&[0xAA, 0xAA, 3, 0, 0, 0, 8, 0][..], &inner].concat())),
        ("spanning-tree", on_ethernet(38, &[0x42, 0x42, 3, 0, 0, 0, 0, 0])),
        ("null", seed(LinkType::Null, 0, &[&[2, 0, 0, 0][..], &inner].concat())),
        ("loop", seed(LinkType::Loop, 0, &[&[0, 0, 0, 30][..], &segment_v6()].concat())),
        (
            "sll",
            seed(
                LinkType::LinuxSll,
                0,
                &[&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0][..], &inner].concat(),
            ),
        ),
        ("sll2", seed(LinkType::LinuxSll2, 0, &[&[8, 0][..], &[0; 18], &inner].concat())),
        ("raw", seed(LinkType::RawIp, 0, &inner)),
        ("raw-v6", seed(LinkType::Ipv6, 0, &segment_v6())),
        ("not-taken-apart", seed(LinkType::Other(147), 0, b"whatever")),
        ("ip-in-ip", on_ethernet(IPV4, &ipv4(3, 4, 4, &inner))),
        ("ip6-in-ip", on_ethernet(IPV4, &ipv4(3, 4, 41, &segment_v6()))),
        ("gre", in_gre(&gre(IPV4, &inner))),
        ("gre-with-options", in_gre(&[&[0xB0, 0, 0x65, 0x58][..], &[0; 12], &inner_frame].concat())),
        (
            "erspan-ii",
            in_gre(
                &[&[0x10, 0, 0x88, 0xBE, 0, 0, 0, 1, 0x10, 7, 0, 1, 0, 0, 0, 2][..], &inner_frame].concat(),
            ),
        ),
        (
            "erspan-iii",
            in_gre(
                &[
                    &[0x10, 0, 0x22, 0xEB, 0, 0, 0, 1, 0x20, 7, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1][..],
                    &[0; 8],
                    &inner_frame,
                ]
                .concat(),
            ),
        ),
        ("vxlan", on_ethernet(IPV4, &ipv4(3, 4, UDP, &vxlan(&inner_frame)))),
        ("geneve", in_udp(6081, &[&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 0, 1, 2, 0][..], &inner_frame].concat())),
        ("vxlan-in-gre", in_gre(&gre(IPV4, &ipv4(5, 6, UDP, &vxlan(&inner_frame))))),
    ]
}

/// Frames for capture files, with their lengths on the wire.
fn frames() -> [(u64, Vec<u8>, u32); 3] {
    [
        (1_700_000_000_123_456_789, ethernet(IPV4, &segment()), 1514),
        (1_700_000_000_123_456_000, ethernet(IPV6, &segment_v6()), 79),
        (1_700_000_001_000_000_000, Vec::new(), 0),
    ]
}

fn pcap_files() -> Vec<(&'static str, Vec<u8>)> {
    let file = |order, precision, link_type, snap_length| {
        let encoder = pcap::Encoder { order, precision };
        let mut file = Vec::new();
        encoder.file_header(link_type, snap_length, &mut file);
        for (time, bytes, original_length) in &frames() {
            let (time, original_length) = (Timestamp(*time), *original_length);
            encoder.record(&Frame { time, bytes, original_length, link_type }, &mut file);
        }
        file
    };
    use ByteOrder::{Big, Little};
    use pcap::Precision::{Micros, Nanos};
    let nanos = file(Little, Nanos, LinkType::Ethernet, 96);
    let with = |at: usize, bytes: &[u8]| {
        let mut file = nanos.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let mut modified = with(0, &[0x34, 0xCD, 0xB2, 0xA1])[..40].to_vec();
    modified.extend([1, 0, 0, 0, 8, 0, 0, 0]);
    modified.extend(&nanos[40..40 + frames()[0].1.len()]);
    vec![
        ("micros-little", file(Little, Micros, LinkType::Ethernet, 262_144)),
        ("micros-big", file(Big, Micros, LinkType::Ethernet, 262_144)),
        ("nanos-little", nanos.clone()),
        ("nanos-big", file(Big, Nanos, LinkType::Ethernet, 0)),
        ("raw-ip", file(Little, Micros, LinkType::RawIp, 64)),
        ("link-type-unknown", file(Little, Micros, LinkType::Other(147), 64)),
        ("beyond-snap-length", file(Little, Nanos, LinkType::Ethernet, 10)),
        ("header-alone", nanos[..24].to_vec()),
        ("cut-in-file-header", nanos[..20].to_vec()),
        ("cut-in-record-header", nanos[..30].to_vec()),
        ("cut-in-record", nanos[..60].to_vec()),
        ("captured-above-original", with(36, &[1, 0, 0, 0])),
        ("record-too-long", with(32, &[0xFF, 0xFF, 0xFF, 0x7F])),
        ("fraction-above-a-second", with(28, &[0xFF, 0xFF, 0xFF, 0xFF])),
        ("with-frame-checksums", with(22, &[0, 0x24])),
        ("old-version", with(6, &[3, 0])),
        ("modified", modified),
        ("not-a-capture", b"GIF89a, for a change".to_vec()),
        ("empty", Vec::new()),
    ]
}

fn pcapng_files() -> Vec<(&'static str, Vec<u8>)> {
    let interface = |name: Option<&str>, link_type, snap_length| Interface {
        name: name.map(str::to_owned),
        link_type,
        snap_length,
    };
    let section = |order, out: &mut Vec<u8>| {
        let encoder = pcapng::Encoder { order };
        encoder.section_header(out);
        let ports = [
            (interface(Some("port 3"), LinkType::Ethernet, 96), Some("mirror")),
            (interface(None, LinkType::RawIp, 0), None),
        ];
        for (port, description) in &ports {
            encoder.interface_description(port, *description, out);
        }
        for (number, (time, bytes, original_length)) in frames().iter().enumerate() {
            let (time, original_length) = (Timestamp(*time), *original_length);
            let frame = Frame { time, bytes, original_length, link_type: LinkType::Ethernet };
            encoder.enhanced_packet(number as u32 % 2, &frame, (number == 0).then_some("first"), out);
        }
    };
    let mut little = Vec::new();
    section(ByteOrder::Little, &mut little);
    let mut big = Vec::new();
    section(ByteOrder::Big, &mut big);
    // Section header (28 bytes), then one interface with these options, then `blocks`.
    let built = |options: &[u8], blocks: &[(u32, &[u8])]| {
        let description = [&[1, 0, 0, 0, 32, 0, 0, 0][..], options].concat();
        let mut file = little[..28].to_vec();
        for (kind, body) in [(1, description.as_slice())].iter().chain(blocks) {
            let length = (12 + body.len() as u32).to_le_bytes();
            file.extend([&kind.to_le_bytes()[..], &length, body, &length].concat());
        }
        file
    };
    let packet = [&[0; 8][..], &[1, 0, 0, 0, 4, 0, 0, 0, 60, 0, 0, 0], b"data"].concat();
    let with = |at: usize, bytes: &[u8]| {
        let mut file = little.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    vec![
        ("little", little.clone()),
        ("big", big.clone()),
        ("two-sections", [little.clone(), big].concat()),
        ("section-alone", little[..28].to_vec()),
        ("simple-packet", built(&[], &[(3, b"\x3C\0\0\0four and more bytes than 32, padded.")])),
        ("obsolete-packet", built(&[], &[(2, &packet)])),
        ("names-and-statistics", built(&[], &[(4, &[0; 4]), (5, &[0; 12]), (0x0BAD, b"????"), (6, &packet)])),
        ("picoseconds", built(&[9, 0, 1, 0, 12, 0, 0, 0], &[(6, &packet)])),
        ("powers-of-two", built(&[9, 0, 1, 0, 0x8A, 0, 0, 0], &[(6, &packet)])),
        ("time-offset", built(&[14, 0, 8, 0, 0, 0xF1, 0x53, 0x65, 0, 0, 0, 0], &[(6, &packet)])),
        ("option-too-long", built(&[2, 0, 0xFF, 0, b'e', b't', b'h', b'0'], &[])),
        ("name-with-zero", built(b"\x02\0\x05\0eth0\0\0\0\0\0\0\0\0", &[(6, &packet)])),
        (
            "interface-undescribed",
            little[..28]
                .iter()
                .copied()
                .chain(little[28..].iter().copied().skip(little.len() - 60))
                .collect(),
        ),
        (
            "packet-beyond-block",
            built(&[], &[(6, &[&[0; 12][..], &[0xFF, 0, 0, 0, 0xFF, 0, 0, 0]].concat())]),
        ),
        ("byte-order-wrong", with(8, b"what")),
        ("length-odd", with(4, &[29, 0, 0, 0])),
        ("length-huge", with(4, &[0xFC, 0xFF, 0xFF, 0x7F])),
        ("lengths-differ", with(24, &[32, 0, 0, 0])),
        ("version-2", with(12, &[2, 0])),
        ("cut", little[..little.len() - 10].to_vec()),
    ]
}

fn filters() -> Vec<(&'static str, Vec<u8>)> {
    let seed = |expression: &str| [expression.as_bytes(), b"\n", &ethernet(IPV4, &segment())].concat();
    let seeds = [
        ("nothing", ""),
        ("tcp", "tcp"),
        ("port", "tcp port 443 and net 10.0.0.0/8"),
        ("host", "src host 10.0.0.1 or dst host 10.0.0.2"),
        ("vlan", "tcp or (vlan 7 and tcp)"),
        ("mpls", "mpls 1000 and ip"),
        ("arithmetic", "ip[0] & 0xf != 5 and len - 14 * 2 > 0x20"),
        ("division", "ip[2:2] / ip[1] > 3"),
        ("flags", "tcp[13] & 18 = 18"),
        ("fragments", "ip[6:2] & 0x1fff != 0"),
        ("portrange", "udp portrange 1024 - 65535 and less 600"),
        ("protochain", "ip6 protochain 6"),
        ("not", "not (arp or icmp6) and not multicast"),
        ("ethernet", "ether host 02:00:00:00:00:01"),
        ("unknown-word", "tcp and and"),
        ("unbalanced", "((tcp)"),
        ("number-too-large", "port 65536"),
        ("geneve", "geneve 7 and ip"),
    ];
    let mut seeds: Vec<_> = seeds.map(|(name, expression)| (name, seed(expression))).into();
    seeds.push(("no-frame", b"greater 1000".to_vec()));
    seeds.push(("zero-byte", b"tcp\0and udp\n".to_vec()));
    seeds
}

fn flow_filters() -> Vec<(&'static str, Vec<u8>)> {
    [
        ("nothing", ""),
        ("comment", "# all\n"),
        ("addresses", "src ip 10.0.0.1 or dst host 2001:db8::1 and not net 172.16/12"),
        ("lists", "ip in [10.0.0.1, 192.0.2.0/24 ::/0] && port in [80,443 0x1bb]"),
        ("netmask", "net 10.0.0.0 255.255.0.0"),
        ("numbers", "bytes > 1m and packets <= 10k or bps ge 1g or bpp != 0 and duration 0x10"),
        ("directions", "in bytes 180 and out packets > 2 and src and dst port < 50000"),
        ("flags", "flags S and not flags AFRPU or flags > 2 or flags X"),
        ("families", "INET or ipv6 or proto icmp6 or cheetah or any"),
        ("records", "src as in [1 2] or mask 24 or in if 3 or next ip 10.0.0.1 or flowdir egress or icmp-type 8"),
        ("several-words", "observation domain id 7 and router ip 127.0.0.1 and src tos 3 and vlan 5"),
        ("nesting", "not (not (! (any or (any and any)) || any))"),
        ("too-deep", "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((("),
        ("unexpected", "port 80 & port 443"),
        ("unfinished", "port in [80,"),
        ("second-line", "port 80\nor prot tcp"),
        ("too-large", "port 99999999999999999999999"),
        ("control-characters", "port \x1b[31m"),
    ]
    .into_iter()
    .map(|(name, text)| (name, text.as_bytes().to_vec()))
    .collect()
}

fn configurations() -> Vec<(&'static str, Vec<u8>)> {
    let seeds = [
        ("empty", ""),
        ("comment", "# nothing is set\n"),
        ("detection", "[detection]\nflight_duration = \"100ms\"\nrate_threshold = \"50mbps\"\n"),
        (
            "cfinf",
            "[detection]\ndetector = \"cfinf\"\nprotocol_filter = [\"icmp\", \"89\"]\nsampling_probability = 0.5\n",
        ),
        (
            "flow-table",
            "[flow_table]\nflow_capacity = 65_536\nidle_timeout = \"15s\"\nactive_timeout = '30min'\n",
        ),
        ("live", "[live]\nring_size = \"64MiB\"\nsnap_length = 192\npromiscuous = false\n"),
        ("in-one-line", "live = { snap_length = 0x80 }\ninput.decapsulate = true"),
        ("unknown-key", "[detection]\nflight_duratoin = \"100ms\"\n"),
        ("unknown-section", "[flowtable]\nflow_capacity = 1\n"),
        ("key-without-section", "rate_threshold = \"1gbps\"\n"),
        ("key-elsewhere", "[live]\nrate_threshold = \"1gbps\"\n"),
        ("not-a-section", "live = 3\n"),
        ("wrong-type", "[flow_table]\nflow_capacity = \"many\"\nidle_timeout = 15\nlinger = 1.5\n"),
        ("out-of-range", "[flow_table]\nflow_capacity = 99999999999999999999\nidle_timeout = \"0s\"\n"),
        ("contradiction", "[flow_table]\nidle_timeout = \"1ms\"\n"),
        ("number-forms", "[detection]\ntracks = 0b1000\nsampling_probability = nan\n[input]\nseed = 0o17\n"),
        ("escapes", "[output]\nshow = \"\\u001b[2J\"\n\"a\\nb\" = 1\n"),
        ("not-toml", "[detection\nflight_duration = 100ms\n"),
        ("twice", "[live]\nsnap_length = 96\nsnap_length = 64\n"),
        ("deep", "a=[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["),
        ("crlf", "[output]\r\nlimit = 3\r\n[wrong]\r\n"),
    ];
    seeds.map(|(name, text)| (name, text.as_bytes().to_vec())).into()
}

fn experiments() -> Vec<(&'static str, Vec<u8>)> {
    let flows = "[[workload]]\npattern = \"incast\"\nsizes = \"1MB\"\n";
    let timed = format!("duration = \"1s\"\n{flows}");
    let seeds = [
        ("incast", include_str!("../../../../../examples/experiments/incast.toml").to_owned()),
        (
            "fat-tree-stride",
            include_str!("../../../../../examples/experiments/fat-tree-stride.toml").to_owned(),
        ),
        ("web-search", include_str!("../../../../../examples/experiments/web-search.toml").to_owned()),
        ("wan", include_str!("../../../../../examples/experiments/wan.toml").to_owned()),
        ("everything", include_str!("../emulate/rack.toml").to_owned()),
        ("shortest", timed.clone()),
        ("empty", String::new()),
        (
            "in-one-line",
            "duration='1s'\nworkload=[{pattern='persistent'}]\nscheme={name='red',weight=0x3}".to_owned(),
        ),
        ("waiting", format!("{timed}[scheme.hull]\nthreshold = \"3KB\"\n[scheme.dctcp]\nthreshold = 20\n")),
        (
            "waiting-in-list",
            "duration='1s'\n[[workload]]\npattern='persistent'\n[workload.rpc]\nfan_in=3\n".to_owned(),
        ),
        ("of-another", "duration = \"1s\"\n[topology]\nk = 4\n[scheme]\nthreshold = 65\n".to_owned()),
        ("unknown", "naem = 1\n[topolgy]\nk = 4\n[scheme]\nnam = \"red\"\n".to_owned()),
        (
            "missing",
            "[[workload]]\n[[workload]]\npattern = \"rpc\"\n[[failure]]\n[[packets]]\n[[mirror]]\n"
                .to_owned(),
        ),
        ("not-a-section", "scheme = 3\nworkload = 4\n[[topology]]\n[failure]\n".to_owned()),
        (
            "wrong-type",
            "duration = 3\nseed = -1\n[topology]\nrate = 1.5\nmtu = 70_000\n[measure]\nports = [[]]\n"
                .to_owned(),
        ),
        ("number-forms", format!("seed = 0o17\n{timed}[[packets]]\nsender = \"poisson\"\nload = 1e-1\n")),
        ("not-a-number", format!("{timed}[[packets]]\nsender = \"poisson\"\nload = nan\n")),
        ("escapes", "name = \"\\u001b[2J\\n\"\nduration = \"1s\"\n\"a\\nb\" = 1\n".to_owned()),
        ("not-toml", "[scheme\nname = red\n".to_owned()),
        ("crlf", timed.replace('\n', "\r\n")),
        ("many", "[[failure]]\n".repeat(100)),
    ];
    seeds.map(|(name, text)| (name, text.into_bytes())).into()
}

/// The golden files of the format, valid and invalid.
fn sketch_states() -> Vec<(&'static str, Vec<u8>)> {
    macro_rules! golden {
        ($($name:literal),+) => {
            vec![$((
                $name,
                include_bytes!(concat!("../../../../thalweg-sketch/tests/golden/", $name, ".tsk")).to_vec(),
            )),+]
        };
    }
    let mut seeds = golden!(
        "example",
        "empty",
        "count-min-32",
        "count-min-64",
        "count-min-saturated",
        "count-sketch-32",
        "count-sketch-64",
        "k-ary-32-sampled",
        "k-ary-64-difference",
        "univmon-32",
        "univmon-64",
        "hyper-log-log",
        "spread"
    );
    let damaged = golden!(
        "damaged/unix-line-ends",
        "damaged/other-format",
        "damaged/version-2",
        "damaged/truncated",
        "damaged/unknown-kind",
        "damaged/unknown-hash",
        "damaged/missing-counter"
    );
    seeds.extend(damaged.into_iter().map(|(name, bytes)| (name.trim_start_matches("damaged/"), bytes)));
    seeds
}

fn topologies() -> Vec<(&'static str, Vec<u8>)> {
    const RACK: &str = "[[router]]\nname = \"tor0\"\n[[endpoint]]\nname = \"h0\"\nrouter = \"tor0\"\n";
    let seeds = [
        ("empty", String::new()),
        ("rack", RACK.to_owned()),
        (
            "two-routers",
            format!(
                "{RACK}[[router]]\nname = \"agg\"\n[[link]]\nbetween = [\"tor0\", \"agg\"]\nrate = \"40gbps\"\ndelay = \"5us\"\n"
            ),
        ),
        ("defaults", format!("[defaults]\nrate = \"1gbps\"\ndelay = \"10us\"\n{RACK}")),
        ("addresses", format!("{RACK}mac = \"00:25:90:00:00:01\"\nip = \"192.168.0.1\"\n")),
        ("unknown-router", RACK.replace("router = \"tor0\"", "router = \"tro0\"")),
        ("unknown-key", format!("{RACK}rat = \"1gbps\"\n")),
        ("number-for-rate", format!("{RACK}rate = 10\n")),
        ("to-itself", format!("{RACK}[[link]]\nbetween = [\"tor0\", \"tor0\"]\n")),
        ("to-an-endpoint", format!("{RACK}[[link]]\nbetween = [\"tor0\", \"h0\"]\n")),
        ("twice", format!("{RACK}{RACK}")),
        ("reserved-mac", format!("{RACK}mac = \"02:54:57:00:00:09\"\n")),
        ("escapes", format!("{RACK}\"\\u001b[2J\" = 1\n")),
        ("not-toml", "[[router]\nname = tor0\n".to_owned()),
    ];
    seeds.map(|(name, text)| (name, text.into_bytes())).into()
}

fn networks() -> Vec<(&'static str, Vec<u8>)> {
    const RACK: &str = "[[router]]\nname = \"tor0\"\n[[endpoint]]\nname = \"h0\"\nrouter = \"tor0\"\n\
                        [[endpoint]]\nname = \"h1\"\nrouter = \"tor0\"\n";
    let tables = |entries: &str| format!("{RACK}[forwarding]\nkind = \"tables\"\nentries = [{entries}]\n");
    let entry = |mac: &str, port: u32| format!("{{ router = \"tor0\", mac = \"{mac}\", port = {port} }}");
    let seeds = [
        ("no-forwarding", RACK.to_owned()),
        ("ecmp", format!("{RACK}[forwarding]\nkind = \"ecmp\"\nseed = 7\n")),
        ("link-down", format!("{RACK}[forwarding]\nkind = \"ecmp\"\n[link_state]\ndown = [\"tor0:p1\"]\n")),
        ("tables", tables(&entry("02:54:57:00:00:00", 0))),
        ("shadow", tables(&entry("02:54:57:03:00:01", 1))),
        ("nobody", tables(&entry("00:00:5e:00:53:01", 1))),
        ("no-port", tables(&entry("02:54:57:00:00:00", 2))),
        ("unknown-kind", format!("{RACK}[forwarding]\nkind = \"flood\"\n")),
        ("number-for-list", format!("{RACK}[forwarding]\nkind = \"tables\"\nentries = 3\n")),
        (
            "json",
            "{\n\"router\": [{ \"name\": \"tor0\" }],\n\"endpoint\": [{ \"name\": \"h0\", \"router\": \"tor0\" }],\n\
             \"forwarding\": { \"kind\": \"ecmp\", \"seed\": 1 }\n}\n"
                .to_owned(),
        ),
        ("json-unknown", "{\n\"roter\": [{ \"name\": 3 }],\n\"forwarding\": null\n}\n".to_owned()),
        ("not-json", "{\"router\": [}".to_owned()),
    ];
    seeds.map(|(name, text)| (name, text.into_bytes())).into()
}

fn workloads() -> Vec<(&'static str, Vec<u8>)> {
    let seeds = [
        ("empty", ""),
        ("flows", "start,source,destination,bytes,dscp\n0,0,1,1000,0\n1ms,1,0,2000,46\n"),
        ("flows-without-header", "0,0,1,1000\n0.5us,3,2,64KB\n"),
        ("flows-out-of-order", "2s,0,1,1\n1s,1,0,1\n"),
        ("unknown-endpoint", "0,0,64,1000\n"),
        ("to-itself", "0,5,5,1000\n"),
        ("no-bytes", "0,0,1,0\n"),
        ("wrong-dscp", "0,0,1,1000,64\n"),
        ("too-few", "0,0,1\n"),
        ("sizes", "bytes,cumulative\n100,0\n1000,0.5\n10000,1\n"),
        ("sizes-with-comments", "# from nowhere\n1,0 # first\n2,1\n"),
        ("sizes-that-fall", "10,0.5\n5,1\n"),
        ("sizes-that-do-not-end", "10,0.5\n50,0.9\n"),
        ("sizes-beyond", "1e300,0.5\n18446744073709551616,1\n"),
    ];
    seeds.map(|(name, text)| (name, text.as_bytes().to_vec())).into()
}
