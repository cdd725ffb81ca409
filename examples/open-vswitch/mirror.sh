#!/usr/bin/env bash
# Monitors every port of an Open vSwitch with a sketch, through a mirror port:
#
#   sudo examples/open-vswitch/mirror.sh userspace|dpdk|vhost [thalweg watch OPTIONS]
#
# Two hosts, which are network namespaces, ping each other through a switch in a third one. `userspace` runs Debian's
# openvswitch-switch with its userspace datapath, `dpdk` openvswitch-switch-dpdk with DPDK ports. Both mirror to an AF_PACKET port; `vhost` is
# `dpdk` with a vhost-user port, for a `thalweg` with the feature dpdk. Standard output has the JSON lines of `thalweg watch`. Nothing else of the machine is touched, and everything is removed at the end. THALWEG is the program (thalweg).
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

readonly DATAPATH=${1:-} SCHEMA=/usr/share/openvswitch/vswitch.ovsschema
readonly THALWEG=${THALWEG:-thalweg} PINGS=${PINGS:-50} BRIDGE=br0
# Where Debian has the switch with DPDK. `update-alternatives` would make it the switch of the whole machine.
readonly DPDK_SWITCH=/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk

case $DATAPATH in
  userspace) switch_program=ovs-vswitchd ;;
  dpdk | vhost) switch_program=$DPDK_SWITCH ;;
  *)
    echo "usage: mirror.sh userspace|dpdk|vhost [thalweg watch OPTIONS]" >&2
    exit 2
    ;;
esac
shift

folder=$(mktemp -d)
readonly NAME="tw$$"
readonly SWITCH=$NAME-switch HOST1=$NAME-host1 HOST2=$NAME-host2
daemons=()
watch=

clean_up() {
  # shellcheck disable=SC2086 # one or none
  kill $watch "${daemons[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  for namespace in "$HOST1" "$HOST2" "$SWITCH"; do ip netns delete "$namespace" 2>/dev/null || true; done
  rm -rf "$folder" "/run/dpdk/$NAME"
}
trap clean_up EXIT

inside() { # NAMESPACE COMMAND...
  ip netns exec "$@"
}

wait_for() { # WHAT COMMAND...: at most 20 s
  local what=$1
  shift
  for _ in $(seq 200); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  echo "mirror.sh: waited 20 s until $what" >&2
  tail -n 5 "$folder"/*.log >&2 || true
  exit 1
}

# --- The hosts, the links, and the link of the mirror port ---------------------------------------------------

for namespace in "$SWITCH" "$HOST1" "$HOST2"; do
  ip netns add "$namespace"
  inside "$namespace" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
  ip -n "$namespace" link set lo up
done
for number in 1 2; do
  host=$NAME-host$number
  ip link add "port$number" netns "$SWITCH" type veth peer name eth0 netns "$host"
  ip -n "$host" address add "192.0.2.$number/24" dev eth0
  ip -n "$host" link set eth0 up
  ip -n "$SWITCH" link set "port$number" up
  # Frames that pass through user space need their checksums.
  inside "$host" ethtool -K eth0 tx off >/dev/null
done
ip link add mirror netns "$SWITCH" type veth peer name monitor netns "$SWITCH"
ip -n "$SWITCH" link set mirror up
ip -n "$SWITCH" link set monitor up

# --- Open vSwitch, in a folder of its own -----------------------------------------------------------------------

export OVS_RUNDIR=$folder OVS_LOGDIR=$folder OVS_DBDIR=$folder OVS_SYSCONFDIR=$folder
database=unix:$folder/db.sock
configure() { ovs-vsctl --db="$database" --timeout=60 "$@"; }

ovsdb-tool create "$folder/conf.db" $SCHEMA
# `ip netns exec` in the background, not `inside`: $! is to be the program, not a shell around it.
ip netns exec "$SWITCH" ovsdb-server "$folder/conf.db" --remote="punix:$folder/db.sock" --unixctl="$folder/db.ctl" \
  --log-file="$folder/db.log" -vconsole:off -vsyslog:off &
daemons+=($!)
wait_for "the database listens" configure --no-wait init
if [ "$DATAPATH" != userspace ]; then
  configure --no-wait set Open_vSwitch . other_config:dpdk-init=true \
    other_config:dpdk-extra="--no-huge --legacy-mem -m 1024 --no-pci --file-prefix=$NAME"
fi
ip netns exec "$SWITCH" "$switch_program" "$database" --disable-system --unixctl="$folder/switch.ctl" \
  --log-file="$folder/switch.log" -vconsole:off -vsyslog:off &
daemons+=($!)
configure add-br $BRIDGE -- set bridge $BRIDGE datapath_type=netdev
for number in 1 2; do
  case $DATAPATH in
    userspace) configure add-port $BRIDGE "port$number" ;;
    *)
      configure add-port $BRIDGE "port$number-dpdk" -- set interface "port$number-dpdk" type=dpdk \
        options:dpdk-devargs="net_af_packet$number,iface=port$number"
      ;;
  esac
done
# The output port carries mirrored packets alone.
source=monitor
output=()
if [ "$DATAPATH" = vhost ]; then
  output=(-- set interface mirror type=dpdkvhostuserclient options:vhost-server-path="$folder/mirror.sock")
  source=dpdk:net_virtio_user0,path=$folder/mirror.sock,server=1
fi
configure add-port $BRIDGE mirror "${output[@]}" -- \
  --id=@output get port mirror -- \
  --id=@all create mirror name=all select-all=true output-port=@output -- \
  set bridge $BRIDGE mirrors=@all >/dev/null

# --- Thalweg on the other end of the mirror port, and the traffic -----------------------------------------------

wait_for "the hosts reach each other" inside "$HOST1" ping -c 1 -W 1 192.0.2.2
ip netns exec "$SWITCH" "$THALWEG" watch --json "$@" "$source" >"$folder/watch.json" 2>"$folder/watch.log" &
watch=$!
is_watched() {
  if [ "$DATAPATH" = vhost ]; then
    grep -q "'$folder/mirror.sock' changed to 'enabled'" "$folder/switch.log"
    return
  fi
  # The first line is a heading. The switch has sockets for its own ports.
  local index
  index=$(inside "$SWITCH" cat /sys/class/net/monitor/ifindex)
  inside "$SWITCH" awk -v index_of="$index" 'NR > 1 && $5 == index_of { found = 1 } END { exit !found }' /proc/net/packet
}
wait_for "thalweg watch captures" is_watched
sleep 0.3
inside "$HOST1" ping -q -c "$PINGS" -i 0.01 -W 1 192.0.2.2 >"$folder/ping.log"
sleep 0.3
kill $watch
status=0
wait $watch || status=$?
watch=
cat "$folder/watch.log" >&2
cat "$folder/watch.json"
grep transmitted "$folder/ping.log" >&2
exit $status
