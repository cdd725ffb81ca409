// Which events the history shows. The filter is in the address, so that it can be shared.

import { router, type Query } from "../app/router.svelte";
import type { Event, EventType } from "../api/types";
import { EVENT_TYPES } from "../ui/event_text";

export interface Filter {
  /** No types are all types. */
  types: EventType[];
  link: string;
  collector: string;
  /** A period up to now, such as "1h"; empty for any time, or with start and end. */
  last: string;
  /** RFC 3339, or empty. */
  start: string;
  end: string;
}

/** Periods up to now, in seconds. */
export const PERIODS: Record<string, { title: string; seconds: number }> = {
  "15m": { title: "last 15 minutes", seconds: 900 },
  "1h": { title: "last hour", seconds: 3_600 },
  "24h": { title: "last 24 hours", seconds: 86_400 },
  "7d": { title: "last 7 days", seconds: 604_800 },
};

/** Reads the filter of an address. */
export function filterOf(query: Query): Filter {
  const types = (query.type ?? "").split(",");
  return {
    types: EVENT_TYPES.filter((type) => types.includes(type)),
    link: query.link ?? "",
    collector: query.collector ?? "",
    last: PERIODS[query.last ?? ""] === undefined ? "" : query.last!,
    start: instant(query.start),
    end: instant(query.end),
  };
}

function instant(text: string | undefined): string {
  return text === undefined || Number.isNaN(Date.parse(text)) ? "" : text;
}

/** Writes changes of the filter into the address. */
export function setFilter(changes: Partial<Filter>): void {
  const { types, ...rest } = changes;
  router.update({
    ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, value === "" ? null : value])),
    ...(types === undefined ? {} : { type: types.length === 0 ? null : types.join(",") }),
  });
}

/** The parameters of a request. */
export interface LogQuery {
  type?: string;
  link?: string;
  collector?: string;
  start?: string;
  end?: string;
}

/** Returns the parameters of requests; `now` is the time of the daemon's clock in milliseconds. */
export function queryOf({ types, link, collector, last, start, end }: Filter, now: number): LogQuery {
  const period = PERIODS[last];
  const from = period === undefined ? start : new Date(now - period.seconds * 1_000).toISOString();
  return {
    ...(types.length > 0 ? { type: types.join(",") } : {}),
    ...(link !== "" ? { link } : {}),
    ...(collector !== "" ? { collector } : {}),
    ...(from !== "" ? { start: from } : {}),
    ...(end !== "" && period === undefined ? { end } : {}),
  };
}

/** Whether an event of the live stream passes the filter. */
export function passes(event: Event, { types, link, collector, last, start, end }: Filter, now: number): boolean {
  const time = Date.parse(event.emitted);
  const period = PERIODS[last];
  if (types.length > 0 && !types.includes(event.type)) return false;
  if (collector !== "" && event.collector !== collector) return false;
  if (link !== "" && !("link" in event && event.link === link)) return false;
  if (period !== undefined) return time >= now - period.seconds * 1_000;
  return (start === "" || time >= Date.parse(start)) && (end === "" || time < Date.parse(end));
}
