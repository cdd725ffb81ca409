// Numbers and times as people read them.

const UNITS = ["", "k", "M", "G", "T", "P"];

/** Returns a value with a decimal unit: 1.24 Gbit/s. */
export function quantity(value: number, unit: string): string {
  if (!Number.isFinite(value)) return "-";
  let scale = 0;
  let scaled = Math.abs(value);
  while (scaled >= 999.5 && scale < UNITS.length - 1) {
    scaled /= 1_000;
    scale += 1;
  }
  const digits = scale === 0 && Number.isInteger(value) ? 0 : scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  return `${value < 0 ? "-" : ""}${scaled.toFixed(digits)} ${UNITS[scale]}${unit}`.trimEnd();
}

/** Returns a rate: 1.24 Gbit/s; "-" if it is unknown. */
export function rate(bps: number | null | undefined): string {
  return bps === null || bps === undefined ? "-" : quantity(bps, "bit/s");
}

/** Returns an amount of data: 1.50 MB. */
export function bytes(count: number | null | undefined): string {
  return count === null || count === undefined ? "-" : quantity(count, "B");
}

/** Returns a count: 12,345. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "-" : value.toLocaleString("en-US");
}

/** Returns a share: 87.5 %. */
export function percent(share: number | null | undefined, digits = 0): string {
  return share === null || share === undefined || Number.isNaN(share) ? "-" : `${(share * 100).toFixed(digits)} %`;
}

/** Returns a duration: 2.50 ms. */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "-";
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-6) return `${(seconds * 1e9).toFixed(0)} ns`;
  if (size < 1e-3) return `${significant(seconds * 1e6)} us`;
  if (size < 1) return `${significant(seconds * 1e3)} ms`;
  if (size < 120) return `${significant(seconds)} s`;
  const whole = Math.round(seconds);
  if (size < 7_200) return whole % 60 === 0 ? `${whole / 60} min` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const minutes = Math.round(seconds / 60);
  if (size < 172_800) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  const hours = Math.round(seconds / 3_600);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function significant(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}

/** Emulated networks start in 1970. */
const EMULATED_BEFORE = Date.UTC(1971, 0, 1);

/** Whether a time is one of an emulated network. */
export function isEmulated(time: string): boolean {
  return Date.parse(time) < EMULATED_BEFORE;
}

/** Returns the seconds since 1970 of an RFC 3339 time, with its nanoseconds as far as a number has them. */
export function seconds(time: string): number {
  const fraction = /\.(\d+)Z$/.exec(time)?.[1] ?? "0";
  return Math.floor(Date.parse(time) / 1_000) + Number(`0.${fraction}`);
}

/** Returns a time as a clock shows it, or the seconds of an emulated network. */
export function clock(time: string | null | undefined): string {
  if (time === null || time === undefined) return "-";
  if (isEmulated(time)) return `${seconds(time).toFixed(6)} s`;
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : `${date.toLocaleTimeString("en-GB")}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

/** Returns a time with its date. */
export function dateTime(time: string | number | null | undefined): string {
  if (time === null || time === undefined) return "-";
  if (typeof time === "string" && isEmulated(time)) return `${seconds(time).toFixed(6)} s`;
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const two = (value: number) => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${date.toLocaleTimeString("en-GB")}`;
}

/** Returns how long ago a time of the daemon's clock is: 3 s ago. */
export function ago(then: number, now: number): string {
  const age = (now - then) / 1_000;
  return age < 1 ? "now" : `${duration(Math.round(age))} ago`;
}

const PROTOCOLS: Record<number, string> = { 1: "ICMP", 6: "TCP", 17: "UDP", 47: "GRE", 50: "ESP", 58: "ICMPv6", 89: "OSPF", 132: "SCTP" };

/** Returns the name of an IP protocol. */
export function protocol(number: number): string {
  return PROTOCOLS[number] ?? `protocol ${number}`;
}

/** Returns an address with its port: 10.0.0.1:443, [2001:db8::1]:443. */
export function endpoint(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** Returns words of an identifier: hold_down as "hold down". */
export function words(identifier: string): string {
  return identifier.replaceAll("_", " ");
}
