"""Names of IP protocols, as IANA assigns the numbers."""

NAMES = {
    1: "icmp",
    2: "igmp",
    4: "ipip",
    6: "tcp",
    8: "egp",
    17: "udp",
    33: "dccp",
    41: "ipv6",
    46: "rsvp",
    47: "gre",
    50: "esp",
    51: "ah",
    58: "icmp6",
    88: "eigrp",
    89: "ospf",
    103: "pim",
    112: "vrrp",
    115: "l2tp",
    132: "sctp",
    136: "udplite",
}
"""By number, in lower case."""

NUMBERS = {name: number for number, name in NAMES.items()} | {"icmpv6": 58, "ipv6-icmp": 58}
"""By name, in lower case."""
