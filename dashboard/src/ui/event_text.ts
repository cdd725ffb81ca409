// What an event says, in one line, and how bad it is.

import type { Event, EventOf, Schemas } from "../api/types";
import { bytes, count, duration, percent, quantity, rate, seconds, words } from "./format";

export type EventLevel = "good" | "warn" | "bad" | "";

/** All types of events, in the order of the filters. */
export const EVENT_TYPES = [
  "congestion",
  "decision",
  "action",
  "link",
  "cheetah",
  "cheetah_end",
  "redirection",
  "address_change",
  "collector",
  "poll",
  "mastership",
  "rule_faults",
  "traffic_change",
] as const satisfies Event["type"][];

/** Returns an event as one line. */
export function eventText(event: Event): string {
  switch (event.type) {
    case "congestion":
      return congestion(event);
    case "address_change":
      return `${event.key} takes another path: destination MAC address ${event.dst_mac}, was ${event.previous_dst_mac}`;
    case "cheetah":
      return `${event.key} is a cheetah flow: ${rate(event.rate_bps)}`;
    case "cheetah_end":
      return `cheetah flow ${event.key} ended: ${bytes(event.bytes)} in ${duration(seconds(event.flow_end) - seconds(event.flow_start))}`;
    case "collector":
      return collector(event);
    case "decision":
      return decision(event);
    case "action":
      return `${event.src} to ${event.dst} on tree ${event.tree}: ${outcome(event)}`;
    case "rule_faults":
      return `${event.switch}: OpenFlow entries repaired: ${count(event.missing)} missing, ${count(event.changed)} changed, ${count(event.foreign)} foreign`;
    case "link":
      return `${event.link} is ${event.up ? "up" : "down"}, routes recomputed`;
    case "traffic_change":
      return trafficChange(event);
    case "poll":
      return event.available
        ? `interface counters of ${event.poll} are available again`
        : `interface counters of ${event.poll} are unavailable: ${event.error ?? "no reason given"}`;
    case "mastership":
      return event.master ? "this daemon became master of the switches" : "this daemon became a standby: another one is master of the switches";
    case "redirection":
      return redirection(event.redirection);
    default:
      // A newer daemon has other events.
      return words((event as { type: string }).type);
  }
}

/** Returns how bad an event is. */
export function eventLevel(event: Event): EventLevel {
  switch (event.type) {
    case "congestion":
      return event.change === "cleared" ? "good" : "warn";
    case "collector":
      return event.state.name === "failed" ? "bad" : event.state.name === "dropping" ? "warn" : event.state.name === "running" ? "good" : "";
    case "decision":
      return event.verdict === "withheld" || event.verdict === "move_limit" ? "warn" : "";
    case "action":
      return event.outcome === "confirmed" ? "good" : event.outcome === "timed_out" || event.outcome === "refused" ? "bad" : "";
    case "rule_faults":
      return "warn";
    case "link":
      return event.up ? "good" : "bad";
    case "traffic_change":
      return "warn";
    case "poll":
      return event.available ? "good" : "warn";
    case "mastership":
      return event.master ? "good" : "warn";
    case "redirection":
      return event.redirection.phase === "failed" ? "bad" : event.redirection.phase === "confirmed" ? "good" : event.redirection.error ? "warn" : "";
    default:
      return "";
  }
}

/** Returns the link direction that an event is about; null if it is about none. */
export function eventLink(event: Event): string | null {
  if (event.type === "congestion") return event.link;
  if (event.type === "decision") return event.link ?? null;
  if (event.type !== "link") return null;
  // The name of a link has the ports at its ends: leaf0:p2 - spine0:p0. An end at a host is no port.
  const port = event.link.split(" - ").find((end) => end.includes(":"));
  return port === undefined ? null : `${port}:out`;
}

/** Returns the key of the flow that an event is about; null if it is about none. */
export function eventFlow(event: Event): string | null {
  switch (event.type) {
    case "address_change":
    case "cheetah":
    case "cheetah_end":
      return event.key;
    case "redirection":
      return event.redirection.key;
    default:
      return null;
  }
}

function congestion({ link, change, utilisation, smoothed_bps, flows, omitted_flows }: EventOf<"congestion">): string {
  const state = { began: "is congested", repeated: "is still congested", cleared: "is no longer congested" }[change];
  const number = flows.length + omitted_flows;
  const first = flows[0];
  const fastest = first === undefined ? "" : `, fastest ${first.key}${first.rate_bps == null ? "" : ` at ${rate(first.rate_bps)}`}`;
  const listed = number === 0 ? "" : `, ${number === 1 ? "1 flow" : `${count(number)} flows`}${fastest}`;
  return `${link} ${state}: ${percent(utilisation)}, ${rate(smoothed_bps)}${listed}`;
}

