// Times in tables, as short as they can be.

import { clock, dateTime, isEmulated } from "./format";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Returns the time of day of today's times, and with the day that of others: 29 Nov 07:00:00. The title of a cell has all of it. */
export function when(time: string | null | undefined): string {
  if (time === null || time === undefined || isEmulated(time)) return dateTime(time);
  const [date, today] = [new Date(time), new Date()];
  if (Number.isNaN(date.getTime())) return time;
  if (date.toDateString() === today.toDateString()) return clock(time);
  if (date.getFullYear() !== today.getFullYear()) return dateTime(time);
  return `${date.getDate()} ${MONTHS[date.getMonth()]} ${date.toLocaleTimeString("en-GB")}`;
}
