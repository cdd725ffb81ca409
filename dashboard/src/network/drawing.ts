// Draws the network on a canvas. Ten times a second it draws thousands of lines, so lines of one colour are one path.

import { UNKNOWN_LOAD, loadColours } from "../ui/palette";
import type { Camera } from "./camera";
import type { Graph } from "./graph";
import type { Point } from "./layout";

/** A path through the network that stands out: the old or the new one of a reroute, or that of a flow. */
export interface Trace {
  /** Names of the link directions. */
  links: string[];
  kind: "old" | "new" | "flow";
  /** Opacity from 0 to 1. */
  opacity: number;
}

export interface Scene {
  graph: Graph;
  points: Point[];
  camera: Camera;
  /** Returns the load of a link direction in thousandths; -1 if it is unknown. */
  loadOf: (link: number, side: 0 | 1) => number;
  /** Whether a link is down. */
  isDown: (link: number) => boolean;
  /** Whether packets were lost at a link in the last interval. */
  isLossy: (link: number) => boolean;
  selected: number | null;
  hovered: number | null;
  isDark: boolean;
  width: number;
  height: number;
}

/** A line on the screen. */
interface Segment {
  ax: number;
  ay: number;
  bx: number;
  by: number;
}

/** Distance of parallel links, in pixels. */
const LANE_WIDTH = 14;

const COLOURS = { light: loadColours(false), dark: loadColours(true) };

/** Returns the line of a link direction: beside the middle, on the right of its direction. */
function segment(scene: Scene, link: number, side: 0 | 1, gap: number): Segment {
  const { ends: [a, b], lane } = scene.graph.links[link]!;
  const [from, to] = side === 0 ? [a, b] : [b, a];
  const shift = gap + (side === 0 ? lane : -lane) * LANE_WIDTH;
  const start = scene.camera.toScreen(scene.points[from]!);
  const end = scene.camera.toScreen(scene.points[to]!);
  const [dx, dy] = [end.x - start.x, end.y - start.y];
  const length = Math.hypot(dx, dy) || 1;
  const [ox, oy] = [(-dy / length) * shift, (dx / length) * shift];
  return { ax: start.x + ox, ay: start.y + oy, bx: end.x + ox, by: end.y + oy };
}

/** Returns the distance between the lines of the two directions. */
function gapOf(scene: Scene): number {
  return Math.min(4, Math.max(0.7, scene.camera.scale * 0.06));
}

/** Returns a factor below one for networks with so many links that wide lines would cover each other. */
function density(scene: Scene): number {
  return Math.min(1, Math.max(0.3, Math.sqrt(250 / (scene.graph.links.length || 1))));
}

/** Returns the width of a line by its load in hundredths. */
function widthOf(scene: Scene, hundredths: number): number {
  const unit = Math.min(3, Math.max(0.8, scene.camera.scale * 0.05)) * density(scene);
  return hundredths > 100 ? unit * 0.7 : unit * (0.5 + (hundredths / 100) * 1.6);
}

/** Draws links and nodes. */
export function draw(context: CanvasRenderingContext2D, scene: Scene): void {
  context.clearRect(0, 0, scene.width, scene.height);
  drawLinks(context, scene);
  drawNodes(context, scene);
}

function drawLinks(context: CanvasRenderingContext2D, scene: Scene): void {
  const colours = scene.isDark ? COLOURS.dark : COLOURS.light;
  const gap = gapOf(scene);
  const paths: (Path2D | undefined)[] = [];
  const down = new Path2D();
  const marked = new Path2D();
  const lossy: Segment[] = [];
  scene.graph.links.forEach((_, link) => {
    for (const side of [0, 1] as const) {
      const line = segment(scene, link, side, gap);
      if (scene.isDown(link)) {
        add(down, line);
        continue;
      }
      const load = scene.loadOf(link, side);
      const colour = load < 0 ? UNKNOWN_LOAD : Math.min(100, Math.round(load / 10));
      add((paths[colour] ??= new Path2D()), line);
      if (link === scene.selected || link === scene.hovered) add(marked, line);
      if (side === 0 && scene.isLossy(link)) lossy.push(line);
    }
  });
  context.lineCap = "butt";
  context.setLineDash([]);
  context.lineWidth = 3 * gap + 4;
  context.strokeStyle = scene.isDark ? "rgba(108,192,245,0.35)" : "rgba(0,95,158,0.22)";
  context.stroke(marked);
  // Full links last, on top of the others.
  paths.forEach((path, colour) => {
    if (path === undefined) return;
    context.strokeStyle = colours[colour]!;
    context.lineWidth = widthOf(scene, colour);
    context.stroke(path);
  });
  const bad = scene.isDark ? "#ff9a8d" : "#a31621";
  context.strokeStyle = bad;
  context.lineWidth = 1.2;
  context.setLineDash([4, 4]);
  context.stroke(down);
  context.setLineDash([]);
  // A cross at links that are down, a dot at those with losses: colour alone is not enough.
  scene.graph.links.forEach((_, link) => {
    if (scene.isDown(link)) cross(context, middle(segment(scene, link, 0, 0)), bad);
  });
  for (const line of lossy) dot(context, middle(line), scene.isDark ? "#ffc267" : "#8a5200");
}

