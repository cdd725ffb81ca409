// Results of the latest windows of each task: those that the daemon has kept, and those that the page has read since.

import { SvelteMap } from "svelte/reactivity";

import { get } from "../api/client";
import type { Schemas } from "../api/types";
import { withKeys, type Result } from "./answers";
import { changeAlerts } from "./change_alerts.svelte";

/** Windows that are kept of each task, as many as the daemon keeps. */
const KEPT = 60;

/** Keys that are kept of a window: the plot shows a few of the largest. */
const KEPT_KEYS = 100;

class TaskHistory {
  /** Results by collector and task, the oldest first. */
  #results = new SvelteMap<string, Result[]>();
  /** Completed windows of each collector when it was last read. */
  #windows = new Map<string, number>();
  /** Tasks whose results were read from the daemon. */
  #read = new Set<string>();

  /** Returns the results of a task, the oldest first. */
  of(collector: string, task: string): Result[] {
    return this.#results.get(name(collector, task)) ?? [];
  }

  /** Adds the latest results. */
  add(collectors: Schemas["CollectorTasks"][]): void {
    for (const { collector, windows, tasks } of collectors) {
      const before = this.#windows.get(collector);
      this.#windows.set(collector, windows);
      // The page has missed windows, or the daemon has restarted.
      const isGap = before !== undefined && (windows > before + 1 || windows < before);
      for (const { task, result } of tasks) {
        if (isGap) this.#read.delete(name(collector, task));
        if (result != null) this.#append(collector, task, [result]);
      }
    }
  }

  /** Reads the past of a task from the daemon, unless that was done. */
  async read(collector: string, task: string, signal: AbortSignal): Promise<void> {
    const key = name(collector, task);
    if (this.#read.has(key)) return;
    this.#read.add(key);
    try {
      const { results } = await get("/v1/tasks/{collector}/{task}", { path: { collector, task }, signal });
      this.#append(collector, task, results);
    } catch {
      // It is read again with the next window.
      this.#read.delete(key);
    }
  }

  #append(collector: string, task: string, results: Result[]): void {
    const key = name(collector, task);
    const known = this.#results.get(key) ?? [];
    const ends = new Set(known.map(({ end }) => end));
    const fresh = results.filter(({ end }) => !ends.has(end));
    if (fresh.length === 0) return;
    for (const result of fresh) if (result.type === "change") changeAlerts.add(collector, task, result);
    const all = [...known, ...fresh.map((result) => withKeys(result, KEPT_KEYS))].sort((one, other) => (one.end < other.end ? -1 : 1));
    // An emulation that was restarted begins in 1970 again: earlier results have later times.
    const latest = results.at(-1)!;
    const isRestart = known.length > 0 && results.length === 1 && latest.end < known[0]!.end;
    this.#results.set(key, isRestart ? [withKeys(latest, KEPT_KEYS)] : all.slice(-KEPT));
  }
}

function name(collector: string, task: string): string {
  return `${collector}\n${task}`;
}

export const taskHistory = new TaskHistory();
