"""nfdump's filter language, compiled to Ibis expressions for every engine.

    src net 10.0.0.0/8 and (dst port 443 or proto udp) and bytes > 1m

Grammar (words in either case; `#` starts a comment; `and` binds more tightly than `or`, `not` most tightly):

    filter    = [ or ]
    or        = and { ("or" | "||") and }
    and       = not { ("and" | "&&") not }
    not       = ("not" | "!") not | "(" or ")" | primitive
    primitive = "any"
              | "ipv4" | "inet" | "ipv6" | "inet6"
              | "proto" (NAME | NUMBER)
              | [end] ("ip" | "host") (ADDRESS | PREFIX | "in" "[" (ADDRESS | PREFIX) ... "]")
              | [end] "net" (PREFIX | ADDRESS NETMASK)
              | [end] "port" ([compare] NUMBER | "in" "[" NUMBER ... "]")
              | [end] "as" ([compare] NUMBER | "in" "[" NUMBER ... "]")
              | [end] "mask" NUMBER
              | ["in" | "out"] "if" (NUMBER | "name" TEXT)
              | ("next" | "bgpnext" | "router") "ip" (ADDRESS | PREFIX | "in" "[" (ADDRESS | PREFIX) ... "]")
              | "router" "name" TEXT
              | ("next" | "prev") "as" ([compare] NUMBER | "in" "[" NUMBER ... "]")
              | "flags" (LETTERS | [compare] NUMBER)
              | ["src" | "dst"] "tos" [compare] NUMBER                         (default: "src")
              | [end] "vlan" NUMBER
              | "customer" "vlan" NUMBER
              | ["in" | "out"] [end] "mac" MAC
              | [end] "geo" COUNTRY
              | ["min" | "max"] "ttl" [compare] NUMBER
              | "fwdstat" ("unknown" | "forwarded" | "dropped" | "consumed" | [compare] NUMBER)
              | "mpls" ("label" N | "exp" N | "eos") [compare] NUMBER
              | "mpls" "any" NUMBER
              | ["ingress" | "egress"] "vrf" (NUMBER | "name" TEXT)
              | ("icmp-type" | "icmp-code") NUMBER
              | ("flowdir" | "dir") ("ingress" | "egress" | NUMBER)
              | "observation" ("domain" | "point") "id" NUMBER
              | ["in"] ("packets" | "bytes") [compare] NUMBER
              | ("flows" | "duration" | "pps" | "bps" | "bpp") [compare] NUMBER
    end       = "src" | "dst" | "src" "or" "dst" | "src" "and" "dst"        (default: "src or dst")
    compare   = "=" | "==" | "!=" | "<" | "<=" | ">" | ">=" | "eq" | "lt" | "gt" | "le" | "ge"    (default: "=")
    NUMBER    = decimal with an optional k, m, g or t (10^3 to 10^12), or hexadecimal after "0x"
    PREFIX    = ADDRESS "/" bits; trailing zero octets of an IPv4 prefix may be left out: 172.16/12
    LETTERS   = TCP flags of "FSRPAU" that must all be set, or "X" for the six; after "not", none of them may be set

TEXT is a word, or a text in quotes if it has blanks or signs; `*` at its end stands for any rest. Texts are compared by case.
N is a position in the stack of MPLS labels, 1 to 10, written without a blank: `label1`.

Numbers in a list are separated by blanks or commas. Where a term takes no comparison, a `=` is accepted.

Values:

- `bytes` and `packets` are scaled by the sampling interval, as nfdump's collector stores them.
- `duration` is in milliseconds. `bps`, `pps` and `bpp` (bits and packets per second, bytes per packet) are rounded down, and
  0 where the divisor is 0.
- `flows` is 1 for each record.
- `flags` applies to TCP only.

`docs/reference/flow-filter.md` lists the terms of every view and the differences from nfdump. The live views and the HTTP API
read the same language (`crates/thalweg-measure/src/filter`). Both pass `crates/thalweg-measure/tests/filter-cases.toml`.
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
        FilterError: If it needs a column that `table` does not have.
    """
    from .expression import expression

    return expression(parse(text), table)
