// Keys whose traffic certainly changed: alerts, kept as long as the page lives.

import { changeShare, keysOf, type KeyRow, type ResultOf } from "./answers";

/** Alerts that are kept. */
const KEPT = 500;

export interface ChangeAlert {
  id: string;
  collector: string;
  task: string;
  row: KeyRow;
  /** End of the later period. */
  time: string;
}

/** How sure a change is. */
export type Certainty = "above_threshold" | "certain" | "uncertain";

/** Returns how sure a change is: whether its bounds exclude zero, or even all that is below the threshold of the task. */
export function certaintyOf({ lower, upper, bounds }: KeyRow, threshold: number): Certainty {
  if (bounds !== "interval" || lower === null || upper === null) return "uncertain";
  const least = Math.max(lower, -upper);
  return least >= threshold && least > 0 ? "above_threshold" : least > 0 ? "certain" : "uncertain";
}

/** Returns the least change that a task reports, in packets or bytes. */
export function thresholdOf(task: string, { before, now }: ResultOf<"change">): number {
  return changeShare(task) * (before.total + now.total);
}

class ChangeAlerts {
  /** The latest first. */
  list = $state.raw<ChangeAlert[]>([]);

  /** Adds the alerts of a result. */
  add(collector: string, task: string, result: ResultOf<"change">): void {
    const threshold = thresholdOf(task, result);
    const time = result.now.end;
    const known = new Set(this.list.map(({ id }) => id));
    const fresh = keysOf(result)
      .filter((row) => certaintyOf(row, threshold) === "above_threshold")
      .map((row) => ({ id: [collector, task, time, row.key].join("\n"), collector, task, row, time }))
      .filter(({ id }) => !known.has(id));
    if (fresh.length === 0) return;
    // Results of the past may arrive after the latest one.
    const all = [...fresh, ...this.list];
    all.sort((one, other) => (one.time < other.time ? 1 : one.time > other.time ? -1 : Math.abs(other.row.value) - Math.abs(one.row.value)));
    this.list = all.slice(0, KEPT);
  }

  clear(): void {
    this.list = [];
  }
}

export const changeAlerts = new ChangeAlerts();
