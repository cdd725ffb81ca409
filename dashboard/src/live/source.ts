// The connection to the daemon: one for all tabs of a browser, because a browser opens at most six to an HTTP/1.1 server.
//
// It keeps the state that a new tab needs: the latest loads, the status, and the latest events.

import type { Event, LiveLinks, LiveLoads, LiveStatus, Problem } from "../api/types";
import { readMessages, type Message } from "./event_stream";
import type { Arrived, Connection, FromTab, ToTab } from "./protocol";

/** Events that a new tab gets. */
const KEPT_EVENTS = 2_000;

/** The daemon sends a status each second: without one for as long, the connection is silent, and then is opened again. */
const SILENT_MS = 3_500;
const DEAD_MS = 12_000;

/** First and longest pause before the next attempt. */
const RETRY_MS = [250, 5_000] as const;

/** A tab that has not been heard of for so long is gone. */
const TAB_TIMEOUT_MS = 90_000;

interface Tab {
  send: (message: ToTab) => void;
  isVisible: boolean;
  heard: number;
}

/** The shared connection. */
export class LiveSource {
  #tabs = new Map<object, Tab>();
  #token: string | null = null;
  #connection: Connection = { state: "connecting" };
  #abort: AbortController | null = null;
  #retry: ReturnType<typeof setTimeout> | null = null;
  #attempts = 0;
  #heard = 0;
  /** Where to resume; "0" asks for all events that the daemon has kept. */
  #lastId = "0";
  #isFirst = true;

  #list = -1;
  #links: string[] = [];
  #loads = new Int16Array();
  #time = 0;
  #status: LiveStatus | null = null;
  #events: Arrived[] = [];

