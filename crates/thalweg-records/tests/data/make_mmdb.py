"""Makes the databases of the tests with mmdb_writer (PyPI), which is not ours: `python make_mmdb.py` beside this file.

The networks are those for documentation (RFC 5737, RFC 3849).
"""

from pathlib import Path

from mmdb_writer import MMDBWriter
from netaddr import IPSet

HERE = Path(__file__).parent


def write(name: str, kind: str, entries: dict[str, dict[str, object]]) -> None:
    writer = MMDBWriter(ip_version=6, database_type=kind, ipv4_compatible=True, int_type="u32")
    for network, entry in entries.items():
        writer.insert_network(IPSet([network]), entry)
    writer.to_db_file(str(HERE / name))


write(
    "country.mmdb",
    "GeoLite2-Country",
    {
        "198.51.100.0/24": {"country": {"iso_code": "DE", "names": {"en": "Germany"}}, "registered_country": {"iso_code": "US"}},
        "203.0.113.128/25": {"country": {"iso_code": "FR"}},
        "2001:db8:1::/48": {"country": {"iso_code": "JP"}},
        "10.0.0.0/8": {"country": {"iso_code": "XX"}},
    },
)
write(
    "asn.mmdb",
    "GeoLite2-ASN",
    {
        "198.51.100.0/24": {"autonomous_system_number": 64496, "autonomous_system_organization": "Example"},
        "2001:db8:1::/48": {"autonomous_system_number": 64497, "autonomous_system_organization": "Example 6"},
    },
)
write(
    "ipinfo.mmdb",
    "ipinfo lite",
    {
        "198.51.100.0/24": {"country": "NL", "asn": "AS64500", "as_name": "Example"},
        "203.0.113.0/24": {"country": "Brazil", "country_code": "BR"},
    },
)
