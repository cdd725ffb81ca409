#!/usr/bin/python3
"""Hosts at one Linux bridge by Mininet, with rates by TCLink, for `thalweg-bench emulation-peers`.

Prints a line of JSON with the processes whose network namespaces are those of the hosts, and the interfaces of the switch; then waits until its input ends, and removes the network. Run it in a network namespace of its own: the bridge is in the
current one.

Mininet limits the queue by netem (`max_queue_size`). Where the kernel has no netem, the HTB class keeps its default queue, and this script
sets a pfifo of the same length below it.
"""

import argparse
import json
import sys

from mininet.link import TCLink
from mininet.log import setLogLevel
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge

# What Mininet's TCLink can set, each for a link of its own.
PARAMETERS = {
    "bw, HTB": {"bw": 100},
    "bw, TBF": {"bw": 100, "use_tbf": True},
    "bw, HFSC": {"bw": 100, "use_hfsc": True},
    "max_queue_size": {"bw": 100, "max_queue_size": 1024},
    "delay": {"delay": "1ms"},
    "jitter": {"delay": "1ms", "jitter": "100us"},
    "loss": {"loss": 1},
    "enable_red": {"bw": 100, "enable_red": True},
    "enable_ecn": {"bw": 100, "enable_ecn": True},
}


def probe():
    """Sets each parameter of TCLink on a link of its own. Returns the message of the kernel for each, empty where it works."""
    network = Mininet(controller=None, switch=LinuxBridge)
    left, right = network.addHost("left", ip=None), network.addHost("right", ip=None)
    messages = {}
    for name, parameters in PARAMETERS.items():
        link = network.addLink(left, right, cls=TCLink)
        result = link.intf1.config(**parameters)
        outputs = (result or {}).get("tcoutputs") or []
        # HTB warns of a large quantum, and works.
        errors = [line.strip() for output in outputs for line in output.splitlines() if "Error" in line]
        messages[name] = errors[0] if errors else ""
    network.stop()
    return messages


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--mbps", type=float, default=100)
    parser.add_argument("--queue", type=int, default=1024, help="packets")
    parser.add_argument(
        "--wire",
        action="store_true",
        help="segments of one packet, and 24 bytes of framing per packet in the rate",
    )
    parser.add_argument("--probe", action="store_true", help="print which parameters of TCLink work, and end")
    options = parser.parse_args()
    setLogLevel("critical")
    if options.probe:
        json.dump(probe(), sys.stdout)
        return

    network = Mininet(controller=None, switch=LinuxBridge)
    switch = network.addSwitch("s1")
    links = []
    for number in range(1, options.hosts + 1):
        host = network.addHost(f"h{number}", ip=f"10.0.0.{number}/24", mac=f"02:00:00:00:00:{number:02x}")
        links.append(network.addLink(host, switch, cls=TCLink))
    network.start()
    try:
        for link in links:
            for interface in (link.intf1, link.intf2):
                interface.config(bw=options.mbps, use_htb=True, max_queue_size=options.queue)
                limit(interface, options)
        hosts = {host.name: host.pid for host in network.hosts}
        ports = [link.intf2.name for link in links]
        json.dump({"hosts": hosts, "ports": ports}, sys.stdout)
        sys.stdout.write("\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        network.stop()


def limit(interface, options):
    """Sets the queue of an interface below its HTB class, and with --wire the framing and the size of segments."""
    node, name = interface.node, interface.name
    if "netem" not in node.cmd(f"tc qdisc show dev {name}"):
        check(node, f"tc qdisc add dev {name} parent 5:1 handle 10: pfifo limit {options.queue}")
    if options.wire:
        # 24 bytes: preamble, checksum and gap. HTB counts the header of Ethernet itself.
        rate = f"rate {options.mbps}Mbit burst 15k overhead 24 mpu 84"
        check(node, f"tc class change dev {name} parent 5: classid 5:1 htb {rate}")
        check(node, f"ethtool -K {name} tso off gso off gro off")


def check(node, command):
    """Runs a command. Raises RuntimeError with what it printed if it failed."""
    *printed, code = node.cmd(f"{command}; echo $?").split()
    if code != "0":
        raise RuntimeError(f"{command}: {' '.join(printed)}")


if __name__ == "__main__":
    main()