function collector({ collector: name, state }: EventOf<"collector">): string {
  switch (state.name) {
    case "failed":
      return `collector ${name} failed: ${state.error ?? "no reason given"}`;
    case "dropping":
      return `collector ${name} is too slow: the kernel drops packets`;
    default:
      return `collector ${name} is ${words(state.name)}`;
  }
}

function decision({ src, dst, from_tree, tree, verdict, alternatives, link }: EventOf<"decision">): string {
  const expected = (number: number) => rate(alternatives.find((path) => path.tree === number)?.expected_rate_bps);
  const move = `from tree ${from_tree} to tree ${tree}: expected ${expected(tree)}, was ${expected(from_tree)}`;
  const cause = link ? `; ${link} is congested` : "";
  switch (verdict) {
    case "reroute":
      return `${src} to ${dst} rerouted ${move}${cause}`;
    case "withheld":
      return `reroute of ${src} to ${dst} withheld, ${move}${cause}`;
    case "hold_down":
      return `${src} to ${dst} stays on tree ${from_tree}: the previous reroute has not taken effect yet`;
    case "move_limit":
      return `${src} to ${dst} stays on tree ${from_tree}: one of its flows was rerouted three times`;
    case "pinned":
      return `${src} to ${dst} stays on tree ${from_tree}: the pair is pinned`;
    default:
      return `${src} to ${dst} stays on tree ${from_tree}: no other path is sufficiently better`;
  }
}

function outcome({ outcome, decision_to_path_ns, error }: EventOf<"action">): string {
  switch (outcome) {
    case "started":
      return "reroute started";
    case "confirmed":
      return `reroute confirmed${decision_to_path_ns == null ? "" : ` ${duration(decision_to_path_ns / 1e9)} after the decision`}`;
    case "timed_out":
      return "reroute timed out: no packet was seen on the new path";
    case "superseded":
      return "superseded by another reroute";
    case "refused":
      return `reroute refused: ${error ?? "no reason given"}`;
  }
}

const CAUSES: Record<Schemas["RedirectionCause"], string> = {
  flow_ended: "the flow ended",
  quiet: "the flow is quiet",
  user: "released by a user",
  max_time: "the maximum time is over",
  stop: "the daemon stops",
};

/** Returns why a redirection ends. */
export function causeText(cause: Schemas["RedirectionCause"]): string {
  return CAUSES[cause] ?? words(cause);
}

function redirection({ key, phase, cause, packets, bytes: sent, error, primary_backlog_before, primary_backlog_after }: Schemas["Redirection"]): string {
  const reason = cause ? `: ${causeText(cause)}` : "";
  switch (phase) {
    case "waiting":
      return `redirection of ${key} waits${error ? `: ${error}` : ""}`;
    case "requested":
      return `redirection of ${key} requested`;
    case "redirected":
      return `${key} redirected to the scavenger queue`;
    case "confirmed": {
      const isKnown = primary_backlog_before != null && primary_backlog_after != null;
      const backlog = isKnown ? `: backlog of the primary queue ${bytes(primary_backlog_after)}, was ${bytes(primary_backlog_before)}` : "";
      return `redirection of ${key} confirmed${backlog}`;
    }
    case "draining":
      return `${key} drains from the scavenger queue${reason}`;
    case "releasing":
      return `${key} is being released${reason}`;
    case "released": {
      const amount = sent == null ? "" : packets == null ? ` after ${bytes(sent)}` : ` after ${count(packets)} packets, ${bytes(sent)}`;
      return `${key} released${amount}${reason}`;
    }
    case "failed":
      return `redirection of ${key} failed: ${error ?? "no reason given"}`;
    case "withheld":
      return `redirection of ${key} withheld by the dry run`;
    default:
      return `redirection of ${key}: ${words(phase)}`;
  }
}

function trafficChange({ task, keys, omitted_keys }: EventOf<"traffic_change">): string {
  const total = keys.length + omitted_keys;
  const largest = keys[0];
  const first = largest === undefined ? "" : `, most that of ${largest.key}: ${quantity(largest.before, "")} before, ${quantity(largest.now, "")} now`;
  return `traffic of ${total} ${total === 1 ? "key" : "keys"} changed (${task})${first}`;
}
