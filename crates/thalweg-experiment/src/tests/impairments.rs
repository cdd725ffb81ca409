//! Random loss and jitter of links.

use super::*;

/// An experiment whose links between routers, and between endpoints and routers, lose packets and have jitter.
fn impaired(text: &str) -> String {
    let keys = "shape = 'leaf_spine'
        delay = '3us'
        loss = 0.002
        jitter = '1us'
        uplink_delay = '10us'
        uplink_loss = ['0.5%', '2%']
        uplink_jitter = '8us'";
    assert!(text.contains("shape = 'leaf_spine'"));
    text.replace("shape = 'leaf_spine'", keys)
}

#[test]
fn lost_packets_have_a_place_and_a_reason() {
    let results = of_seed(run_text(&impaired(BUSY)));
    let packets = results.summary.packets;
    assert_eq!(packets.sent, packets.delivered + packets.dropped + packets.in_flight);
    let listed: u64 = results.drops.iter().map(|drop| drop.packets).sum();
    assert_eq!(listed, packets.dropped, "every drop has a place and a reason");
    let lost = |of: &dyn Fn(&str) -> bool| -> u64 {
        let losses = results.drops.iter().filter(|drop| drop.reason == "link_loss");
        losses.filter(|drop| of(&drop.place)).map(|drop| drop.packets).sum()
    };
    let (up, down) = (lost(&|place| place.contains("> spine")), lost(&|place| place.starts_with("spine")));
    assert!(up > 0 && down > 2 * up, "{up} and {down}, of which the rates are 0.5 % and 2 %");
    assert!(lost(&|place| place.starts_with('h')) > 0 && lost(&|place| place.contains("> h")) > 0);
    assert_eq!(results, of_seed(run_text(&impaired(BUSY))));
    assert_ne!(results.drops, run_text(&format!("seed = 2\n{}", impaired(BUSY))).drops);

    let zero = BUSY.replace("shape = 'leaf_spine'", "shape = 'leaf_spine'\nloss = ['0%', 0]\njitter = '0s'");
    assert_eq!(of_seed(run_text(&zero)), of_seed(run_text(BUSY)), "none is the default");
}

#[test]
fn losses_and_delays_do_not_depend_on_the_number_of_threads() {
    let one = result_files(&impaired(OPEN_LOOP), 1);
    assert!(String::from_utf8_lossy(&one["drops.csv"]).contains("link_loss"));
    assert!(result_files(&impaired(OPEN_LOOP), 3) == one);
}

/// Mathis, Semke, Mahdavi and Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm", CCR 27(3), 1997:
/// the rate of TCP is MSS / RTT * C / sqrt(p). With a window that grows by one segment per round trip, C is sqrt(3/2) = 1.22 for
/// periodic losses, and 1.31 for independent ones (Ott, Kemperman and Mathis, "The Stationary Behavior of Ideal TCP
/// Congestion Avoidance", 1996). Four flows lose about 290 segments, and C is 1.31, 1.30 and 1.35 for the first seeds.
#[test]
fn new_reno_reaches_the_rate_of_mathis_over_100_ms_with_a_loss_of_one_in_a_thousand() {
    let flows = |loss: &str, jitter: &str| {
        let text = format!(
            "duration = '180s'
            warm_up = '30s'
            drain = '0s'
            [topology]
            endpoints = 8
            rate = '20mbps'
            delay = '25ms'
            loss = {loss}
            jitter = {jitter}
            [transport]
            name = 'new_reno'
            [[workload]]
            pattern = 'stride'
            endpoints = 'h0..h7'
            stride = 4
            sizes = 'forever'
            flows = 4"
        );
        run_text(&text)
    };
    let results = flows("['0.1%', '0%']", "'0s'");
    // 100 ms, two transmissions of 615 us, two stacks of 10 us.
    let window = results.summary.goodput_bps / 4.0 * 0.1013 / (8.0 * 1_448.0);
    let constant = window * 0.001f64.sqrt();
    assert!((1.15..=1.45).contains(&constant), "C is {constant}");
    assert!(results.drops.iter().all(|drop| drop.reason == "link_loss" && drop.place.starts_with('h')));
    // A quarter of the losses is twice the rate.
    let fewer = flows("['0.025%', '0%']", "'1ms'");
    let ratio = fewer.summary.goodput_bps / results.summary.goodput_bps;
    assert!((1.6..=2.4).contains(&ratio), "{ratio}");
}

#[test]
fn invalid_impairments_are_refused_with_their_line() {
    let refused = |keys: &str| {
        let text = format!(
            "duration = '10ms'\n[topology]\nshape = 'dumbbell'\n{keys}\n[[workload]]\npattern = 'persistent'"
        );
        let plan = Experiment::parse(&text, "x.toml").map_err(|error| error.to_string());
        plan.and_then(|experiment| Plan::new(&experiment).map(drop).map_err(|error| error.to_string()))
            .unwrap_err()
    };
    let expected = "expected a probability from 0% to 100% such as \"0.01%\" or 0.0001, or one for each direction, \
                    as in [\"0.1%\", \"0%\"]";
    for value in ["'101%'", "1.01", "-0.1", "'none'", "true", "['1%']", "['1%', '2%', '3%']", "['1%', 2]"] {
        assert_eq!(refused(&format!("loss = {value}")), format!("x.toml:4: loss is {value}: {expected}"));
    }
    assert_eq!(
        refused("delay = '1ms'\njitter = '2ms'"),
        "x.toml:5: jitter: invalid link jitter 2.00 ms: expected at most the delay, which is 1.00 ms"
    );
    assert_eq!(
        refused("uplink_delay = '1ms'\nuplink_jitter = '1001us'"),
        "x.toml:5: uplink_jitter: invalid link jitter 1.00 ms: expected at most the delay, which is 1.00 ms"
    );
    assert_eq!(
        refused("delay = '1ms'\njitter = '1ms'\nuplink_delay = '1us'"),
        "x.toml:6: uplink_delay: invalid link jitter 1.00 ms: expected at most the delay, which is 1.00 us",
        "an inherited jitter"
    );
    assert!(refused("delay = '11s'").starts_with("x.toml:4: delay: invalid link delay"));
}
