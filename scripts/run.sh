#!/bin/sh
# Demonstrates rerouting: runs the daemon on an emulated network, then summarises what it did.
#
#   scripts/run.sh PROGRAM [SECONDS]
set -eu

program=$1
seconds=${2:-12}
config=examples/rerouting/thalweg.toml
log=$(mktemp)
trap 'rm -f "$log"' EXIT

cat <<EOT
==> $program serve -c $config, for $seconds s

The daemon emulates a fat tree of 20 switches and 16 hosts, 100 times slower than real time. A collector reads the monitor
port of each switch. When flows collide on a link, the controller reroutes one of them. Watch it in a browser:

  http://127.0.0.1:9477

or in another terminal:

  $program top
  curl http://127.0.0.1:9477/v1/control

EOT

# Shows a counter on a terminal, errors, and nothing else.
# shellcheck disable=SC2016 # these are awk fields
progress='
  !/^[0-9][0-9][0-9][0-9]-/ || / ERROR / { print; fflush(); next }
  / rerouted / && tty { printf "\r%d flows rerouted", ++n; fflush() }
  END { if (n) printf "\r%30s\r", "" }'

tty=0
[ ! -t 1 ] || tty=1
# Ctrl-C stops the daemon. Its last log lines still count.
timeout --foreground "$seconds" "$program" serve -c "$config" 2>&1 |
  (trap '' INT && tee "$log" | awk -v tty=$tty "$progress")

# shellcheck disable=SC2016
awk '
  function field(name,   rest) {
    if (!match($0, " " name "=[^ ]*")) return ""
    rest = substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2)
    gsub(/"/, "", rest)
    return rest
  }
  / rerouted / {
    link = field("cause")
    if (!(link in times)) links++
    if (++times[link] > times[worst]) worst = link
    if (example == "") {
      example = field("src") " > " field("dst") " moved from tree " field("from_tree") " to tree " field("tree")
      gain = "expected " field("expected") " instead of " field("before")
    }
  }
  / controller stopped / {
    n = field("rerouted"); ok = field("confirmed"); late = field("timed_out") + field("refused")
    median = field("median"); p99 = field("p99")
  }
  END {
    if (n == "") { print "The daemon did not finish. See the messages above."; exit 1 }
    printf "congested   %d links", links
    if (times[worst] > 1) printf ", most often %s (%d reroutes)", worst, times[worst]
    printf "\n"
    printf "rerouted    %d flows: %d confirmed on the new path, %d failed", n, ok, late
    if (n > ok + late) printf ", %d still open", n - ok - late
    printf "\n"
    printf "reaction    %s in the median and %s at the 99th percentile, from decision to first packet on the new path\n", median, p99
    if (example != "") printf "example     %s: %s\n", example, gain
  }' "$log"