  constructor(private readonly url: string) {
    setInterval(() => this.#watch(), 500);
  }

  /** Adds a tab. Returns what to call with its messages. */
  add(send: (message: ToTab) => void): (message: FromTab) => void {
    const key = {};
    const tab: Tab = { send, isVisible: true, heard: Date.now() };
    return (message) => {
      tab.heard = Date.now();
      if (!this.#tabs.has(key) && message.kind !== "bye") {
        this.#tabs.set(key, tab);
        this.#welcome(tab);
      }
      this.#take(key, tab, message);
    };
  }

  #take(key: object, tab: Tab, message: FromTab): void {
    switch (message.kind) {
      case "hello":
        if (this.#token === null && message.token !== null) this.#signIn(message.token);
        else tab.send({ kind: "token", token: this.#token });
        this.#open();
        break;
      case "token":
        this.#signIn(message.token);
        this.#open();
        break;
      case "visible":
        tab.isVisible = message.visible;
        if (tab.isVisible) this.#welcome(tab);
        break;
      case "alive":
        break;
      case "bye":
        this.#remove(key);
        break;
    }
  }

  #remove(key: object): void {
    this.#tabs.delete(key);
    if (this.#tabs.size === 0) this.#close();
  }

  /** Sends a tab what it needs to show the present. */
  #welcome(tab: Tab): void {
    tab.send({ kind: "connection", connection: this.#connection });
    if (this.#links.length > 0) tab.send({ kind: "links", links: this.#links });
    if (this.#loads.length > 0) tab.send({ kind: "loads", loads: this.#loads, time: this.#time });
    if (this.#status !== null) tab.send({ kind: "status", status: this.#status });
    tab.send({ kind: "events", events: this.#events });
  }

  #broadcast(message: ToTab, onlyVisible = false): void {
    for (const tab of this.#tabs.values()) {
      if (tab.isVisible || !onlyVisible) tab.send(message);
    }
  }

  #signIn(token: string | null): void {
    this.#token = token;
    // What another token was allowed to see is not for this one.
    this.#forget();
    this.#close();
    this.#broadcast({ kind: "token", token });
  }

  #forget(): void {
    this.#list = -1;
    this.#links = [];
    this.#loads = new Int16Array();
    this.#status = null;
    this.#events = [];
    this.#lastId = "0";
    this.#isFirst = true;
  }

  #set(connection: Connection): void {
    this.#connection = connection;
    this.#broadcast({ kind: "connection", connection });
  }

  #close(): void {
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    this.#abort?.abort();
    this.#abort = null;
  }

  /** Connects, unless it is connected or will retry. */
  #open(): void {
    if (this.#abort !== null || this.#retry !== null) return;
    const abort = new AbortController();
    this.#abort = abort;
    this.#heard = Date.now();
    if (this.#connection.state !== "lost") this.#set({ state: "connecting" });
    this.#read(abort).then(
      () => this.#ended(abort, "The daemon closed the connection."),
      (error: unknown) => this.#ended(abort, error instanceof Refused ? error : "The daemon does not answer."),
    );
  }

  async #read(abort: AbortController): Promise<void> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (this.#token !== null) headers.Authorization = `Bearer ${this.#token}`;
    const url = `${this.url}?after=${encodeURIComponent(this.#lastId)}`;
    const options: RequestInit = { headers, signal: abort.signal, cache: "no-store", credentials: "omit" };
    const response = await fetch(url, options);
    if (!response.ok || response.body === null) throw await refusal(response);
    this.#heard = Date.now();
    await readMessages(response.body, (messages) => {
      if (this.#abort === abort) this.#receive(messages);
    });
  }

  #ended(abort: AbortController, reason: string | Refused): void {
    if (this.#abort !== abort) return;
    this.#abort = null;
    if (reason instanceof Refused && (reason.status === 401 || reason.status === 403)) {
      this.#forget();
      this.#set({ state: "unauthorised", reason: reason.message });
      return;
    }
    const [least, most] = RETRY_MS;
    const pause = Math.min(least * 2 ** this.#attempts, most) * (0.75 + Math.random() / 2);
    const wait = Math.max(pause, reason instanceof Refused ? reason.retryAfterMs : 0);
    this.#attempts += 1;
    this.#set({ state: "lost", reason: reason instanceof Refused ? reason.message : reason, retryAt: Date.now() + wait });
    this.#retry = setTimeout(() => {
      this.#retry = null;
      if (this.#tabs.size > 0) this.#open();
    }, wait);
  }

  #receive(messages: Message[]): void {
    this.#heard = Date.now();
    if (this.#connection.state !== "open") {
      this.#attempts = 0;
      this.#set({ state: "open" });
    }
    const events: Arrived[] = [];
    for (const message of messages) {
      if (message.id !== null) this.#lastId = message.id;
      if (message.data !== "") this.#message(message, events);
    }
    if (events.length > 0) {
      this.#events = [...this.#events, ...events].slice(-KEPT_EVENTS);
      this.#broadcast({ kind: "events", events });
    }
  }

  #message({ event, data }: Message, events: Arrived[]): void {
    const value: unknown = JSON.parse(data);
    switch (event) {
      case "links": {
        const { list, links } = value as LiveLinks;
        [this.#list, this.#links, this.#loads] = [list, links, new Int16Array(links.length).fill(-1)];
        this.#broadcast({ kind: "links", links });
        break;
      }
      case "loads":
        this.#update(value as LiveLoads);
        break;
      case "status":
        this.#status = value as LiveStatus;
        // All that came before the first status was in the backlog.
        this.#isFirst = false;
        this.#broadcast({ kind: "status", status: this.#status });
        break;
      case "lost":
        // What happened before this browser connected for the first time is not missing.
        if (this.#isFirst) break;
        this.#broadcast({ kind: "gap", count: (value as { count?: number | null }).count ?? null });
        break;
      default:
        events.push({ event: value as Event, at: this.#isFirst ? 0 : Date.now() });
    }
  }

  #update({ list, time, loads, changed }: LiveLoads): void {
    if (list !== this.#list) return;
    if (loads) this.#loads.set(loads.slice(0, this.#loads.length));
    for (let index = 0; changed && index + 1 < changed.length; index += 2) {
      this.#loads[changed[index]!] = changed[index + 1]!;
    }
    this.#time = Date.parse(time);
    this.#broadcast({ kind: "loads", loads: this.#loads, time: this.#time }, true);
  }

  /** Notices a silent daemon and tabs that are gone. */
  #watch(): void {
    const now = Date.now();
    for (const [key, tab] of this.#tabs) {
      if (now - tab.heard > TAB_TIMEOUT_MS) this.#remove(key);
    }
    if (this.#abort === null) return;
    const silence = now - this.#heard;
    if (silence > DEAD_MS) {
      this.#abort.abort();
      this.#ended(this.#abort, "The daemon has sent nothing for some seconds.");
    } else if (silence > SILENT_MS && this.#connection.state === "open") {
      this.#set({ state: "silent" });
    }
  }
}

/** The daemon refused the connection. */
class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly retryAfterMs: number,
  ) {
    super(message);
  }
}

async function refusal(response: Response): Promise<Refused> {
  const retryAfterMs = Number(response.headers.get("Retry-After") ?? 0) * 1_000;
  const problem = (await response.json().catch(() => ({}))) as Partial<Problem>;
  const message = problem.detail ?? `The daemon answered with status ${response.status}.`;
  return new Refused(message, response.status, retryAfterMs);
}
