#!/usr/bin/env bash
# Records examples/two-hosts.pcap: a client and a server, each a network namespace, joined by a veth pair.
#
#   sudo examples/record.sh [OUTPUT]
# Creates namespaces, servers, keys and files for the recording and removes them at the end, even if a step fails.
# No packet leaves the namespaces. Addresses are documentation prefixes (RFC 5737, RFC 3849) and hardware addresses are
# locally administered, so that the capture reveals nothing about the machine.
set -euo pipefail

readonly OUTPUT=${1:-$(dirname "$0")/two-hosts.pcap}
readonly SNAP_LENGTH=96          # bytes per frame: Ethernet + IPv6 + TCP with timestamps is 86
readonly LINK_RATE=200mbit       # each direction is shaped to this
readonly CLIENT=twl-$$-client SERVER=twl-$$-server
readonly CLIENT4=192.0.2.1 SERVER4=192.0.2.2
readonly CLIENT6=2001:db8::1 SERVER6=2001:db8::2

fail() { echo "record.sh: $*" >&2; exit 1; }
step() { echo "==> $*"; }

# --- Requirements ----------------------------------------------------------------------------------------

[ "$(uname -s)" = Linux ] || fail "needs Linux (network namespaces)"
[ "$(id -u)" -eq 0 ] || fail "needs root to create network namespaces: sudo $0"

PATH=$PATH:/usr/sbin:/sbin
missing=
while read -r tool package; do
  command -v "$tool" >/dev/null && continue
  [[ " $missing " == *" $package "* ]] || missing+=" $package"
done <<'TOOLS'
ip iproute2
tc iproute2
ethtool ethtool
tcpdump tcpdump
ping iputils-ping
iperf3 iperf3
curl curl
python3 python3
dnsmasq dnsmasq-base
dig bind9-dnsutils
sshd openssh-server
ssh-keyscan openssh-client
TOOLS
[ -z "$missing" ] || fail "missing tools; on Debian: apt-get install$missing"

# --- Cleaning up ------------------------------------------------------------------------------------------

