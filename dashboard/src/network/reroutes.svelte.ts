// Reroutes of the controller: what it expected, what became of it, and the paths before and after.

import { get } from "../api/client";
import { filterOf, parseFlowKey } from "../api/flow_key";
import type { EventOf, Schemas } from "../api/types";
import { live } from "../live/live.svelte";
import type { Arrived } from "../live/protocol";

/** Reroutes that are kept. */
const KEPT = 200;

/** How long after a reroute its rate is read: the estimates of an emulated network follow slowly. */
const SETTLE_MS = 2_500;

/** Reroutes whose rates may be read at a time. */
const MAX_PENDING = 4;

/** How long the paths of a pair are used again. */
const PATHS_MS = 30_000;

export interface Reroute {
  id: number;
  src: string;
  dst: string;
  fromTree: number;
  tree: number;
  /** When the browser learned of it; 0 if that was before it connected. */
  at: number;
  /** Time of the decision. */
  time: string;
  /** The link whose congestion caused it; null for others. */
  cause: string | null;
  /** The rate that was expected on the new path, and on the old one. */
  expectedBps: number | null;
  insteadBps: number | null;
  /** Sum of the rates of the pair's flows after it; null if it was not read. */
  afterBps: number | null;
  outcome: Schemas["Outcome"] | "decided";
  decisionToPathNs: number | null;
  error: string | null;
  oldLinks: string[];
  newLinks: string[];
}

class Reroutes {
  /** The latest, the newest first. */
  list = $state.raw<Reroute[]>([]);

  #paths = new Map<string, { read: number; paths: Promise<Schemas["Paths"]> }>();
  #pending = 0;

  constructor() {
    this.#take(live.events);
    live.onEvents((arrived) => this.#take(arrived));
  }

  /** Returns the paths between two hosts. */
  paths(src: string, dst: string): Promise<Schemas["Paths"]> {
    const key = `${src}>${dst}`;
    const known = this.#paths.get(key);
    if (known !== undefined && Date.now() - known.read < PATHS_MS) return known.paths;
    const paths = get("/v1/control/paths/{src}/{dst}", { path: { src, dst } });
    if (this.#paths.size > 500) this.#paths.clear();
    this.#paths.set(key, { read: Date.now(), paths });
    paths.catch(() => this.#paths.delete(key));
    return paths;
  }

  /** Reads the paths of a reroute that it lacks. */
  async complete(reroute: Reroute): Promise<Reroute> {
    if (reroute.newLinks.length > 0) return reroute;
    const { paths } = await this.paths(reroute.src, reroute.dst);
    const linksOf = (tree: number) => paths.find((path) => path.tree === tree)?.links ?? [];
    return this.#change(reroute.id, { oldLinks: linksOf(reroute.fromTree), newLinks: linksOf(reroute.tree) }) ?? reroute;
  }

  #take(arrived: Arrived[]): void {
    let list = this.list;
    for (const { event, at } of arrived) {
      if (event.type === "decision" && event.verdict === "reroute") {
        list = [fromDecision(event, at), ...list.filter((known) => known.id !== event.id)].slice(0, KEPT);
      } else if (event.type === "action") {
        list = withOutcome(list, event);
        if (event.outcome === "confirmed" && at > 0) this.#measureLater(list, event);
      }
    }
    if (list === this.list) return;
    this.list = list;
    // The map shows those that have just been decided.
    for (const reroute of list.slice(0, 8)) {
      if (reroute.at > 0 && reroute.newLinks.length === 0) void this.complete(reroute).catch(() => undefined);
    }
  }

  #measureLater(list: Reroute[], { src, dst, tree }: EventOf<"action">): void {
    const reroute = list.find((known) => known.src === src && known.dst === dst && known.tree === tree);
    if (reroute === undefined || this.#pending >= MAX_PENDING) return;
    this.#pending += 1;
    setTimeout(() => {
      void this.#measure(reroute)
        .catch(() => undefined)
        .finally(() => (this.#pending -= 1));
    }, SETTLE_MS);
  }

  /** Reads the rate of the flows that were rerouted. Several collectors see a flow: the greatest rate counts. */
  async #measure({ id, src, dst }: Reroute): Promise<void> {
    const { flows } = await get("/v1/control/paths/{src}/{dst}", { path: { src, dst } });
    const rateOf = async (key: string) => {
      const parts = parseFlowKey(key);
      if (parts === null) return 0;
      // A list, because the flow may have ended.
      const seen = await get("/v1/flows", { query: { filter: filterOf(parts), limit: 20 } });
      return Math.max(0, ...seen.flows.map((flow) => flow.rate_bps ?? 0));
    };
    const rates = await Promise.all(flows.slice(0, 4).map(({ key }) => rateOf(key)));
    if (rates.length > 0) this.#change(id, { afterBps: rates.reduce((sum, rate) => sum + rate, 0) });
  }

  #change(id: number, changes: Partial<Reroute>): Reroute | undefined {
    this.list = this.list.map((reroute) => (reroute.id === id ? { ...reroute, ...changes } : reroute));
    return this.list.find((reroute) => reroute.id === id);
  }
}

function fromDecision(event: EventOf<"decision">, at: number): Reroute {
  const expected = (wanted: number) => event.alternatives.find(({ tree }) => tree === wanted)?.expected_rate_bps ?? null;
  return {
    id: event.id,
    src: event.src,
    dst: event.dst,
    fromTree: event.from_tree,
    tree: event.tree,
    at,
    time: event.time,
    cause: event.link ?? null,
    expectedBps: expected(event.tree),
    insteadBps: expected(event.from_tree),
    afterBps: null,
    outcome: "decided",
    decisionToPathNs: null,
    error: null,
    oldLinks: [],
    newLinks: [],
  };
}

function withOutcome(list: Reroute[], event: EventOf<"action">): Reroute[] {
  const number = list.findIndex(({ src, dst, tree }) => src === event.src && dst === event.dst && tree === event.tree);
  if (number < 0) return list;
  const changes = { outcome: event.outcome, decisionToPathNs: event.decision_to_path_ns ?? null, error: event.error ?? null };
  return list.map((reroute, index) => (index === number ? { ...reroute, ...changes } : reroute));
}

export const reroutes = new Reroutes();
