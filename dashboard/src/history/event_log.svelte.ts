// The events of the log, page by page, the newest first.

import { ApiError, get } from "../api/client";
import type { Event, Schemas } from "../api/types";
import { live } from "../live/live.svelte";
import type { LogQuery } from "./filter";

export type LoggedEvent = Schemas["LoggedEvent"] & Event;
type Gap = Schemas["Gap"];
type Page = Schemas["LoggedEvents"];

/** A row of the list. */
export type LogRow = { kind: "event"; id: string; event: LoggedEvent } | { kind: "gap"; id: string; gap: Gap };

/** Events of a page. */
const PAGE = 500;

/** Rows that the page keeps. More are for an export. */
export const MAX_ROWS = 50_000;

export class EventLog {
  rows = $state.raw<LogRow[]>([]);
  error = $state.raw<ApiError | null>(null);
  isLoading = $state(true);
  /** Where older events begin; null at the end. */
  next = $state.raw<string | null>(null);
  /** Lines of the log that could not be read. */
  unreadable = $state(0);
  /** Whether a page has been read since the filter changed. */
  isRead = $state(false);

  #query: LogQuery = {};
  #abort: AbortController | null = null;

  /** Reads the newest events. */
  async open(query: LogQuery): Promise<void> {
    this.#query = query;
    this.isRead = false;
    await this.#read(null);
  }

  /** Reads the next older events. */
  async older(): Promise<void> {
    if (this.next === null || this.isLoading || this.rows.length >= MAX_ROWS) return;
    await this.#read(this.next);
  }

  close(): void {
    this.#abort?.abort();
  }

  async #read(before: string | null): Promise<void> {
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    this.isLoading = true;
    try {
      const page = await readPage(this.#query, before, PAGE, abort.signal);
      if (abort.signal.aborted) return;
      this.rows = before === null ? rowsOf(page) : [...this.rows, ...rowsOf(page)];
      this.next = page.next ?? null;
      this.unreadable = page.unreadable;
      [this.error, this.isRead] = [null, true];
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = error instanceof ApiError ? error : new ApiError(String(error), 0, "unknown");
      if (before === null) [this.rows, this.next] = [[], null];
    }
    this.isLoading = false;
  }
}

/** Reads a page of the log. */
export async function readPage(query: LogQuery, before: string | null, limit: number, signal: AbortSignal): Promise<Page> {
  if (live.has("event_log") === false) throw new ApiError("This daemon has no event log.", 503, "not_configured");
  return get("/v1/event-log", { query: { ...query, ...(before === null ? {} : { before }), limit }, signal });
}

/** Returns the events of a page, with its gaps between them. */
export function rowsOf({ events, gaps }: Page): LogRow[] {
  const rows: LogRow[] = [];
  let next = 0;
  for (const event of events) {
    while (next < gaps.length && isAfter(gaps[next]!.event_id, event.event_id)) rows.push(gapRow(gaps[next++]!));
    rows.push({ kind: "event", id: event.event_id, event: event as LoggedEvent });
  }
  while (next < gaps.length) rows.push(gapRow(gaps[next++]!));
  return rows;
}

function gapRow(gap: Gap): LogRow {
  return { kind: "gap", id: `gap ${gap.event_id}`, gap };
}

/** Whether a position, RUN-NUMBER, comes after another. Runs are hexadecimal numbers that grow. */
function isAfter(one: string, other: string): boolean {
  const [run = "", number = "0"] = one.split("-");
  const [otherRun = "", otherNumber = "0"] = other.split("-");
  return run === otherRun ? Number(number) > Number(otherNumber) : run.padStart(16, "0") > otherRun.padStart(16, "0");
}
