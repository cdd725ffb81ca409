# shellcheck shell=bash
# Runs the steps of a script and records what each of them takes. Sourced, not run:
#
#   . scripts/steps.sh
#   step cargo fmt --all --check
#   print_steps
#
# The times go to the file STEP_TIMES, one line a step: seconds elapsed, of user time, of system time, and the command.
# A script that is started by another appends to the file of that one, so that one table shows the steps of both.

STEP_TIMES=${STEP_TIMES:-$(mktemp)}
export STEP_TIMES

# Says the command, runs it, records its times, and returns its status.
step() {
  echo "==> $*"
  local TIMEFORMAT="%R %U %S ${*//%/%%}"
  { time "$@" 2>&3 3>&-; } 3>&2 2>>"$STEP_TIMES"
}

# Prints a table of the steps so far, and starts the record again.
print_steps() {
  echo "==> time of each step"
  awk 'BEGIN { printf "%10s %10s  step\n", "elapsed s", "CPU s" }
    { elapsed = $1; cpu = $2 + $3; wall += elapsed; all += cpu
      $1 = $2 = $3 = ""; sub(/^ +/, "")
      if (length($0) > 88) $0 = substr($0, 1, 85) "..."
      printf "%10.1f %10.1f  %s\n", elapsed, cpu, $0 }
    END { printf "%10.1f %10.1f  all steps (%.1f CPU minutes)\n", wall, all, all / 60 }' "$STEP_TIMES"
  rm -f "$STEP_TIMES"
}
