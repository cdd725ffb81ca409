//! Export messages of every format: valid, late, modified, inconsistent.

/// Time of the exporters, as in the fuzz target.
const SECONDS: u32 = 1_700_000_000;

/// Messages, each after its length.
fn stream(messages: &[Vec<u8>]) -> Vec<u8> {
    messages
        .iter()
        .flat_map(|message| [&(message.len() as u16).to_be_bytes()[..], message].concat())
        .collect()
}

fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn longs(longs: &[u32]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_be_bytes()).collect()
}

fn set(id: u16, content: &[u8]) -> Vec<u8> {
    [&words(&[id, 4 + content.len() as u16]), content].concat()
}

fn template(set_id: u16, id: u16, fields: &[u16]) -> Vec<u8> {
    set(set_id, &[words(&[id, (fields.len() / 2) as u16]), words(fields)].concat())
}

fn netflow5(sequence: u32, sampling: u16, flows: u16) -> Vec<u8> {
    let header =
        [words(&[5, flows]), longs(&[90_000, SECONDS, 500_000_000, sequence]), words(&[1, sampling])];
    let record = [
        longs(&[0x0A00_0001, 0x0A00_0002, 0x0A00_0003]),
        words(&[3, 4]),
        longs(&[7, 1500, 80_000, 89_000]),
        words(&[443, 50_000, 0x001B, 0x0600, 64_512, 64_513, 0x1810, 0]),
    ];
    [header.concat(), record.concat().repeat(usize::from(flows))].concat()
}

fn netflow9(sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let header = [words(&[9, sets.len() as u16]), longs(&[90_000, SECONDS + sequence, sequence, domain])];
    [header.concat(), sets.concat()].concat()
}

fn ipfix(sequence: u32, domain: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let content = sets.concat();
    let header = [words(&[10, 16 + content.len() as u16]), longs(&[SECONDS, sequence, domain])];
    [header.concat(), content].concat()
}

/// Addresses, ports, protocol, counters, up-times: the fields of a router.
const ROUTER: [u16; 18] = [8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 1, 4, 2, 4, 22, 4, 21, 4];

fn router_record(octets: u32) -> Vec<u8> {
    let key = [longs(&[0x0A00_0001, 0x0A00_0002]), words(&[443, 50_000]), vec![6]].concat();
    [key, longs(&[octets, 2, 80_000, 90_001])].concat()
}

pub(crate) fn netflow() -> Vec<(&'static str, Vec<u8>)> {
    let defined = || template(0, 256, &ROUTER);
    let data = |octets: &[u32]| {
        set(256, &octets.iter().flat_map(|&octets| router_record(octets)).collect::<Vec<_>>())
    };
    let options = set(1, &words(&[400, 4, 12, 2, 2, 48, 1, 49, 1, 50, 2]));
    let mut long_ago = netflow9(0, 1, &[defined(), data(&[1])]);
    long_ago[4..8].copy_from_slice(&100u32.to_be_bytes());
    let many: Vec<_> = (0..9).map(|id| template(0, 300 + id, &[1, 4])).collect();
    vec![
        (
            "netflow5",
            stream(&[netflow5(0, 0, 1), netflow5(1, 0x4064, 3), netflow5(10, 0, 2), netflow5(4, 0, 6)]),
        ),
        ("netflow5_cut", stream(&[netflow5(0, 0, 2)[..100].to_vec(), vec![0, 5]])),
        (
            "netflow9",
            stream(&[netflow9(0, 1, &[defined(), data(&[1, 2, 3])]), netflow9(1, 1, &[data(&[4])])]),
        ),
        ("netflow9_late_template", stream(&[netflow9(0, 1, &[data(&[1, 2])]), netflow9(1, 1, &[defined()])])),
        ("netflow9_options", stream(&[netflow9(0, 1, &[options, set(400, &[0, 3, 1, 2, 0, 100, 0, 0])])])),
        (
            "netflow9_changed",
            stream(&[
                netflow9(0, 1, &[defined(), data(&[1])]),
                netflow9(1, 1, &[template(0, 256, &[1, 2, 2, 2])]),
                netflow9(2, 1, &[data(&[1])]),
            ]),
        ),
        ("netflow9_wrapped", stream(&[long_ago])),
        (
            "netflow9_flood",
            stream(&[netflow9(0, 1, &many), netflow9(1, 2, &[data(&[1])]), netflow9(0, 3, &[])]),
        ),
        (
            "netflow9_no_length",
            stream(&[netflow9(0, 1, &[template(0, 256, &[1, 0, 2, 0]), set(256, &[0; 8])])]),
        ),
        ("netflow9_set_of_no_length", stream(&[netflow9(0, 1, &[words(&[256, 0]), words(&[0, 0])])])),
        ("netflow9_zeros", stream(&[[netflow9(0, 1, &[defined(), data(&[1])]), vec![0; 64]].concat()])),
        ("other_version", stream(&[vec![0, 8, 0, 1], vec![1], vec![]])),
    ]
}

