// The network as nodes and links between them, from the topology, or from the links of the collectors if there is no topology.

import type { Link } from "../api/types";

export interface GraphNode {
  name: string;
  isHost: boolean;
}

/** A link: both directions between two nodes. */
export interface GraphLink {
  /** Numbers of the nodes at its ends. */
  ends: [number, number];
  /** Its ports, or the name of the host: "edge0:p2 - agg0:p0". */
  title: string;
  /** Names of the link directions from the first end to the second, as the collectors at both ends call them, and back. */
  directions: [string[], string[]];
  /** Capacity in bits per second; null if it is unknown. */
  capacity: number | null;
  /** Whether the topology says that it is down. */
  isDown: boolean;
  /** Where it is drawn beside others between the same nodes: 0 in the middle, 1 a place to the right. */
  lane: number;
}

/** Where a link direction is: the number of the link, and 0 from its first end, 1 from its second. */
export interface Direction {
  link: number;
  side: 0 | 1;
}

export interface Graph {
  nodes: GraphNode[];
  links: GraphLink[];
  /** By the name of a link direction. */
  directions: Map<string, Direction>;
  /** By the title of a link, or of a port at its end. */
  byPort: Map<string, number>;
  nodeByName: Map<string, number>;
}

/** The parts of a topology file that the page needs. */
export interface TopologyFile {
  router?: { name: string }[];
  endpoint?: { name: string; router: string; port?: string }[];
  link?: { between: [string, string]; ports?: [string, string] }[];
  link_state?: { down?: string[] };
}

/** Makes the graph of a topology; `measured` are the links of the collectors. */
export function graphOf(topology: TopologyFile | null, measured: Link[]): Graph {
  const graph = topology?.router === undefined ? graphOfLinks(measured) : graphOfTopology(topology, measured);
  setLanes(graph);
  return graph;
}

function emptyGraph(): Graph {
  return { nodes: [], links: [], directions: new Map(), byPort: new Map(), nodeByName: new Map() };
}

function addNode(graph: Graph, name: string, isHost: boolean): number {
  const known = graph.nodeByName.get(name);
  if (known !== undefined) return known;
  graph.nodes.push({ name, isHost });
  graph.nodeByName.set(name, graph.nodes.length - 1);
  return graph.nodes.length - 1;
}

function addLink(graph: Graph, link: Omit<GraphLink, "lane">): void {
  const number = graph.links.length;
  graph.links.push({ ...link, lane: 0 });
  graph.byPort.set(link.title, number);
  link.directions.forEach((names, side) => {
    for (const name of names) {
      graph.directions.set(name, { link: number, side: side as 0 | 1 });
      graph.byPort.set(name.replace(/:(in|out)$/, ""), number);
    }
  });
}

/** Spreads links between the same two nodes. */
function setLanes(graph: Graph): void {
  const groups = new Map<string, GraphLink[]>();
  for (const link of graph.links) {
    const key = link.ends.toSorted((a, b) => a - b).join();
    groups.set(key, [...(groups.get(key) ?? []), link]);
  }
  for (const group of groups.values()) {
    const least = Math.min(...group[0]!.ends);
    // The right of a link is the left of one that was named the other way round.
    group.forEach((link, place) => (link.lane = (place - (group.length - 1) / 2) * (link.ends[0] === least ? 1 : -1)));
  }
}

/**
 * The ports of a router are numbered in the order of the file: first those to endpoints, then those to routers
 * (docs/reference/topology-file.md).
 */
function graphOfTopology({ router = [], endpoint = [], link = [], link_state }: TopologyFile, measured: Link[]): Graph {
  const graph = emptyGraph();
  for (const { name } of router) addNode(graph, name, false);
  const ports = new Map<string, number>();
  const capacities = new Map(measured.map((link) => [link.link, link.capacity_bps]));
  const named = new Map(measured.map((link) => [`${link.switch}:p${link.port}`, link.port_name ?? null]));
  const next = (router: string) => {
    const port = ports.get(router) ?? 0;
    ports.set(router, port + 1);
    return `${router}:p${port}`;
  };
  const add = (ends: [number, number], from: string | null, to: string, title: string, aliases: (string | null | undefined)[]) => {
    const directions: [string[], string[]] = [
      [...(from === null ? [] : [`${from}:out`]), `${to}:in`],
      [`${to}:out`, ...(from === null ? [] : [`${from}:in`])],
    ];
    const capacity = directions.flat().map((name) => capacities.get(name)).find((value) => value !== undefined) ?? null;
    addLink(graph, { ends, title, directions, capacity, isDown: false });
    for (const alias of aliases) if (alias) graph.byPort.set(alias, graph.links.length - 1);
  };
  const alias = (port: string) => {
    const name = named.get(port);
    return name ? `${port.slice(0, port.lastIndexOf(":"))}:${name}` : null;
  };
  for (const { name, router, port } of endpoint) {
    const [at, host] = [graph.nodeByName.get(router), addNode(graph, name, true)];
    if (at === undefined) continue;
    const to = next(router);
    add([host, at], null, to, `${name} - ${to}`, [alias(to), port ? `${router}:${port}` : null, `${name} - ${alias(to) ?? to}`]);
  }
  for (const { between: [a, b], ports: names } of link) {
    const ends = [graph.nodeByName.get(a), graph.nodeByName.get(b)] as const;
    if (ends[0] === undefined || ends[1] === undefined) continue;
    const [from, to] = [next(a), next(b)];
    const both = `${alias(from) ?? from} - ${alias(to) ?? to}`;
    add([ends[0], ends[1]], from, to, `${from} - ${to}`, [alias(from), alias(to), both, names && `${a}:${names[0]}`, names && `${b}:${names[1]}`]);
  }
  for (const port of link_state?.down ?? []) {
    const number = graph.byPort.get(port);
    if (number !== undefined) graph.links[number]!.isDown = true;
  }
  return graph;
}

/** Without a topology each port of a switch leads to a peer of its own, or to nobody known. */
function graphOfLinks(measured: Link[]): Graph {
  const graph = emptyGraph();
  const seen = new Set<string>();
  for (const link of measured) addNode(graph, link.switch, false);
  for (const link of measured) {
    const port = `${link.switch}:p${link.port}`;
    if (seen.has(port)) continue;
    seen.add(port);
    const peer = addNode(graph, link.peer ?? (link.port_name ? `${link.switch}:${link.port_name}` : port), true);
    const ends: [number, number] = [peer, graph.nodeByName.get(link.switch)!];
    const directions: [string[], string[]] = [[`${port}:in`], [`${port}:out`]];
    addLink(graph, { ends, title: port, directions, capacity: link.capacity_bps, isDown: false });
  }
  return graph;
}
