// The JSON of a PRCA report (Performance and Root Cause Analysis), as `thalweg transfers report` writes it.

import { getText } from "../api/client";

export interface Totals {
  transfers: number;
  slow: number;
  without_verdict: number;
  bytes: number;
  first_us: number;
  last_us: number;
}

export interface CauseRow {
  cause: string;
  words: string;
  transfers: number;
  slow: number;
  bytes: number;
  rate_p25_bps: number;
  rate_p50_bps: number;
  rate_p75_bps: number;
}

export interface SlowRow {
  transfer: string;
  application: string;
  user: string;
  sender: string;
  receiver: string;
  src: string;
  dst: string;
  start_us: number;
  bytes: number;
  streams: number;
  rate_bps: number;
  aspiration_bps: number;
  lost_us: number;
  cause: string;
  confidence: number;
  advised_streams: number;
  advised_buffer_bytes: number;
}

export interface ClusterRow {
  src_group: string;
  dst_group: string;
  combination: string;
  application: string;
  streams: number;
  sender: string;
  receiver: string;
  congestion_control: string;
  send_window_bytes: number;
  receive_window_bytes: number;
  best: boolean;
  own: number;
  count: number;
  min: number | null;
  p25: number | null;
  p50: number | null;
  mean: number | null;
  max: number | null;
  cov: number | null;
  overlap: number | null;
}

export interface HostRow {
  host: string;
  transfers: number;
  slow: number;
  cause: string;
  slow_share: number;
  often: boolean;
}

export interface Model {
  src_group: string;
  dst_group: string;
  reason?: string;
  transfers?: number;
  r_squared?: number;
  coefficients?: { name: string; value: number; lower: number; upper: number }[];
}

export interface Report {
  kind: string;
  name: string;
  made: string;
  about: Record<string, string | null>;
  totals: Totals;
  causes: CauseRow[];
  slowest: SlowRow[];
  clusters: ClusterRow[];
  hosts: HostRow[];
  models: Model[];
  clocks: { reporter: string; ahead_us: number; pairs: number }[];
}

/** Returns the parts of the name of a report in the list: transfers/PERIOD/NAME. */
export function partsOf(file: string): { period: string; report: string } {
  const [, period = "", report = ""] = file.split("/");
  return { period, report };
}

/** Reads a report. */
export async function readReport(period: string, report: string, signal: AbortSignal): Promise<Report> {
  const text = await getText("/v1/transfers/reports/{period}/{report}", "application/json", { path: { period, report }, signal });
  return reportOf(JSON.parse(text));
}

/** Checks what the page relies on: another version of the analysis may have written the report. */
function reportOf(value: unknown): Report {
  const report = value as Partial<Report> | null;
  const isReport = typeof report === "object" && report !== null && typeof report.totals === "object";
  if (!isReport) throw new Error("The report has an unknown format. Save it as a page instead.");
  const rows = <T>(rows: T[] | undefined): T[] => (Array.isArray(rows) ? rows : []);
  return {
    kind: report.kind ?? "all",
    name: report.name ?? "",
    made: report.made ?? "",
    about: report.about ?? {},
    totals: report.totals!,
    causes: rows(report.causes),
    slowest: rows(report.slowest),
    clusters: rows(report.clusters),
    hosts: rows(report.hosts),
    models: rows(report.models),
    clocks: rows(report.clocks),
  };
}
