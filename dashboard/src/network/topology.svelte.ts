// The graph of the network and where its nodes stand. It changes when the topology or the links of collectors do.

import { ApiError, get } from "../api/client";
import { live } from "../live/live.svelte";
import { graphOf, type Graph, type TopologyFile } from "./graph";
import { layout, type Point } from "./layout";
import type { Link } from "../api/types";

export interface NetworkMapData {
  graph: Graph;
  points: Point[];
  links: Link[];
  hasTopology: boolean;
}

/** Reads the graph. */
export async function readGraph(signal: AbortSignal): Promise<NetworkMapData> {
  const [links, topology] = await Promise.all([get("/v1/links", { signal }), readTopology(signal)]);
  const graph = graphOf(topology, links.links);
  return { graph, points: layout(graph), links: links.links, hasTopology: topology !== null };
}

async function readTopology(signal: AbortSignal): Promise<TopologyFile | null> {
  if (live.has("topology") === false) return null;
  try {
    return (await get("/v1/topology", { signal })).network as TopologyFile;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

/** Returns the numbers of the links that are down: by the topology, or by what the controller knows. */
export function downLinks(graph: Graph): Set<number> {
  const down = new Set(graph.links.flatMap(({ isDown }, number) => (isDown ? [number] : [])));
  for (const name of live.status?.control?.failed_links ?? []) {
    const ends = name.split(" - ");
    const number = [name, ...ends].map((port) => graph.byPort.get(port)).find((number) => number !== undefined);
    if (number !== undefined) down.add(number);
  }
  return down;
}
