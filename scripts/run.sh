#!/bin/sh
# Runs Planck's whole loop for a while: an emulated network, collectors, the controller. Says what the controller does.
#
#   scripts/run.sh PROGRAM [SECONDS]
set -eu

program=$1
seconds=${2:-15}
config=examples/steering/thalweg.toml

cat <<EOT
==> $program serve -c $config, for $seconds s

A fat tree of 20 switches and 16 hosts is emulated, a hundred times slower than it would run. A collector reads the
mirrored packets of each switch; where flows collide, it tells the controller, which sends one of them another way.
Meanwhile, in another terminal:

  $program top
  curl http://127.0.0.1:9477/v1/control
  curl 'http://127.0.0.1:9477/v1/control/decisions?last=1'

EOT

# What the controller says, without the words in front of it; of all others, only what went wrong.
# shellcheck disable=SC2016 # these are awk's fields
readable='
  !/^[0-9][0-9][0-9][0-9]-/ || / ERROR / { print; fflush(); next }
  / thalweg_daemon::control::driver: / {
    time = "  " substr($1, 12, 11) "  "
    sub(/^.*driver: /, "")
    if (sub(/^steered: /, "")) time = "\n"
    print time $0
    fflush()
  }'

# A signal from the keyboard ends the daemon, whose last words are still to be read.
timeout --foreground "$seconds" "$program" serve -c "$config" 2>&1 | (trap '' INT && awk "$readable")
