// Where the nodes stand. Networks in tiers (star, leaf and spine, fat tree) are drawn in rows, hosts at the bottom; others by forces.

import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationLinkDatum,
  type SimulationNodeDatum,
} from "d3-force";

import type { Graph } from "./graph";

export interface Point {
  x: number;
  y: number;
}

/** Distance of rows, in units of the layout; neighbours in a row of hosts are about one unit apart. */
const ROW = 5;

/** More rows than these, or links within a row, are no network in tiers. */
const MAX_TIERS = 6;

/** Steps of the simulation: enough for it to come to rest. */
const STEPS = 300;

/** Links above which the simulation takes fewer steps, so that the first view is fast. */
const MANY_LINKS = 600;

/** Returns the place of each node. */
export function layout(graph: Graph): Point[] {
  const neighbours = graph.nodes.map((): number[] => []);
  for (const { ends: [a, b] } of graph.links) {
    neighbours[a]!.push(b);
    neighbours[b]!.push(a);
  }
  const tiers = tiersOf(graph, neighbours);
  return tiers === null ? byForces(graph) : inRows(graph, neighbours, tiers);
}

/** Returns the distance of each node from the hosts; null if the network is not one of tiers. */
function tiersOf(graph: Graph, neighbours: number[][]): number[] | null {
  const tiers: number[] = graph.nodes.map((node) => (node.isHost ? 0 : -1));
  let front = graph.nodes.flatMap((node, number) => (node.isHost ? [number] : []));
  for (let tier = 1; front.length > 0; tier += 1) {
    const next: number[] = [];
    for (const number of front) {
      for (const other of neighbours[number]!) {
        if (tiers[other] !== -1) continue;
        tiers[other] = tier;
        next.push(other);
      }
    }
    front = next;
  }
  const isTiered =
    Math.max(...tiers) < MAX_TIERS && tiers.every((tier) => tier >= 0) && graph.links.every(({ ends: [a, b] }) => tiers[a] !== tiers[b]);
  return isTiered && graph.nodes.length > 0 ? tiers : null;
}

/** Places each tier in a row. Hosts stand below their switch; switches above stand above the middle of their neighbours. */
function inRows(graph: Graph, neighbours: number[][], tiers: number[]): Point[] {
  const height = Math.max(...tiers);
  const rows = Array.from({ length: height + 1 }, (_, tier) => graph.nodes.flatMap((_, number) => (tiers[number] === tier ? [number] : [])));
  const byName = new Intl.Collator("en", { numeric: true });
  for (const row of rows) row.sort((a, b) => byName.compare(graph.nodes[a]!.name, graph.nodes[b]!.name));

  const place = new Array<number>(graph.nodes.length).fill(0);
  const spread = (row: number[]) => row.forEach((number, index) => (place[number] = (index + 0.5) / row.length));
  rows.forEach(spread);
  const mean = (number: number, tier: number) => {
    const others = neighbours[number]!.filter((other) => tiers[other] === tier);
    return others.length === 0 ? place[number]! : others.reduce((sum, other) => sum + place[other]!, 0) / others.length;
  };
  // Hosts and their switches stay in the order of their names, which is that of racks and pods. Those above follow them.
  for (let tier = 2; tier <= height; tier += 1) order(rows[tier]!, (number) => mean(number, tier - 1), spread);

  const points = graph.nodes.map((): Point => ({ x: 0, y: 0 }));
  const hostsOf = (number: number) => neighbours[number]!.filter((other) => tiers[other] === 0).sort((a, b) => byName.compare(graph.nodes[a]!.name, graph.nodes[b]!.name));
  // Each switch at the edge is as wide as its hosts in a block.
  const blocks = (rows[1] ?? []).map((number) => ({ number, hosts: hostsOf(number) }));
  const isWide = (rows[0]?.length ?? 0) > 64;
  let x = 0;
  for (const { number, hosts } of blocks) {
    const columns = Math.max(1, isWide ? Math.ceil(Math.sqrt(hosts.length * 1.5)) : hosts.length);
    hosts.forEach((host, index) => {
      const inRow = Math.min(columns, hosts.length - Math.floor(index / columns) * columns);
      points[host] = { x: x + (index % columns) + (columns - inRow) / 2 + 0.5, y: (height - 1) * ROW + ROW * 0.6 + Math.floor(index / columns) * 0.9 };
    });
    points[number] = { x: x + columns / 2, y: (height - 1) * ROW };
    x += columns + 1;
  }
  const width = Math.max(1, x - 1);
  for (let tier = 2; tier <= height; tier += 1) {
    const row = rows[tier]!;
    row.forEach((number, index) => (points[number] = { x: ((index + 0.5) / row.length) * width, y: (height - tier) * ROW }));
  }
  return points;
}

function order(row: number[], key: (number: number) => number, spread: (row: number[]) => void): void {
  const keys = new Map(row.map((number) => [number, key(number)]));
  // Sorting is stable.
  row.sort((a, b) => {
    const difference = keys.get(a)! - keys.get(b)!;
    return Math.abs(difference) < 1e-9 ? 0 : difference;
  });
  spread(row);
}

/** Places nodes by repulsion, and attraction along links. The result is the same each time. */
function byForces(graph: Graph): Point[] {
  const nodes = graph.nodes.map((): SimulationNodeDatum => ({}));
  const links = graph.links.map(({ ends: [source, target] }): SimulationLinkDatum<SimulationNodeDatum> => ({ source, target }));
  const isHost = (number: number) => graph.nodes[number]?.isHost ?? false;
  const simulation = forceSimulation(nodes)
    .force("link", forceLink(links).distance(({ index }) => (isHost(graph.links[index ?? 0]!.ends[0]) ? 1.2 : 3)).strength(0.6))
    .force("charge", forceManyBody<SimulationNodeDatum>().strength((_, number) => (isHost(number) ? -1.5 : -8)))
    .force("collide", forceCollide(0.6))
    .force("x", forceX(0).strength(0.03))
    .force("y", forceY(0).strength(0.05))
    .stop();
  simulation.tick(graph.links.length > MANY_LINKS ? STEPS / 3 : STEPS);
  return nodes.map(({ x = 0, y = 0 }) => ({ x, y }));
}
