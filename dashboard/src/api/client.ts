// Requests to the API: the token, limits of size and time, and errors that say what to do.

import { session } from "./session.svelte";
import type { Answer, GetPath, Problem, QueryOf } from "./types";

/** Maximum size of an answer. The API's largest answers have about 8 MB. */
const MAX_BYTES = 16 << 20;

/** Maximum time of a request. */
const TIMEOUT_MS = 35_000;

/** Why a request failed. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** HTTP status; 0 if there was no answer. */
    readonly status: number,
    /** Problem code of the API, such as `not_found`. */
    readonly code: string,
    /** How long to wait before the request is repeated, if the daemon says so. */
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }

  /** Whether the daemon lacks the configuration for this. */
  get isNotConfigured(): boolean {
    return this.code === "not_configured" || this.status === 404;
  }
}

type Values = Record<string, string | number | boolean | null | undefined>;

export interface Options<Q = Values> {
  /** Values of the parameters in braces. */
  path?: Record<string, string>;
  query?: Q;
  signal?: AbortSignal | undefined;
}

/** Reads JSON. */
export async function get<P extends GetPath>(path: P, options: Options<QueryOf<P>> = {}): Promise<Answer<P>> {
  const body = await request("GET", address(path, options), { signal: options.signal });
  return parse(await text(body)) as Answer<P>;
}

/** Changes something. The page asks for confirmation before. */
export async function send(
  method: "PUT" | "DELETE" | "POST",
  path: string,
  options: Options & { body?: unknown } = {},
): Promise<void> {
  await request(method, address(path, options), { body: options.body, signal: options.signal });
}

/** Downloads a file and lets the browser save it. */
export async function download(
  method: "GET" | "POST",
  path: string,
  accept: string,
  name: string,
  options: Options = {},
): Promise<void> {
  const response = await request(method, address(path, options), { accept, signal: options.signal });
  save(name, await response.blob());
}

/** Lets the browser save a file. */
export function save(name: string, blob: Blob): void {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(blob);
  anchor.download = name;
  anchor.click();
  // The download has begun when the browser is idle again.
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

/** Reads text, such as a page. */
export async function getText(path: string, accept: string, options: Options = {}): Promise<string> {
  return text(await request("GET", address(path, options), { accept, signal: options.signal }));
}

function address(path: string, { path: values = {}, query = {} }: Options<unknown>): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => segment(values[name] ?? ""));
  const pairs = Object.entries(query as Values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? filled : `${filled}?${text.replaceAll("+", "%20")}`;
}

/** Encodes a part of a path. Browsers would resolve "..", also an encoded one, and so ask for another path. */
function segment(value: string): string {
  if (/^\.{0,2}$/.test(value)) throw new ApiError(`There is nothing with the name "${value}".`, 404, "not_found");
  return encodeURIComponent(value);
}

interface Sent {
  body?: unknown;
  accept?: string;
  signal?: AbortSignal | undefined;
}

async function request(method: string, url: string, { body, accept = "application/json", signal }: Sent): Promise<Response> {
  const headers: Record<string, string> = { Accept: accept };
  const { token } = session;
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const limit = AbortSignal.timeout(TIMEOUT_MS);
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
      cache: "no-store",
      credentials: "omit",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The daemon does not answer.", 0, "unreachable");
  }
  if (!response.ok) throw await failure(response, token);
  return response;
}

async function failure(response: Response, token: string | null): Promise<ApiError> {
  if (response.status === 401) session.refuse(token);
  const seconds = Number(response.headers.get("Retry-After"));
  const retryAfterMs = seconds > 0 ? seconds * 1_000 : null;
  let problem: Partial<Problem> = {};
  try {
    problem = JSON.parse(await text(response)) as Partial<Problem>;
  } catch {
    // A proxy answers with a page of its own.
  }
  const message = problem.detail ?? problem.title ?? `The daemon answered with status ${response.status}.`;
  return new ApiError(message, response.status, problem.code ?? "unknown", retryAfterMs);
}

/** Reads the body, at most MAX_BYTES of it. */
async function text(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  if (reader === undefined) return "";
  const decoder = new TextDecoder();
  let parts = "";
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return parts + decoder.decode();
    size += value.length;
    if (size > MAX_BYTES) {
      await reader.cancel();
      throw new ApiError(`The answer has more than ${MAX_BYTES >> 20} MiB.`, response.status, "too_large");
    }
    parts += decoder.decode(value, { stream: true });
  }
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new ApiError("The answer is not JSON.", 200, "not_json");
  }
}
