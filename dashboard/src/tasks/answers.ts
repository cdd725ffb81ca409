// Answers of measurement tasks: their values, bounds and units.

import type { Schemas } from "../api/types";
import { bytes, count, percent, quantity } from "../ui/format";

export type Result = Schemas["WindowResult"];
export type ResultOf<T extends Result["type"]> = Extract<Result, { type: T }>;
export type BoundKind = Schemas["BoundKind"];

/** An estimate and what is known about its error. */
export interface Estimate {
  value: number;
  lower: number | null;
  upper: number | null;
  confidence: number | null;
  bounds: BoundKind;
}

/** A key of an answer. */
export interface KeyRow extends Estimate {
  key: string;
  /** Whether the key is one direction of a flow. */
  isFlow: boolean;
  share: number | null;
  /** Further numbers of some tasks. */
  before: number | null;
  now: number | null;
  /** With a prefix: the traffic of longer prefixes included. */
  whole: number | null;
}

/** What the tasks measure. */
export const TITLES: Record<Result["type"], string> = {
  heavy: "Heavy hitters: keys with at least this share of all traffic",
  change: "Changes: keys whose traffic changed between two periods",
  distinct: "Cardinality: number of distinct keys",
  entropy: "Entropy of the packets over the keys, in bits",
  spread: "Superspreaders: keys with many distinct peers",
  moments: "Moments of the sizes of keys: the skew of the traffic",
  hhh: "Hierarchical heavy hitters: prefixes with at least this share, without longer prefixes that are listed",
};

/** Returns whether a task counts bytes. */
export function countsBytes(task: string): boolean {
  return task.endsWith(":bytes");
}

/** Returns how values of a task are written. */
export function formatOf(task: string, type: Result["type"]): (value: number) => string {
  if (type === "entropy") return (value) => `${value.toFixed(2)} bit`;
  if (type === "distinct" || type === "spread") return (value) => count(Math.round(value));
  // The square root of a sum of squares has the unit of the counts.
  return countsBytes(task) ? bytes : (value) => (Math.abs(value) < 1e6 ? count(Math.round(value)) : quantity(value, ""));
}

/** Returns the number that an answer without keys consists of; null for lists. */
export function scalarOf(result: Result): Estimate | null {
  const { bounds, confidence } = result as { bounds?: BoundKind; confidence?: number | null };
  const rest = { bounds: bounds ?? "unknown", confidence: confidence ?? null };
  switch (result.type) {
    case "distinct":
      return { value: result.distinct, lower: result.distinct_lower ?? null, upper: result.distinct_upper ?? null, ...rest };
    case "entropy":
      return { value: result.entropy, lower: result.entropy_lower ?? null, upper: result.entropy_upper ?? null, ...rest };
    case "moments":
      return { value: result.l2, lower: result.l2_lower ?? null, upper: result.l2_upper ?? null, ...rest };
    default:
      return null;
  }
}

/** Returns the number of keys of an answer. */
export function keyCount(result: Result): number {
  return "keys" in result ? result.keys.length : 0;
}

/** Returns an answer with its largest keys only. */
export function withKeys(result: Result, limit: number): Result {
  return keyCount(result) <= limit ? result : ({ ...result, keys: (result as ResultOf<"heavy">).keys.slice(0, limit) } as Result);
}

/** Returns keys of an answer, as rows of a table. An answer may have ten thousand: ask for those that are shown. */
export function keysOf(result: Result, from = 0, to = Infinity): KeyRow[] {
  const rest = { share: null, before: null, now: null, whole: null };
  switch (result.type) {
    case "heavy":
      return result.keys.slice(from, to).map((key) => ({ ...estimate(key.estimate, key.estimate_lower, key.estimate_upper, key), ...rest, key: key.key, isFlow: key.flow != null, share: key.share }));
    case "spread":
      return result.keys.slice(from, to).map((key) => ({ ...estimate(key.peers, key.peers_lower, key.peers_upper, key), ...rest, key: key.key, isFlow: false }));
    case "hhh":
      return result.keys.slice(from, to).map((key) => ({
        ...estimate(key.conditioned, key.conditioned_lower, key.conditioned_upper, { bounds: key.conditioned_bounds, confidence: key.conditioned_confidence }),
        ...rest,
        key: key.key,
        isFlow: false,
        share: key.share,
        whole: key.estimate,
      }));
    case "change":
      return result.keys.slice(from, to).map((key) => ({
        ...estimate(key.change, key.change_lower, key.change_upper, { bounds: key.change_bounds, confidence: key.change_confidence }),
        ...rest,
        key: key.key,
        isFlow: key.flow != null,
        before: key.before,
        now: key.now,
      }));
    default:
      return [];
  }
}

function estimate(
  value: number,
  lower: number | null | undefined,
  upper: number | null | undefined,
  { bounds, confidence }: { bounds: BoundKind; confidence?: number | null },
): Estimate {
  return { value, lower: lower ?? null, upper: upper ?? null, bounds, confidence: confidence ?? null };
}

/** Returns the bounds of an estimate as text. */
export function boundText({ lower, upper, confidence, bounds }: Estimate, format: (value: number) => string): string {
  if (bounds === "not_converged") return "no bounds yet: too few samples";
  if (lower === null && upper === null) return "no bounds are known for this estimate";
  const sure = confidence === null ? "" : `, ${percent(confidence, 1)} sure`;
  if (upper === null) return `at least ${format(lower!)}${sure}`;
  return `${lower === null ? "at most" : `${format(lower)} to`} ${format(upper)}${sure}`;
}

/** Returns an answer in a few words. */
export function summaryText(task: string, result: Result): string {
  const format = formatOf(task, result.type);
  const scalar = scalarOf(result);
  if (result.type === "moments") return `L1 ${format(result.l1)}, L2 ${format(result.l2)}`;
  if (result.type === "entropy") return `${format(result.entropy)}${result.normalised == null ? "" : `, ${percent(result.normalised)} of the maximum`}`;
  if (scalar !== null) return `${format(scalar.value)} keys`;
  const [first] = keysOf(result, 0, 1);
  if (first === undefined) return "no keys";
  const number = keyCount(result);
  return `${number === 1 ? "1 key" : `${count(number)} keys`}, first ${first.key}: ${format(first.value)}`;
}

/** Returns the least change that a task reports, as a share of the traffic of both periods: 1 % unless the task names another. */
export function changeShare(task: string): number {
  const written = />([\d.]+)%/.exec(task)?.[1];
  return written === undefined ? 0.01 : Number(written) / 100;
}
