"""nfdump's filter language, compiled to Ibis expressions for every engine.

    src net 10.0.0.0/8 and (dst port 443 or proto udp) and bytes > 1m

Grammar (words in either case; `#` begins a comment; `and` binds more tightly than `or`, `not` most tightly):

    filter    = [ or ]
    or        = and { ("or" | "||") and }
    and       = not { ("and" | "&&") not }
    not       = ("not" | "!") not | "(" or ")" | primitive
    primitive = "any"
              | "ipv4" | "inet" | "ipv6" | "inet6"
              | "proto" (NAME | NUMBER)
              | [end] ("ip" | "host") (ADDRESS | "in" "[" (ADDRESS | PREFIX) ... "]")
              | [end] "net" (PREFIX | ADDRESS NETMASK)
              | [end] "port" ([compare] NUMBER | "in" "[" NUMBER ... "]")
              | [end] "as" ([compare] NUMBER | "in" "[" NUMBER ... "]")
              | [end] "mask" NUMBER
              | ["in" | "out"] "if" NUMBER
              | ("next" | "router") "ip" (ADDRESS | "in" "[" (ADDRESS | PREFIX) ... "]")
              | "flags" (LETTERS | [compare] NUMBER)
              | ["src"] "tos" [compare] NUMBER
              | ["src"] "vlan" NUMBER
              | ("icmp-type" | "icmp-code") NUMBER
              | ("flowdir" | "dir") ("ingress" | "egress" | NUMBER)
              | "observation" "domain" "id" NUMBER
              | ("packets" | "bytes" | "flows" | "duration" | "pps" | "bps" | "bpp") [compare] NUMBER
    end       = "src" | "dst" | "src" "or" "dst" | "src" "and" "dst"        (none: "src or dst")
    compare   = "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "eq" | "lt" | "gt" | "le" | "ge"    (none: "=")
    NUMBER    = decimal with an optional k, m, g or t (10^3 to 10^12), or hexadecimal after "0x"
    LETTERS   = of "FSRPAU" those TCP flags that must all be set, or "X" for the six; after "not", none of them may be

Numbers in a list are parted by blanks or commas.

What is compared:

- `bytes` and `packets` scaled by the sampling interval, as nfdump's collector keeps them;
- `duration` in milliseconds; `bps`, `pps` and `bpp` (bits and packets a second, bytes a packet) rounded down, and 0 where
  there is nothing to divide by;
- `flows` is 1 for each row;
- `flags` only of TCP.

Where this is not nfdump: ports of ICMP are 0 (its type and code are `icmp-type` and `icmp-code`), an IPv4 address is no IPv6
address (`net ::/0` finds IPv6 alone), `as` needs no geo database, and host names are not looked up. What our records do not keep
(MAC addresses, MPLS labels, NAT events, `out` counters) is refused with the place in the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .parser import parse
from .terms import Term
from .tokens import FilterError, FilterSyntaxError

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["FilterError", "FilterSyntaxError", "Term", "compile_filter", "parse"]


def compile_filter(text: str, table: ir.Table) -> ir.BooleanValue:
    """Compiles `text` to a condition on the rows of `table`, which has the columns of flow records.

    Raises:
        FilterSyntaxError: If `text` is not in the language.
        FilterError: If it asks for a column that `table` lacks.
    """
    from .expression import expression

    return expression(parse(text), table)