function add(path: Path2D, { ax, ay, bx, by }: Segment): void {
  path.moveTo(ax, ay);
  path.lineTo(bx, by);
}

function middle({ ax, ay, bx, by }: Segment): Point {
  return { x: (ax + bx) / 2, y: (ay + by) / 2 };
}

function cross(context: CanvasRenderingContext2D, { x, y }: Point, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  context.moveTo(x - 5, y - 5);
  context.lineTo(x + 5, y + 5);
  context.moveTo(x + 5, y - 5);
  context.lineTo(x - 5, y + 5);
  context.stroke();
}

function dot(context: CanvasRenderingContext2D, { x, y }: Point, colour: string): void {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, 4, 0, 2 * Math.PI);
  context.fill();
}

function drawNodes(context: CanvasRenderingContext2D, scene: Scene): void {
  const { camera, graph, isDark } = scene;
  const size = Math.min(11, Math.max(2, camera.scale * 0.2));
  const panel = isDark ? "#1e2a36" : "#ffffff";
  const line = isDark ? "#a9b8c6" : "#4a5866";
  context.lineWidth = 1.2;
  context.strokeStyle = line;
  const hosts = new Path2D();
  const switches = new Path2D();
  graph.nodes.forEach(({ isHost }, number) => {
    const { x, y } = camera.toScreen(scene.points[number]!);
    if (isHost) {
      hosts.moveTo(x + size * 0.6, y);
      hosts.arc(x, y, size * 0.6, 0, 2 * Math.PI);
    } else {
      switches.roundRect(x - size, y - size * 0.75, size * 2, size * 1.5, size * 0.35);
    }
  });
  context.fillStyle = panel;
  context.fill(switches);
  context.stroke(switches);
  context.fillStyle = line;
  context.fill(hosts);
  drawNames(context, scene, size);
}

/** Writes names where there is room for them. */
function drawNames(context: CanvasRenderingContext2D, scene: Scene, size: number): void {
  const { camera, graph, isDark } = scene;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  context.fillStyle = isDark ? "#e6edf3" : "#16212b";
  context.strokeStyle = isDark ? "#17212b" : "#ffffff";
  context.lineWidth = 3;
  context.lineJoin = "round";
  // Ends of the names in each row, so that names do not cover each other.
  const taken = new Map<number, number>();
  const numbers = graph.nodes.map((_, number) => number);
  const places = numbers.map((number) => camera.toScreen(scene.points[number]!));
  numbers.sort((a, b) => places[a]!.x - places[b]!.x);
  for (const number of numbers) {
    const { name, isHost } = graph.nodes[number]!;
    const { x, y } = places[number]!;
    if (x < -50 || y < -20 || x > scene.width + 50 || y > scene.height + 20) continue;
    const below = Math.round(isHost ? y + size * 0.6 + 11 : y - size - 4);
    const half = Math.min(name.length, 24) * 3 + 2;
    if (x - half < (taken.get(below) ?? -Infinity)) continue;
    taken.set(below, x + half);
const shown = name.length > 24 ? `${name.slice(0, 23)}…` : name;
    // A halo, so that names can be read above lines.
    context.strokeText(shown, x, below);
    context.fillText(shown, x, below);
  }
}

/** Draws paths that stand out, in a layer of its own. `phase` moves the dashes of new paths. */
export function drawTraces(context: CanvasRenderingContext2D, scene: Scene, traces: Trace[], phase: number): void {
  context.clearRect(0, 0, scene.width, scene.height);
  const gap = gapOf(scene);
  for (const { links, kind, opacity } of traces) {
    const path = new Path2D();
    for (const name of links) {
      const direction = scene.graph.directions.get(name);
      if (direction !== undefined) add(path, segment(scene, direction.link, direction.side, gap));
    }
    context.globalAlpha = opacity;
    context.lineCap = "round";
    if (kind === "old") {
      context.strokeStyle = scene.isDark ? "#ff9a8d" : "#a31621";
      context.setLineDash([2, 6]);
      context.lineWidth = 3;
      context.lineDashOffset = 0;
    } else {
      context.strokeStyle = kind === "new" ? (scene.isDark ? "#54d3a6" : "#00694a") : scene.isDark ? "#6cc0f5" : "#005f9e";
      context.setLineDash(kind === "new" ? [10, 6] : []);
      context.lineWidth = kind === "new" ? 3 : 4;
      context.lineDashOffset = -phase;
    }
    context.stroke(path);
  }
  context.globalAlpha = 1;
  context.setLineDash([]);
}

/** Returns the link nearest to a point of the screen, at most 12 pixels away. */
export function linkAt(scene: Scene, { x, y }: Point): number | null {
  let [nearest, least] = [null as number | null, 12];
  scene.graph.links.forEach((_, link) => {
    const { ax, ay, bx, by } = segment(scene, link, 0, 0);
    const [dx, dy] = [bx - ax, by - ay];
    const along = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
    const distance = Math.hypot(x - ax - along * dx, y - ay - along * dy);
    if (distance < least) [nearest, least] = [link, distance];
  });
  return nearest;
}
