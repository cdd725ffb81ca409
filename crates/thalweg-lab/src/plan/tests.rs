use super::*;

#[test]
fn prefix_is_a_short_word_and_a_hyphen() {
    for text in ["tw-", "a-", "lab12345-"] {
        assert_eq!(text.parse::<Prefix>().unwrap().as_str(), text);
    }
    for text in ["", "-", "tw", "tw-a-", "Tw-", "1a-", "lab123456-", "../-", "t w-"] {
        assert_eq!(text.parse::<Prefix>(), Err(PlanError::Prefix { text: text.to_owned() }));
    }
}

#[test]
fn default_plans_are_valid() {
    let (small, large) = (Plan::leaf_spine(DEFAULT_RATE).unwrap(), Plan::fat_tree_4(MIN_RATE).unwrap());
    assert_eq!((small.topology.endpoints().len(), small.topology.routers().len()), (6, 5));
    assert_eq!((large.topology.endpoints().len(), large.topology.routers().len()), (16, 20));
    for plan in [small, large] {
        plan.check().unwrap();
    }
}

#[test]
fn invalid_values_are_rejected() {
    let plan = Plan::leaf_spine(DEFAULT_RATE).unwrap();
    let wrong = |change: fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        plan.check().unwrap_err()
    };
    let rate = BitRate(10);
    assert_eq!(wrong(|plan| plan.rate = Some(BitRate(10))), PlanError::Rate { rate });
    assert_eq!(wrong(|plan| plan.monitor_rate = Some(BitRate(10))), PlanError::Rate { rate });
    assert_eq!(wrong(|plan| plan.host_share = 0.0), PlanError::HostShare { share: 0.0 });
    assert!(matches!(wrong(|plan| plan.host_share = f64::NAN), PlanError::HostShare { .. }));
    assert_eq!(wrong(|plan| plan.mtu = 500), PlanError::Mtu { mtu: 500 });
    let buffer = Nanos::from_secs(2);
    assert_eq!(wrong(|plan| plan.monitor_buffer = Nanos::from_secs(2)), PlanError::Buffer { buffer });
    let name = "a b".to_owned();
    assert_eq!(
        wrong(|plan| plan.congestion_control = Some("a b".to_owned())),
        PlanError::CongestionControl { name }
    );
    let links_of_10_tbit_s = fat_tree(
        4,
        Tiers {
            access: LinkSpec { rate: BitRate(10_000_000_000_000), ..LinkSpec::default() },
            ..Tiers::default()
        },
    );
    assert!(matches!(Plan::new(links_of_10_tbit_s.unwrap()).check(), Err(PlanError::Rate { .. })));
    let large = Plan::new(fat_tree(20, Tiers::default()).unwrap());
    assert_eq!(large.check(), Err(PlanError::TooManyPorts { ports: 10_000 }));
}

#[test]
fn host_names_must_be_valid_file_names() {
    let named = |name: &str| {
        let mut builder = thalweg_network::TopologyBuilder::new();
        let router = builder.add_router("r").unwrap();
        builder.add_endpoint(name, router, LinkSpec::default()).unwrap();
        Plan::new(builder.build().unwrap()).check()
    };
    assert_eq!(named("web-1.example"), Ok(()));
    for name in ["fabric", "a/b", "a b", "naïve"] {
        assert_eq!(named(name), Err(PlanError::Host { name: name.to_owned() }));
    }
}
