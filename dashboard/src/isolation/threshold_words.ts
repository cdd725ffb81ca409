// Why the threshold R is what it is, and what the states of its periods mean.

import type { Schemas } from "../api/types";
import { dateTime, rate, words } from "../ui/format";

type Threshold = Schemas["Threshold"];

/** Returns why R is what it is, as a sentence. */
export function reasonText({ reason, days, since }: Threshold): string {
  switch (reason) {
    case "days":
      return `From the thresholds of the same period on ${days === 1 ? "an earlier day" : `${days ?? "some"} earlier days`}.`;
    case "latest":
      return `From the traffic of the latest period${since == null ? "" : `, ${dateTime(since)}`}. No earlier day is known.`;
    case "equation":
      return "From R = alpha (C - r): traffic was recorded, and nothing like it has been simulated yet.";
    default:
      return "rate_threshold of the configuration: no traffic is known yet.";
  }
}

const STATES: Record<string, string> = {
  known: "known",
  waiting: "waits for its simulation",
  unknown: "was not simulated",
  incomplete: "not usable: the daemon did not run all the time",
  dropped: "not usable: the kernel dropped packets",
  lost: "not usable: packets were lost before they were recorded",
  clock_stepped: "not usable: the clock was set",
  idle: "not usable: no traffic",
  not_written: "not usable: the recording could not be written",
};

/** Returns the state of a period, or why its recording is of no use. */
export function stateText(state: string): string {
  return STATES[state] ?? words(state);
}

/** Returns what the regulator does, as a sentence. */
export function regulatorText({ poll, reason, explanation, reduction_bps }: Schemas["ThresholdRegulator"]): string {
  const reduction = reduction_bps > 0 ? `R is lowered by ${rate(reduction_bps)}` : "R is not lowered";
  const why = explanation ?? (reason == null ? "no interval was read yet" : words(reason));
  return `${reduction} because of the losses that ${poll} counts: ${why}`;
}
