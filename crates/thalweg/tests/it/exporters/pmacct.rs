//! pmacctd captures on the interface of `thalweg watch`.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::exporters::collector::{ADDRESS, Collector, Kept, THALWEG};
use crate::exporters::{Counts, end, link, on_the_wire, packets, start, traffic, wait_until};
use crate::live::Watch;

/// Exports the traffic with a plugin, as flows or sampled packets. Returns the flows on the wire and the stored rows.
fn export(test: &str, plugin: &str, is_sampled: bool) -> Option<(Counts, Kept)> {
    let (link, _alone) = link(test, &[("pmacctd", "-V")])?;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pmacctd.conf");
    let interface = &link.interface;
    // A pipe with room for all packets, in small batches.
    let pipe = "plugin_pipe_size: 20000000\nplugin_buffer_size: 2000";
    fs::write(&path, format!("daemonize: false\npcap_interface: {interface}\n{pipe}\n{plugin}")).unwrap();
    let mut collector = Collector::start(link.at_sender(THALWEG));
    let watch = Watch::start(&link, &[]);
    let sockets = || {
        let sockets = link.at_sender("cat").arg("/proc/net/packet").output().unwrap();
        String::from_utf8_lossy(&sockets.stdout).lines().count()
    };
    let before = sockets();
    let pmacctd = start(link.at_sender("pmacctd").arg("-f").arg(&path));
    wait_until("pmacctd listens", || sockets() > before);
    // Until its plugin has started.
    sleep(Duration::from_millis(700));
    traffic(&link);
    let wire = on_the_wire(&watch.interrupt());
    // Its core passes packets to the plugin in batches, and neither waits for the other at exit.
    sleep(Duration::from_millis(2000));
    end(pmacctd, "INT");
    // Flows are exported now, and samples that did not fill a datagram.
    let records = if is_sampled { packets(&wire) } else { wire.len() as u64 };
    collector.wait(records, Duration::from_millis(200));
    Some((wire, collector.end()))
}

/// Compares flows, which it exports at exit.
fn check_flows(test: &str, version: u32, format: &str) {
    let plugin = format!(
        "plugins: nfprobe\nnfprobe_receiver: {ADDRESS}\nnfprobe_version: {version}\n\
         nfprobe_timeouts: expint=1:maxlife=3600:tcp=3600:udp=3600:icmp=3600:general=3600:tcp.fin=3600\n\
         aggregate: src_host,dst_host,src_port,dst_port,proto,tos\n"
    );
    let Some((wire, kept)) = export(test, &plugin, false) else { return };
    assert_eq!(kept.counts(format), wire);
    assert_eq!((kept.rows.len(), kept.sequence_losses()), (wire.len(), 0), "one record per flow");
}

#[test]
fn pmacct_netflow_5_matches_the_wire() {
    check_flows("pmacct_netflow_5_matches_the_wire", 5, "netflow5");
}

#[test]
fn pmacct_netflow_9_matches_the_wire() {
    check_flows("pmacct_netflow_9_matches_the_wire", 9, "netflow9");
}

#[test]
fn pmacct_ipfix_matches_the_wire() {
    check_flows("pmacct_ipfix_matches_the_wire", 10, "ipfix");
}

#[test]
fn pmacct_sflow_samples_are_on_the_wire() {
    // Sample every packet for the comparison.
    let plugin = format!(
        "plugins: sfprobe\nsfprobe_receiver: {ADDRESS}\nsfprobe_agentip: 192.0.2.1\nsampling_rate: 1\n"
    );
    let Some((wire, kept)) = export("pmacct_sflow_samples_are_on_the_wire", &plugin, true) else { return };
    assert_eq!(kept.counts("sflow5"), wire);
    assert_eq!(
        (kept.rows.len() as u64, kept.sequence_losses()),
        (packets(&wire), 0),
        "one record per packet"
    );
}