pub(crate) fn ipfix_messages() -> Vec<(&'static str, Vec<u8>)> {
    let defined = || template(2, 256, &ROUTER);
    let data = |octets: u32| set(256, &router_record(octets));
    let named = template(2, 257, &[82, 0xFFFF, 1, 8, 152, 8, 153, 8]);
    let milliseconds = (u64::from(SECONDS) * 1000).to_be_bytes();
    let named_record = |name: &[u8]| [name, &[0; 7], &[9], &milliseconds, &milliseconds].concat();
    let names =
        set(257, &[named_record(b"\x04eth0"), named_record(b"\xFF\x00\x02lo"), named_record(b"\0")].concat());
    let reverse = [words(&[258, 4, 8, 4, 12, 4, 1, 4, 0x8001, 4]), longs(&[29305])].concat();
    let biflows = set(258, &longs(&[0x0A00_0001, 0x0A00_0002, 100, 900, 0x0A00_0003, 0x0A00_0004, 5, 0]));
    let own = [words(&[259, 2, 0x8001, 3]), longs(&[6871]), words(&[1, 5])].concat();
    let options = set(3, &words(&[400, 3, 1, 302, 4, 305, 4, 306, 4]));
    let ntp = template(2, 260, &[154, 8, 157, 8, 158, 4, 1, 1]);
    let layers = template(2, 261, &[27, 16, 28, 16, 4, 1, 8, 4, 12, 4, 7, 2, 1, 4]);
    let tunnel = [&[0x20; 32][..], &[4], &[10; 8], &[1, 187, 0, 0, 0, 99]].concat();
    let sections = template(2, 262, &[410, 2, 312, 2, 315, 0xFFFF]);
    // Ethernet, IPv4, GRE, IPv4, UDP.
    let gre = [
        &[2; 12][..],
        &[8, 0, 0x45, 0, 0, 56, 0, 0, 0, 0, 64, 47, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0, 0, 8, 0],
        &[0x45, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 53, 0, 53, 0, 12, 0, 0],
    ]
    .concat();
    let sampled = [&[0, 66, 0, 70, gre.len() as u8][..], &gre].concat();
    let events = template(2, 263, &[230, 1, 8, 4, 225, 4, 12, 4, 1, 4]);
    let event = [&[1][..], &[10; 12], &[0; 4], &[2], &[10; 12], &[0, 0, 0, 9]].concat();
    let withdrawn = |set_id: u16, id: u16| set(set_id, &words(&[id, 0]));
    let mut lying = ipfix(0, 1, &[defined(), data(1)]);
    lying[3] += 4;
    vec![
        (
            "ipfix",
            stream(&[ipfix(0, 1, &[defined(), data(1)]), ipfix(1, 1, &[data(2)]), ipfix(9, 1, &[data(3)])]),
        ),
        ("ipfix_late_template", stream(&[ipfix(0, 1, &[data(1)]), ipfix(1, 1, &[defined(), data(2)])])),
        ("ipfix_variable", stream(&[ipfix(0, 1, &[named.clone(), names])])),
        (
            "ipfix_variable_cut",
            stream(&[ipfix(0, 1, &[named, set(257, b"\xFF\x7F\xFFname and nothing behind it 12")])]),
        ),
        ("ipfix_biflow", stream(&[ipfix(0, 1, &[set(2, &reverse), biflows])])),
        ("ipfix_enterprise", stream(&[ipfix(0, 1, &[set(2, &own), set(259, &[1, 2, 3, 0, 0, 0, 0, 9])])])),
        ("ipfix_options", stream(&[ipfix(0, 1, &[options, set(400, &longs(&[1, 1, 999, 2, 3, 7]))])])),
        ("ipfix_times", stream(&[ipfix(0, 1, &[ntp, set(260, &[0xE8; 21])])])),
        ("ipfix_withdrawn", stream(&[ipfix(0, 1, &[defined(), withdrawn(2, 256)]), ipfix(0, 1, &[data(1)])])),
        ("ipfix_all_withdrawn", stream(&[ipfix(0, 1, &[defined(), withdrawn(2, 2), withdrawn(3, 3)])])),
        ("ipfix_layers", stream(&[ipfix(0, 1, &[layers, set(261, &tunnel)])])),
        ("ipfix_packet_section", stream(&[ipfix(0, 1, &[sections, set(262, &sampled)])])),
        ("ipfix_nat_events", stream(&[ipfix(0, 1, &[events, set(263, &event)])])),
        ("ipfix_lying_length", stream(&[lying])),
        ("ipfix_no_scope", stream(&[ipfix(0, 1, &[set(3, &words(&[400, 1, 0, 34, 4]))])])),
    ]
}

