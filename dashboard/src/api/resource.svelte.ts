// Data that a view reads once or again and again, with the states that it shows: loading, empty, stale, error.

import { untrack } from "svelte";

import { live, type Part } from "../live/live.svelte";
import { ApiError } from "./client";
import { session } from "./session.svelte";

export interface ResourceOptions {
  /** The optional part of the daemon that answers. If it is not configured, the daemon is not asked. */
  needs?: Part;
  /** Interval of repeated reads; without one the data are read when their inputs change. */
  everyMs?: number;
}

/** Data, and how they are. */
export class Resource<T> {
  data = $state.raw<T | null>(null);
  error = $state.raw<ApiError | null>(null);
  isLoading = $state(true);
  /** Whether `data` are older than the last attempt to read them. */
  isStale = $derived(this.data !== null && this.error !== null);

  #again = $state(0);

  /** Reads the data now. */
  reload(): void {
    this.#again += 1;
  }

  /** @internal */
  get trigger(): number {
    return this.#again;
  }
}

/**
 * Reads data with `read`, and again when something that it uses changes. Call it while a component is initialised. The data of an
 * earlier input stay until those of the new one are there, unless `keyOf` returns another key.
 */
export function resource<T>(read: (signal: AbortSignal) => Promise<T>, { everyMs, needs }: ResourceOptions = {}): Resource<T> {
  const resource = new Resource<T>();
  const isConfigured = $derived(needs === undefined ? true : live.has(needs));
  $effect(() => {
    if (isConfigured !== true) {
      // Null: the daemon has not said yet.
      if (isConfigured === false) {
        const text = `This daemon has no ${needs!.replaceAll("_", " ")}.`;
        [resource.data, resource.error, resource.isLoading] = [null, new ApiError(text, 503, "not_configured"), false];
      }
      return;
    }
    void resource.trigger;
    void session.token;
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async () => {
      let pause = everyMs;
      try {
        const data = await read(abort.signal);
        if (abort.signal.aborted) return;
        [resource.data, resource.error, resource.isLoading] = [data, null, false];
      } catch (error) {
        if (abort.signal.aborted) return;
        const failure = error instanceof ApiError ? error : new ApiError(String(error), 0, "unknown");
        [resource.error, resource.isLoading] = [failure, false];
        // Data that the daemon does not have any more, or no longer shows, are not shown.
        if (failure.status >= 400 && failure.status < 500 && failure.status !== 429) resource.data = null;
        pause = everyMs === undefined ? undefined : Math.max(failure.retryAfterMs ?? 0, everyMs * 2, 2_000);
      }
      if (pause !== undefined) timer = setTimeout(repeat, pause);
    };
    // A hidden tab reads nothing.
    const repeat = () => (document.hidden ? document.addEventListener("visibilitychange", repeat, { once: true }) : void run());
    untrack(() => (resource.isLoading = resource.data === null));
    void run();
    return () => {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", repeat);
    };
  });
  return resource;
}