scratch=$(mktemp -d)
made_run_sshd=
cleanup() {
  local namespace process
  for namespace in "$CLIENT" "$SERVER"; do
    for process in $(ip netns pids "$namespace" 2>/dev/null); do kill "$process" 2>/dev/null || true; done
    ip netns delete "$namespace" 2>/dev/null || true
  done
  wait 2>/dev/null || true
  [ -z "$made_run_sshd" ] || rmdir /run/sshd
  rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

on_client() { ip netns exec "$CLIENT" "$@"; }
on_server() { ip netns exec "$SERVER" "$@"; }

# --- Two hosts and a link ---------------------------------------------------------------------------------

step "two namespaces and a link of $LINK_RATE between them"
ip netns add "$CLIENT"
ip netns add "$SERVER"
ip link add veth0 netns "$CLIENT" address 02:00:00:00:00:01 type veth \
  peer name veth0 netns "$SERVER" address 02:00:00:00:00:02

set_up() { # NAMESPACE IPV4 IPV6
  local namespace=$1 ipv4=$2 ipv6=$3
  ip -n "$namespace" link set lo up
  ip -n "$namespace" address add "$ipv4/24" dev veth0
  ip -n "$namespace" address add "$ipv6/64" dev veth0 nodad
  # Frames as on a wire: no segment larger than the MTU, checksums computed in software.
  ip netns exec "$namespace" ethtool --offload veth0 tso off gso off gro off tx off rx off >/dev/null
  ip netns exec "$namespace" tc qdisc add dev veth0 root tbf rate "$LINK_RATE" burst 16kb latency 20ms
  ip -n "$namespace" link set veth0 up
}
set_up "$CLIENT" "$CLIENT4" "$CLIENT6"
set_up "$SERVER" "$SERVER4" "$SERVER6"

# --- Servers ----------------------------------------------------------------------------------------------

wait_for_port() { # TCP PORT, until something listens on it
  for _ in {1..100}; do
    on_server ss --listening --tcp --no-header "sport = :$1" | grep -q . && return
    sleep 0.05
  done
  fail "nothing listens on port $1: $(cat "$scratch"/*.log)"
}

step "servers: HTTP, DNS, SSH, iperf3"
mkdir "$scratch/www"
head --bytes 4K /dev/urandom >"$scratch/www/page"
head --bytes 100K /dev/urandom >"$scratch/www/picture"
head --bytes 1M /dev/urandom >"$scratch/www/archive"
on_server python3 -m http.server 80 --bind :: --directory "$scratch/www" &>"$scratch/http.log" &

on_server dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file --no-resolv --no-hosts \
  --no-daemon --interface=veth0 --local=/example/ \
  --host-record="client.example,$CLIENT4,$CLIENT6" --host-record="server.example,$SERVER4,$SERVER6" \
  &>"$scratch/dns.log" &

mkdir /run/sshd 2>/dev/null && made_run_sshd=1 # sshd refuses to start without it
ssh-keygen -q -t ed25519 -N '' -C server -f "$scratch/host_key"
printf 'HostKey %s\nPidFile none\nUseDNS no\nUsePAM no\nPasswordAuthentication no\n' "$scratch/host_key" \
  >"$scratch/sshd_config"
on_server "$(command -v sshd)" -D -e -f "$scratch/sshd_config" &>"$scratch/ssh.log" &

on_server iperf3 --server &>"$scratch/iperf3.log" &

for port in 80 53 22 5201; do wait_for_port "$port"; done

# --- Recording --------------------------------------------------------------------------------------------

step "recording about 13 s"
# Not through on_client: $! must be tcpdump itself, not a subshell around it.
ip netns exec "$CLIENT" tcpdump --interface veth0 --snapshot-length "$SNAP_LENGTH" \
  --time-stamp-precision=nano --buffer-size 8192 -Z root -w "$scratch/capture.pcap" 2>"$scratch/tcpdump.log" &
tcpdump=$!
for _ in {1..100}; do grep -q 'listening on' "$scratch/tcpdump.log" && break; sleep 0.05; done
grep -q 'listening on' "$scratch/tcpdump.log" || fail "tcpdump: $(cat "$scratch/tcpdump.log")"
sleep 0.2

fetch() { on_client curl --silent --show-error --fail --output /dev/null "$@" || fail "curl $*"; }
look_up() { on_client dig +short +tries=1 "@$1" "${@:2}" >/dev/null || fail "dig $*"; }
measure() { on_client iperf3 --client "$@" >/dev/null || fail "iperf3 $*"; }

on_client ping -q -i 0.5 -c 24 "$SERVER4" &>/dev/null &
ping4=$!
on_client ping -q -6 -i 1 -c 12 "$SERVER6" &>/dev/null &
ping6=$!
sleep 0.7

look_up "$SERVER4" server.example A
look_up "$SERVER4" server.example AAAA
fetch "http://$SERVER4/page"
fetch "http://$SERVER4/picture"
sleep 0.5
look_up "$SERVER6" client.example AAAA
fetch "http://[$SERVER6]/page"
fetch "http://[$SERVER6]/picture"
sleep 0.3
on_client ssh-keyscan -t ed25519 "$SERVER4" &>/dev/null || fail "ssh-keyscan"
sleep 0.8

measure "$SERVER4" --udp --bitrate 5M --time 2                     # steady, a tenth of the threshold
sleep 0.4
measure "$SERVER6" --reverse --bitrate 35M --length 8K --bytes 1M  # a near miss
sleep 1.2
measure "$SERVER4" --bitrate 120M --length 16K --bytes 6M          # a cheetah
sleep 1.3
fetch "http://[$SERVER6]/archive"                                  # a cheetah shorter than T
sleep 0.5
look_up "$SERVER6" +tcp nowhere.example A
fetch "http://$SERVER4/page"
wait "$ping4" "$ping6"

sleep 1.2 # the kernel delivers a block of its ring when it is full, or within a second
kill -TERM "$tcpdump"
wait "$tcpdump" || fail "tcpdump: $(cat "$scratch/tcpdump.log")"
grep -q '^0 packets dropped by kernel' "$scratch/tcpdump.log" || fail "tcpdump lost packets; record again"

mv "$scratch/capture.pcap" "$OUTPUT"
chmod 644 "$OUTPUT"
step "$OUTPUT: $(stat --format %s "$OUTPUT") bytes"
