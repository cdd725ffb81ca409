//! Open vSwitch in user space, with the receiver's end of the link and its address in a bridge.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::exporters::collector::{ADDRESS, Collector, Kept, THALWEG};
use crate::exporters::{Counts, link, on_the_wire, packets, run, start, traffic, wait_until};
use crate::live::{Link, RECEIVER, Running, Watch};

const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const BRIDGE: &str = "br0";

/// Open vSwitch counts the Ethernet header of each frame.
const ETHERNET_HEADER: u64 = 14;

/// Running processes in their own folder.
struct OpenVswitch<'a> {
    link: &'a Link,
    folder: TempDir,
    /// Switch and database, ended in this order.
    daemons: Vec<Running>,
}

impl OpenVswitch<'_> {
    fn start(link: &Link) -> OpenVswitch<'_> {
        let mut switch = OpenVswitch { link, folder: tempfile::tempdir().unwrap(), daemons: Vec::new() };
        let (database, socket) = (switch.path("conf.db"), switch.path("db.sock"));
        run(switch.command(Command::new("ovsdb-tool")).arg("create").arg(&database).arg(SCHEMA));
        let remote = format!("--remote=punix:{}", socket.display());
        switch.daemon("ovsdb-server", &[database.to_str().unwrap(), &remote]);
        // The file exists before the server listens.
        wait_until("the database listens", || UnixStream::connect(&socket).is_ok());
        switch.configure(&["--no-wait", "init"]);
        let address = switch.address();
        switch.daemon("ovs-vswitchd", &[&address, "--disable-system"]);
        let peer = format!("{}r", link.interface.strip_suffix('s').unwrap());
        let bridge = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE, "datapath_type=netdev"];
        switch.configure(&[&bridge[..], &["--", "add-port", BRIDGE, &peer]].concat());
        let network = format!("{RECEIVER}/24");
        let ip = |arguments: &[&str]| run(link.at_receiver("ip").args(arguments));
        ip(&["address", "del", &network, "dev", &peer]);
        ip(&["address", "add", &network, "dev", BRIDGE]);
        ip(&["link", "set", BRIDGE, "up"]);
        // Disable checksum offload: no device on the path computes the checksum.
        let offload = ["tx", "off", "tso", "off", "gso", "off", "gro", "off"];
        for (mut ethtool, interface) in [
            (link.at_receiver("ethtool"), BRIDGE),
            (link.at_receiver("ethtool"), &peer),
            (link.at_sender("ethtool"), &link.interface),
        ] {
            run(ethtool.args(["-K", interface]).args(offload));
        }
        switch
    }

    fn configure(&self, arguments: &[&str]) {
        let database = format!("--db={}", self.address());
        run(self.command(Command::new("ovs-vsctl")).args([&database, "--timeout=5"]).args(arguments));
    }

    fn daemon(&mut self, name: &str, arguments: &[&str]) {
        let mut command = self.command(self.link.at_receiver(name));
        let control = format!("--unixctl={}", self.path(&format!("{name}.ctl")).display());
        command.args(arguments).args(["--no-chdir", "-vconsole:off", "-vsyslog:off", &control]);
        self.daemons.insert(0, start(&mut command));
    }

    fn command(&self, mut command: Command) -> Command {
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(variable, self.folder.path());
        }
        command
    }

    fn address(&self) -> String {
        format!("unix:{}", self.path("db.sock").display())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Exports the traffic of the bridge, configured by a row of a database table. Waits for `silence` after the last record.
/// Returns the flows on the wire and the stored rows.
fn export(test: &str, table: &str, settings: &[&str], silence: Duration) -> Option<(Counts, Kept)> {
    let programs = [("ovs-vswitchd", "--version"), ("ovsdb-server", "--version"), ("ethtool", "--version")];
    let (link, _alone) = link(test, &programs)?;
    if !Path::new(SCHEMA).exists() {
        return crate::live::skip(test, "needs the schema of Open vSwitch's database");
    }
    let switch = OpenVswitch::start(&link);
    let mut collector = Collector::start(link.at_receiver(THALWEG));
    let target = format!("targets=\"{ADDRESS}\"");
    let reference = format!("{table}=@exporter");
    let bridge = ["set", "bridge", BRIDGE, &reference, "--", "--id=@exporter", "create", table, &target];
    switch.configure(&[&bridge[..], settings].concat());
    let watch = Watch::start(&link, &[]);
    traffic(&link);
    let wire = on_the_wire(&watch.interrupt());
    collector.wait(wire.len() as u64, silence);
    let kept = collector.end();
    drop(switch);
    Some((wire, kept))
}

/// Longer than the active timeout of 1 s plus a round of its revalidators.
const EXPORT_SILENCE: Duration = Duration::from_secs(2);

#[test]
fn open_vswitch_netflow_matches_the_wire() {
    let test = "open_vswitch_netflow_matches_the_wire";
    let Some((wire, kept)) = export(test, "netflow", &["active_timeout=1"], EXPORT_SILENCE) else { return };
    let mut framed = wire;
    for [packets, octets] in framed.values_mut() {
        *octets += *packets * ETHERNET_HEADER;
    }
    // It numbers messages where NetFlow v5 numbers flows, so reported losses are not real.
    assert_eq!(kept.counts("netflow5"), framed);
}

#[test]
fn open_vswitch_ipfix_matches_the_wire_per_direction() {
    let settings = ["sampling=1", "cache_active_timeout=1", "cache_max_flows=1000", "obs_domain_id=7"];
    let test = "open_vswitch_ipfix_matches_the_wire_per_direction";
    let Some((wire, kept)) = export(test, "ipfix", &settings, EXPORT_SILENCE) else { return };
    assert_eq!(kept.counts_of_direction("ipfix", 0), wire, "into the bridge");
    assert_eq!(kept.counts_of_direction("ipfix", 1), wire, "out of the bridge");
    // Its sequence numbers include the current record; IPFIX counts only previous ones (RFC 7011 section 3.1).
    assert!(kept.sequence_losses() <= 1, "{}", kept.summary);
}

#[test]
fn open_vswitch_sflow_samples_are_on_the_wire() {
    let settings = ["agent=lo", "sampling=1", "polling=0", "header=128"];
    let test = "open_vswitch_sflow_samples_are_on_the_wire";
    let Some((wire, kept)) = export(test, "sflow", &settings, EXPORT_SILENCE) else { return };
    assert_eq!(kept.counts("sflow5"), wire);
    assert_eq!(
        (kept.rows.len() as u64, kept.sequence_losses()),
        (packets(&wire), 0),
        "one record per packet"
    );
}
