// The redirections, read once a second. There may be ten thousand active ones: they are read in pages.

import { get } from "../api/client";
import { resource, type Resource } from "../api/resource.svelte";
import type { Schemas } from "../api/types";

export type Redirection = Schemas["Redirection"];
export type QueueState = Schemas["QueueState"];

/** Active redirections in a request: parsing them takes a few milliseconds. */
const PAGE = 250;

/** Ended redirections that are shown. */
const ENDED = 200;

/** Requests of one reading until all pages are known. */
const MAX_REQUESTS = 60;

/** Readings of the queues that are kept: two minutes. */
const KEPT_READINGS = 120;

/** A reading of the queues. */
export interface QueueReading {
  /** Seconds since 1970 by the browser's clock. */
  at: number;
  primary: QueueState;
  scavenger: QueueState;
}

export interface State {
  summary: Schemas["Redirections"];
  /** Active redirections, the oldest first. */
  active: Redirection[];
  /** The latest two minutes of the queues, the oldest first. */
  queues: QueueReading[];
}

/** Active redirections that are known, in the order of their numbers. */
class ActiveList {
  #rows: Redirection[] = [];
  /** Where the next page of the background begins. */
  #cursor = 0;
  /** Whether all pages were read once. */
  isComplete = false;

  get rows(): Redirection[] {
    return this.#rows;
  }

  /** Replaces the rows after `after`, up to the end of the page. */
  take(after: number, page: Redirection[]): void {
    const isLast = page.length < PAGE;
    const end = isLast ? Infinity : page.at(-1)!.id;
    const from = this.#rows.findIndex((row) => row.id > after);
    const start = from < 0 ? this.#rows.length : from;
    const stop = this.#rows.findIndex((row) => row.id > end);
    this.#rows = [...this.#rows.slice(0, start), ...page, ...(stop < 0 ? [] : this.#rows.slice(stop))];
    if (isLast) this.isComplete = true;
  }

  /** Returns the number after which the row at `place` comes. */
  before(place: number): number {
    return this.#rows[Math.min(place, this.#rows.length) - 1]?.id ?? 0;
  }

  /** Returns where to read on in the background. */
  next(): number {
    return this.#cursor;
  }

  advance(page: Redirection[]): void {
    this.#cursor = page.length < PAGE ? 0 : page.at(-1)!.id;
  }
}

/** The first row in sight: a plain value, since a scrolled table is no reason to read at once. */
export interface Sight {
  first: number;
}

/** Reads the redirections, those in sight each time. Call it while a component is initialised. */
export function redirections(sight: Sight): Resource<State> {
  const list = new ActiveList();
  let queues: QueueReading[] = [];
  const page = (after: number, limit: number, signal: AbortSignal) => get("/v1/redirections", { query: { active: PAGE, after, limit }, signal });
  return resource(
    async (signal) => {
      const after = list.before(sight.first);
      const summary = await page(after, ENDED, signal);
      list.take(after, summary.active);
      await background(list, summary.active_count, after, (from) => page(from, 1, signal));
      if (summary.queues) queues = [...queues, { at: Date.now() / 1_000, ...summary.queues }].slice(-KEPT_READINGS);
      return { summary, active: list.rows, queues };
    },
    { everyMs: 1_000, needs: "isolation" },
  );
}

/** Reads the pages that are not in sight: all of them at first, then one each time. */
async function background(
  list: ActiveList,
  total: number,
  seen: number,
  read: (after: number) => Promise<Schemas["Redirections"]>,
): Promise<void> {
  if (total <= PAGE && seen === 0) return;
  for (let requests = 0; requests < MAX_REQUESTS; requests += 1) {
    const after = list.next();
    const { active } = await read(after);
    list.take(after, active);
    list.advance(active);
    if (list.isComplete) return;
  }
}