pub(crate) fn sflow() -> Vec<(&'static str, Vec<u8>)> {
    let structure =
        |format: u32, content: &[u8]| [longs(&[format, content.len() as u32]), content.to_vec()].concat();
    let datagram = |sequence: u32, samples: &[Vec<u8>]| {
        [longs(&[5, 1, 0x0A00_0063, 0, sequence, 90_000, samples.len() as u32]), samples.concat()].concat()
    };
    let sample = |records: &[Vec<u8>]| {
        structure(1, &[longs(&[1, 3, 1000, 0, 0, 3, 4, records.len() as u32]), records.concat()].concat())
    };
    let expanded = |records: &[Vec<u8>]| {
        let header = longs(&[1, 0, 3, 1000, 0, 0, 0, 3, 0, 4, records.len() as u32]);
        structure(3, &[header, records.concat()].concat())
    };
    let ip = [
        &[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2][..],
        &[1, 187, 195, 80, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, 0, 0, 0, 0],
    ]
    .concat();
    let header = |protocol: u32, link: &[u8]| {
        let mut frame = [link, &ip].concat();
        let length = frame.len() as u32;
        frame.resize(frame.len().next_multiple_of(4), 0);
        structure(1, &[longs(&[protocol, length, 0, length]), frame].concat())
    };
    let ethernet = header(1, &[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0x81, 0, 0, 42, 8, 0]);
    let v4 = structure(3, &longs(&[1500, 6, 0x0A00_0001, 0x0A00_0002, 443, 50_000, 24, 0]));
    let v6 = structure(4, &longs(&[900, 17, 1, 2, 3, 4, 5, 6, 7, 8, 53, 54, 0, 0]));
    let switch = structure(1001, &longs(&[42, 0, 43, 0]));
    let router = structure(1002, &longs(&[2, 1, 2, 3, 4, 24, 16]));
    let gateway = structure(1003, &longs(&[1, 9, 1, 2, 3, 2, 2, 2, 10, 11, 1, 1, 12, 0, 100]));
    let endless = structure(1003, &longs(&[1, 9, 1, 2, 3, u32::MAX, 2, u32::MAX, 10]));
    let counters = [&[3, 6, 0, 1_000_000_000, 1, 3][..], &[7; 15], &[1]].concat();
    let block = structure(1, &longs(&counters));
    let counted = structure(2, &[longs(&[1, 3, 1]), block.clone()].concat());
    let counted_expanded = structure(4, &[longs(&[1, 0, 3, 2]), block, structure(2, &[0; 52])].concat());
    vec![
        (
            "sflow_ethernet",
            stream(&[datagram(1, &[sample(std::slice::from_ref(&ethernet))]), datagram(4, &[])]),
        ),
        ("sflow_ip", stream(&[datagram(1, &[sample(&[header(11, &[])])])])),
        ("sflow_expanded", stream(&[datagram(1, &[expanded(std::slice::from_ref(&ethernet))])])),
        ("sflow_fields", stream(&[datagram(1, &[sample(&[v4]), sample(&[v6])])])),
        ("sflow_way", stream(&[datagram(1, &[sample(&[switch, router, gateway, ethernet.clone()])])])),
        ("sflow_endless_path", stream(&[datagram(1, &[sample(&[endless])])])),
        ("sflow_counters", stream(&[datagram(1, &[counted])])),
        ("sflow_counters_expanded", stream(&[datagram(1, &[counted_expanded])])),
        ("sflow_other_link", stream(&[datagram(1, &[sample(&[header(7, &[])]), structure(99, &[0; 4])])])),
        ("sflow_cut", stream(&[datagram(1, &[sample(&[ethernet])])[..90].to_vec()])),
        ("sflow_address", stream(&[longs(&[5, 3, 0, 0, 1, 1, 0])])),
    ]
}
