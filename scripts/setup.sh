#!/usr/bin/env bash
# Makes ready what one goal of the Makefile needs:  scripts/setup.sh run|python|test|bench|fuzz|lint
#
# A missing Debian package is installed when that is possible (root, apt-get); otherwise this says what is
# missing, what will be skipped for it, and the command that installs it. Exits 1 only if the goal cannot be
# reached without it. Says one line and asks no package server when nothing is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH=$PATH:/usr/sbin:/sbin # where Debian keeps ip, ethtool and tcpdump; not on every user's path

goal=${1:-}
required=() optional=() # PROBE|PACKAGE|REASON of what is missing
packages=()             # and the packages that would bring it
failed=

# --- What is there ----------------------------------------------------------------------------------------

# need PROBE PACKAGE REASON: the goal cannot be reached without it.
# want PROBE PACKAGE LOSS:   without it, LOSS.
need() { present "$1" || { required+=("$1|$2|$3"); packages+=("$2"); }; }
want() { present "$1" || { optional+=("$1|$2|$3"); packages+=("$2"); }; }

present() { # a program, a shared library named libNAME.so, what pkg-config knows as NAME.pc, or a module NAME.py
  case $1 in
    # Packages install for the system's Python, which need not be the first of the path.
    *.py) python3 -c "import ${1%.py}" 2>/dev/null || /usr/bin/python3 -c "import ${1%.py}" 2>/dev/null ;;
    *.pc) pkg-config --exists "${1%.pc}" 2>/dev/null ;;
    lib*.so) ldconfig -p 2>/dev/null | grep "^[[:space:]]*$1" >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
  esac
}

need_cargo() {
  local wanted found
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  if ! found=$(cargo --version 2>/dev/null | cut -d' ' -f2); then
    lacking "cargo is missing: install Rust $wanted or newer, as https://rustup.rs says"
  elif [ "$(printf '%s\n' "$wanted" "$found" | sort -V | head -n1)" != "$wanted" ]; then
    lacking "cargo is $found, and Thalweg needs $wanted or newer: rustup update stable"
  fi
  need cc build-essential "builds the C code of the zstd crate"
}

need_cargo_part() { # fmt|clippy COMPONENT
  cargo "$1" --version >/dev/null 2>&1 || lacking "cargo $1 is missing: rustup component add $2"
}

lacking() { echo "setup: $*" >&2; failed=1; }

# --- What each goal needs ---------------------------------------------------------------------------------

need_cargo
case $goal in
  run) want iperf3 iperf3 "thalweg lab run has nothing to send with" ;;
  python) need ensurepip.py python3-venv "makes the environment that the package is installed into" ;;
  lint)
    need_cargo_part fmt rustfmt
    need_cargo_part clippy clippy
    want shellcheck shellcheck "the shell scripts are not checked"
    ;;
  test)
    need_cargo_part fmt rustfmt
    need_cargo_part clippy clippy
    want ip iproute2 "tests on live interfaces are skipped"
    want ethtool ethtool "tests on live interfaces run with the offloads as they are, labs of Open vSwitch are not tested"
    want ping iputils-ping "tests on live interfaces that ping are skipped"
    want iperf3 iperf3 "the live iperf3 test is skipped"
    want tcpdump tcpdump "tests that compare with tcpdump are skipped"
    want libpcap.so libpcap0.8 "tests of capture filters are skipped"
    want tshark tshark "tests that compare with tshark and capinfos are skipped"
    want snmpd snmpd "tests with an SNMP agent are skipped"
    want nfdump nfdump "tests that compare with nfdump are skipped"
    want make build-essential "tests with Kafka are skipped"
    want kcat kcat "tests that compare with kcat are skipped"
    want tmux tmux "tests of the live view are skipped"
    want clang clang "the lab's switch program is not compared with its source"
    want ovs-vswitchd openvswitch-switch "tests with Open vSwitch are skipped"
    want softflowd softflowd "tests with softflowd are skipped"
    want pmacctd pmacct "tests with pmacct are skipped"
    want vtysh frr "tests with a BGP router are skipped"
    want ensurepip.py python3-venv "the Python package is not tested"
    want java openjdk-17-jre-headless "tests on Spark are skipped"
    # Debian 12 has an older Node.js than the tools of the dashboard need, and hundreds of packages with npm.
    if command -v npm >/dev/null; then
      want chromium chromium "the dashboard is not tested in a browser"
    else
      echo "setup: without npm (Node.js 20 or newer, https://nodejs.org) the dashboard is not tested"
    fi
    want os_ken.py python3-os-ken "tests that compare with os-ken are skipped"
    [ "$(id -u)" -eq 0 ] || echo "setup: not root: tests that make network namespaces are skipped"
    ;;
  bench)
    need time time "measures processor time and memory of every contender"
    need taskset util-linux "keeps every contender on one processor"
    want nfpcapd nfdump "nfpcapd is left out of the comparison"
    want softflowd softflowd "softflowd is left out of the comparison"
    want make make "DPDK's sketch and ns-3 are left out of the comparison"
    want pkg-config pkg-config "DPDK's sketch and ns-3 are left out of the comparison"
    want ensurepip.py python3-venv "analyses of flow records are not measured"
    want libdpdk.pc libdpdk-dev "DPDK's sketch is left out of the comparison"
    want ns3-core.pc libns3-dev "ns-3 is left out of the comparison"
    ;;
  fuzz)
    need c++ build-essential "builds libFuzzer"
    ;;
  *)
    echo "usage: scripts/setup.sh run|python|test|bench|fuzz|lint" >&2
    exit 2
    ;;
esac

# --- Install what is missing ------------------------------------------------------------------------------

if [ ${#packages[@]} -gt 0 ]; then
  mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)
  command="apt-get install --no-install-recommends ${packages[*]}"
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "==> setup: installing ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive # tshark and iperf3 would ask
    export RUNLEVEL=1                      # and nothing that is installed is to start a service
    log=$(mktemp)
    { apt-get update -qq && apt-get install -qq -y --no-install-recommends "${packages[@]}"; } \
      </dev/null >"$log" 2>&1 || { tail -n 5 "$log" >&2; echo "setup: failed: $command" >&2; }
    rm -f "$log"
  else
    echo "setup: to install what is missing, as root on Debian: $command"
  fi
  hash -r
  for entry in "${optional[@]}"; do
    IFS='|' read -r probe package loss <<<"$entry"
    present "$probe" || echo "setup: without $probe (package $package) $loss"
  done
  for entry in "${required[@]}"; do
    IFS='|' read -r probe package reason <<<"$entry"
    present "$probe" || lacking "$probe is missing (package $package): it $reason"
  done
fi

[ -z "$failed" ] || exit 1
echo "==> setup: ready to $goal"
