// What a tab knows of the daemon at the moment.

import { get } from "../api/client";
import { session } from "../api/session.svelte";
import type { LiveStatus } from "../api/types";
import type { Arrived, Connection, FromTab, ToTab } from "./protocol";
import { LiveSource } from "./source";

/** Events that a tab keeps. */
const KEPT_EVENTS = 2_000;

/** How often a tab says that it is there. */
const ALIVE_MS = 20_000;

/** Optional parts of a daemon. */
export type Part =
  | "control"
  | "event_log"
  | "experiments"
  | "flow_store"
  | "interfaces"
  | "isolation"
  | "tasks"
  | "threshold"
  | "topology"
  | "transfers";

class Live {
  connection = $state.raw<Connection>({ state: "connecting" });
  status = $state.raw<LiveStatus | null>(null);
  /** Names of the link directions, in the order of `loads`. */
  links = $state.raw<string[]>([]);
  /** The latest events, the oldest first. */
  events = $state.raw<Arrived[]>([]);
  /** Whether something is shown that is no longer current. */
  isStale = $derived(this.connection.state !== "open" && this.connection.state !== "connecting");
  /** Events that the daemon overwrote before this browser read them. */
  missedEvents = $state(0);
  /** The clock of the browser minus that of the daemon, in milliseconds. */
  clockSkew = $state(0);

  /** Utilisation of each link direction in thousandths, -1 if unknown. Not reactive: it changes ten times a second. */
  loads: Int16Array = new Int16Array();
  /** Index of a link direction in `loads`. */
  index = new Map<string, number>();

  /** The same object as long as the parts are the same. */
  #configuredText = $derived(this.status?.configured.join(" ") ?? "");
  #configured = $derived(new Set(this.#configuredText.split(" ")));

  #frameListeners = new Set<() => void>();
  #eventListeners = new Set<(arrived: Arrived[]) => void>();
  #send: (message: FromTab) => void = () => undefined;

  /** Connects, through the shared worker if the browser has one. */
  start(): void {
    this.#send = connect((message) => this.#receive(message));
    this.#send({ kind: "hello", token: session.token });
    session.onChange((token) => this.#send({ kind: "token", token }));
    setInterval(() => this.#send({ kind: "alive" }), ALIVE_MS);
    document.addEventListener("visibilitychange", () => this.#send({ kind: "visible", visible: !document.hidden }));
    addEventListener("pagehide", () => this.#send({ kind: "bye" }));
    addEventListener("pageshow", (event) => {
      if (event.persisted) this.#send({ kind: "hello", token: session.token });
    });
  }

  /** Calls `listener` after each frame of loads, until the returned function is called. */
  onFrame(listener: () => void): () => void {
    this.#frameListeners.add(listener);
    return () => this.#frameListeners.delete(listener);
  }

  /** Calls `listener` with new events, until the returned function is called. */
  onEvents(listener: (arrived: Arrived[]) => void): () => void {
    this.#eventListeners.add(listener);
    return () => this.#eventListeners.delete(listener);
  }

  /** Returns the utilisation of a link direction from 0 to 1; null if it is unknown. */
  utilisation(link: string): number | null {
    const load = this.loads[this.index.get(link) ?? -1];
    return load === undefined || load < 0 ? null : load / 1_000;
  }

  /** Whether a part is configured; null before the daemon has said so. */
  has(part: Part): boolean | null {
    return this.status === null ? null : this.#configured.has(part);
  }

  /** Returns the time of the daemon's clock in milliseconds since 1970. */
  now(): number {
    return Date.now() - this.clockSkew;
  }

  #receive(message: ToTab): void {
    switch (message.kind) {
      case "connection":
        this.#setConnection(message.connection);
        break;
      case "token":
        if (message.token !== session.token) {
          session.accept(message.token);
          void this.#readAccess();
        }
        break;
      case "links":
        this.links = message.links;
        this.index = new Map(message.links.map((link, index) => [link, index]));
        break;
      case "loads":
        this.loads = message.loads;
        for (const listener of this.#frameListeners) listener();
        break;
      case "status":
        this.status = message.status;
        this.#adjustClock(Date.parse(message.status.time));
        break;
      case "events":
        this.#addEvents(message.events);
        break;
      case "gap":
        this.missedEvents += message.count ?? 0;
        break;
    }
  }

  #setConnection(connection: Connection): void {
    const wasOpen = this.connection.state === "open";
    this.connection = connection;
    if (connection.state === "unauthorised") session.refuse(session.token);
    if (connection.state === "open" && !wasOpen) void this.#readAccess();
  }

  async #readAccess(): Promise<void> {
    try {
      const access = await get("/v1/access");
      [session.name, session.mayWrite] = [access.token ?? null, access.write];
    } catch {
      session.mayWrite = false;
    }
  }

  #adjustClock(daemon: number): void {
    const skew = Date.now() - daemon;
    // Messages take a moment: the fastest one tells the difference of the clocks.
    const isJump = Math.abs(skew - this.clockSkew) > 1_000;
    if (isJump || skew < this.clockSkew) this.clockSkew = skew;
  }

  #addEvents(events: Arrived[]): void {
    // A tab that was hidden gets the latest again.
    const known = this.events.at(-1)?.event;
    const isReplay = events.length > 0 && events.some(({ event }) => event.id === known?.id && event.emitted === known?.emitted);
    const from = isReplay ? events.findLastIndex(({ event }) => event.id === known?.id) + 1 : 0;
    const fresh = events.slice(from);
    if (fresh.length === 0) return;
    this.events = [...this.events, ...fresh].slice(-KEPT_EVENTS);
    for (const listener of this.#eventListeners) listener(fresh);
  }
}

/** Returns what to call to send a message to the connection. */
function connect(take: (message: ToTab) => void): (message: FromTab) => void {
  if (typeof SharedWorker === "undefined") {
    // A connection of this tab's own: some browsers of phones have no shared workers.
    return new LiveSource("/v1/live").add(take);
  }
  const worker = new SharedWorker("/dashboard/worker.js", { type: "module", name: "thalweg" });
  worker.port.onmessage = (event: MessageEvent<ToTab>) => take(event.data);
  worker.port.start();
  return (message) => worker.port.postMessage(message);
}

export const live = new Live();
