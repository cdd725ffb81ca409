// Export of all events that pass the filter, as JSON Lines or CSV.

import { save } from "../api/client";
import type { Event } from "../api/types";
import { count } from "../ui/format";
import { eventFlow, eventLink, eventText } from "../ui/event_text";
import { readPage, type LoggedEvent } from "./event_log.svelte";
import type { LogQuery } from "./filter";

/** Most events of an export. A file of them has about 100 MB. */
export const EXPORT_LIMIT = 100_000;

/** Events in a request: an answer stays well below the limit of its size. */
const PAGE = 1_000;

export type ExportFormat = "jsonl" | "csv";

const COLUMNS = ["event_id", "emitted", "time", "type", "collector", "switch", "text", "link", "flow"];

/** A running export. */
export class Export {
  /** What it does, as a sentence; null if there was none. */
  progress = $state<string | null>(null);
  isRunning = $state(false);
  #abort: AbortController | null = null;

  async run(format: ExportFormat, query: LogQuery): Promise<void> {
    if (this.isRunning) return;
    const abort = new AbortController();
    this.#abort = abort;
    this.isRunning = true;
    this.progress = "Reading the event log.";
    try {
      await this.#read(format, query, abort.signal);
    } catch (error) {
      this.progress = abort.signal.aborted ? "Export cancelled." : `Export failed: ${error instanceof Error ? error.message : String(error)}`;
    }
    this.isRunning = false;
  }

  cancel(): void {
    this.#abort?.abort();
  }

  async #read(format: ExportFormat, query: LogQuery, signal: AbortSignal): Promise<void> {
    const parts: string[] = format === "csv" ? [`${COLUMNS.join(",")}\r\n`] : [];
    let before: string | null = null;
    let [number, missing] = [0, 0];
    do {
      const page = await readPage(query, before, Math.min(PAGE, EXPORT_LIMIT - number), signal);
      for (const event of page.events) parts.push(format === "csv" ? csvLine(event as LoggedEvent) : `${JSON.stringify(event)}\n`);
      number += page.events.length;
      missing += page.gaps.reduce((sum, gap) => sum + gap.missing_events, 0);
      before = page.next ?? null;
      this.progress = `${count(number)} events read.`;
    } while (before !== null && number < EXPORT_LIMIT);
    save(`thalweg-events.${format}`, new Blob(parts, { type: format === "csv" ? "text/csv" : "application/jsonl" }));
    const rest = before === null ? "" : ` The limit is ${count(EXPORT_LIMIT)}: older events are not in the file. Choose a shorter time.`;
    const gaps = missing === 0 ? "" : ` ${count(missing)} events are missing in the log.`;
    this.progress = `${count(number)} events saved, the newest first.${rest}${gaps}`;
  }
}

function csvLine(event: LoggedEvent): string {
  const { event_id, emitted, time, type, collector, switch: of } = event;
  const values = [event_id, emitted, time, type, collector, of, eventText(event as Event), eventLink(event) ?? "", eventFlow(event) ?? ""];
  return `${values.map(csvValue).join(",")}\r\n`;
}

/** Names come from the network: a spreadsheet would take one with such a beginning for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

function csvValue(value: string): string {
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
