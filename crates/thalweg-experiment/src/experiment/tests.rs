use super::schemes::{BuiltInScheme, Dctcp, Hull, PFabricBuffer, PortBuffer};
use super::table::{FatTree, FlowSizes, Tcp, Topology, Transport, Workload};
use super::*;
use thalweg_wire::{Bytes, Nanos};

const FLOWS: &str = "[[workload]]\npattern = \"incast\"\nsizes = \"1MB\"\n";

fn parse(text: &str) -> Experiment {
    Experiment::parse(text, "x.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let message = Experiment::parse(text, "x.toml").unwrap_err().to_string();
    assert_eq!(message.lines().collect::<Vec<_>>(), expected);
}

/// The content of an experiment without line numbers.
fn meaning(experiment: &Experiment) -> Vec<(String, Vec<(&'static str, String)>)> {
    let said = |entry: &Entry| {
        let keys = entry.section.keys_for(entry.chosen());
        let values = keys.filter_map(|key| Some((key.name, entry.literal(key)?.text().into_owned())));
        (format!("{} {}", entry.section.name, entry.chosen()), values.collect())
    };
    experiment.entries().iter().map(said).collect()
}

#[test]
fn every_mistake_is_reported_with_line_and_expectation() {
    refused(
        "naem = \"x\"\nduration = \"10 parsec\"\n[topolgy]\nk = 4\n[scheme]\nname = \"dctp\"\nthreshold = 65\n\
         [transport]\necn = 1\nmin_rto = 5\n[[workload]]\npattern = \"rcp\"\nload = 0.5\n[[failure]]\nlink = \"a\"\n",
        &[
            "x.toml:1: unknown key \"naem\"; did you mean \"name\"?",
            "x.toml:2: duration is \"10 parsec\": expected a time above zero with a unit (ns, us, ms, s, min, h), such as 100ms or 1.5s, \
             in quotes",
            "x.toml:3: unknown section \"topolgy\"; did you mean \"topology\"?",
            "x.toml:6: unknown scheme \"dctp\": expected one of droptail, red, red_ecn, dctcp, priority, scavenger, drr, hull, \
             pfabric, pie, fq_codel; did you mean \"dctcp\"?",
            "x.toml:9: ecn is 1: expected true or false",
            "x.toml:10: min_rto is 5: expected a time above zero with a unit (ns, us, ms, s, min, h), such as 100ms or 1.5s, in quotes",
            "x.toml:12: unknown pattern \"rcp\": expected one of all_to_all, rpc, incast, stride, shuffle, random_bijection, \
             random, staggered, persistent, file; did you mean \"rpc\"?",
            "x.toml:14: missing key \"at\" in [[failure]]: expected a time with a unit, such as 0s, 200us, 100ms or 1.5s, in quotes",
        ],
    );
}

#[test]
fn missing_keys_are_reported() {
    refused(
        "",
        &[
            "x.toml:1: missing key \"duration\": expected a time above zero with a unit (ns, us, ms, s, min, h), \
             such as 100ms or 1.5s, in quotes",
        ],
    );
    refused(
        "duration = \"1s\"\n[[workload]]\npattern = \"rpc\"\nload = 0.5\n",
        &[
            "x.toml:2: missing key \"sizes\" in [[workload]]: expected \"web_search\" or another distribution of `thalweg \
             emulate --list`, the name of a file, an amount such as \"10MB\", or \"forever\"",
            "x.toml:2: missing key \"clients\" in [[workload]]: expected names of endpoints, such as \"h0\", or ranges, such as \"h0..h3\"",
        ],
    );
}

#[test]
fn a_key_of_another_section_is_refused_by_name() {
    refused(
        "duration = \"1s\"\nthreshold = 3\n[scheme]\nthreshold = 65\nload = 1\n[topology]\nshape = \"rack\"\nk = 4\n",
        &[
            "x.toml:2: unknown key \"threshold\"; it belongs in [scheme]",
            "x.toml:4: \"threshold\" does not apply to scheme \"droptail\", only to dctcp, hull",
            "x.toml:5: unknown key \"load\"; it belongs in [[workload]] or [[packets]]",
            "x.toml:8: \"k\" does not apply to shape \"rack\", only to fat_tree",
        ],
    );
    refused(
        "duration = \"1s\"\nworkload = 3\n[[scheme]]\nname = \"red\"\n",
        &[
            "x.toml:2: \"workload\" is a section: write [[workload]] on its own line, and its keys below",
            "x.toml:3: \"scheme\" is a section: write [scheme] on its own line, and its keys below",
        ],
    );
}

#[test]
fn only_the_first_syntax_error_is_reported() {
    let message = Experiment::parse("duration = 10ms\n[x]\n", "x.toml").unwrap_err().to_string();
    assert!(message.starts_with("x.toml:1: invalid TOML: "), "{message}");
    assert_eq!(message.lines().count(), 1);
}

#[test]
fn the_printed_experiment_reads_back_with_the_same_meaning() {
    for text in [
        format!("duration = \"1s\"\n[transport]\nname = \"dctcp\"\n{FLOWS}"),
        format!(
            "name = \"a \\\"b\\\"\"\nduration = \"1.5s\"\nseed = 7\n[scheme]\nname = \"hull\"\n[scheme.dctcp]\n\
             threshold = 20\n[topology]\nshape = \"fat_tree\"\nrate = 1_000_000_000\n{FLOWS}[[workload]]\npattern = \
             \"rpc\"\nclients = [\"h0\", \"h1\"]\nsizes = [\"0.8 1KB dscp 3\", \"0.2 1MB\"]\nload = 1\n[[failure]]\nlink = \
             [\"edge0\", \"agg0\"]\nat = \"5ms\"\n[transport]\nname = \"cubic\"\n"
        ),
    ] {
        let first = parse(&text);
        let second = parse(&first.print());
        assert_eq!(meaning(&first), meaning(&second));
        assert_eq!(first.print(), second.print(), "values that wait are printed too");
    }
}

#[test]
fn keys_of_unselected_schemes_are_valid() {
    let mut experiment = parse(&format!(
        "duration = \"1s\"\n[scheme]\nbuffer = 99\n[scheme.hull]\nthreshold = \"3KB\"\n[scheme.dctcp]\nthreshold = 20\n{FLOWS}"
    ));
    let scheme = |experiment: &Experiment| match experiment.one::<Scheme>().into_value() {
        Scheme::BuiltIn(scheme) => scheme,
        own @ Scheme::Own(_) => panic!("{own:?}"),
    };
    assert_eq!(scheme(&experiment), BuiltInScheme::DropTail(PortBuffer { buffer: 99 }));
    experiment.set("scheme", "dctcp", "--sweep").unwrap();
    let dctcp = BuiltInScheme::Dctcp(PortBuffer { buffer: 99 }, Dctcp { threshold: 20 });
    assert_eq!(scheme(&experiment), dctcp, "what all of them have stays");
    experiment.set("scheme", "hull", "--sweep").unwrap();
    let BuiltInScheme::Hull(_, Hull { threshold, .. }) = scheme(&experiment) else {
        panic!("hull is selected")
    };
    assert_eq!(threshold, Bytes(3_000));
    experiment.set("scheme", "pfabric", "--sweep").unwrap();
    let other = BuiltInScheme::PFabric(PFabricBuffer { buffer: 36 });
    assert_eq!(scheme(&experiment), other, "its buffer means something else");
}

#[test]
fn the_default_transport_follows_the_scheme() {
    let of = |scheme: &str, rest: &str| {
        let experiment = parse(&format!("duration = \"1s\"\n[scheme]\nname = \"{scheme}\"\n{rest}{FLOWS}"));
        experiment.one::<Transport>().entry.chosen().to_owned()
    };
    assert_eq!(
        ["droptail", "dctcp", "hull", "pfabric"].map(|it| of(it, "")),
        ["cubic", "dctcp", "dctcp", "pfabric"]
    );
    assert_eq!(of("pfabric", "[transport]\nname = \"new_reno\"\n"), "new_reno");
}

#[test]
fn keys_of_any_transport_are_valid_without_a_name() {
    let text =
        format!("duration = \"1s\"\n[scheme]\nname = \"pfabric\"\n[transport]\nmin_rto = \"7ms\"\n{FLOWS}");
    let mut experiment = parse(&text);
    experiment.set("scheme", "dctcp", "--sweep").unwrap();
    let Transport::Dctcp(Tcp { min_rto, .. }) = experiment.one::<Transport>().into_value() else {
        panic!("it goes with the scheme")
    };
    assert_eq!(min_rto, Nanos::from_millis(7));
    let named = text.replace("min_rto", "name = \"pfabric\"\nmin_rto");
    refused(
        &named,
        &[
            "x.toml:6: \"min_rto\" does not apply to transport \"pfabric\", only to new_reno, cubic, cubic_hystart, dctcp, h_tcp",
        ],
    );
}

#[test]
fn a_key_is_set_by_its_path_or_unambiguous_name() {
    let mut experiment =
        parse(&format!("duration = \"1s\"\n[topology]\nshape = \"fat_tree\"\n{FLOWS}{FLOWS}"));
    for (path, value) in
        [("k", "6"), ("workload.sizes", "2MB"), ("min_rto", "1ms"), ("scheme.red.weight", "3"), ("seed", "9")]
    {
        experiment.set(path, value, "--sweep").unwrap();
    }
    assert!(matches!(*experiment.one::<Topology>(), Topology::FatTree(FatTree { k: 6 }, ..)));
    let sizes = |workload: &Workload| match workload {
        Workload::Incast(FlowSizes { sizes }, ..) => sizes.clone(),
        other => panic!("{other:?}"),
    };
    assert!(experiment.all::<Workload>().all(|workload| sizes(&workload) == ["2MB"]));
    experiment.set("scheme", "red", "--sweep").unwrap();
    assert!(
        matches!(&*experiment.one::<Scheme>(), Scheme::BuiltIn(BuiltInScheme::Red(_, red)) if red.weight == 3)
    );
}

#[test]
fn an_invalid_override_is_reported_as_typed() {
    let mut experiment = parse(&format!("duration = \"1s\"\n{FLOWS}"));
    for (path, value, expected) in [
        ("lod", "1", "--sweep lod=1: unknown key \"lod\"; did you mean \"load\"?"),
        ("name", "a", "--sweep name=a: \"name\" is ambiguous: write scheme.name or transport.name"),
        (
            "threshold",
            "5",
            "--sweep threshold=5: \"threshold\" does not apply to scheme \"droptail\", only to dctcp, hull",
        ),
        ("schem.name", "red", "--sweep schem.name=red: unknown section \"schem\"; did you mean \"scheme\"?"),
        ("k", "4", "--sweep k=4: \"k\" does not apply to shape \"rack\", only to fat_tree"),
        (
            "load",
            "1",
            "--sweep load=1: \"load\" does not apply to x.toml: workload.load requires another pattern than \"incast\", packets.load requires a section [[packets]]",
        ),
        ("packets.load", "1", "--sweep packets.load=1: x.toml has no section [[packets]]"),
        (
            "rate",
            "fast",
            "--sweep rate=fast: rate is fast: expected a bit rate above zero, such as 40mbps or 10gbps",
        ),
        (
            "scheme",
            "read",
            "--sweep scheme=read: unknown scheme \"read\": expected one of droptail, red, red_ecn, dctcp, priority, \
                            scavenger, drr, hull, pfabric, pie, fq_codel; did you mean \"red\"?",
        ),
    ] {
        let error = experiment.set(path, value, &format!("--sweep {path}={value}")).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn the_shortest_experiment_of_the_reference_is_valid() {
    let page = reference();
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    assert!(super::super::Plan::new(&parse(text)).is_ok());
}
