// Which part of the layout the map shows.

import type { Point } from "./layout";

/** Largest distance of two hosts that are one unit apart, in pixels. */
const MAX_SCALE = 120;

/** Space around the network, in pixels: for the buttons on the right, and names below the hosts. */
const MARGIN = { x: 58, y: 42 };

/** Most that rows are drawn apart, compared with columns: wide networks of a few tiers need much. */
const MAX_STRETCH = 12;

export class Camera {
  /** Pixels per unit. */
  scale = 1;
  x = 0;
  y = 0;

  /** Shows the whole network. Rows and columns may have different scales, so that wide networks fill the map. */
  fit(points: Point[], width: number, height: number): void {
    if (points.length === 0) return;
    const [left, right] = extent(points.map((point) => point.x));
    const [top, bottom] = extent(points.map((point) => point.y));
    const fits = (size: number, span: number) => (span === 0 ? MAX_SCALE : Math.max(1, size) / span);
    const [inner, high] = [width - 2 * MARGIN.x, height - 2 * MARGIN.y];
    this.scale = Math.min(MAX_SCALE, fits(inner, right - left));
    this.stretch = Math.min(MAX_SCALE, fits(high, bottom - top)) / this.scale;
    this.stretch = Math.min(MAX_STRETCH, Math.max(1 / MAX_STRETCH, this.stretch));
    this.scale = Math.min(this.scale, fits(high, bottom - top) / this.stretch);
    this.x = width / 2 - ((left + right) / 2) * this.scale;
    this.y = height / 2 - ((top + bottom) / 2) * this.scale * this.stretch;
  }

  /** Vertical scale by horizontal scale. */
  stretch = 1;

  toScreen({ x, y }: Point): Point {
    return { x: this.x + x * this.scale, y: this.y + y * this.scale * this.stretch };
  }

  /** Zooms by a factor about a point of the screen. */
  zoom(factor: number, at: Point): void {
    const scale = Math.min(MAX_SCALE * 4, Math.max(0.2, this.scale * factor));
    const applied = scale / this.scale;
    this.x = at.x - (at.x - this.x) * applied;
    this.y = at.y - (at.y - this.y) * applied;
    this.scale = scale;
  }

  pan(dx: number, dy: number): void {
    this.x += dx;
    this.y += dy;
  }
}

function extent(values: number[]): [number, number] {
  return values.reduce(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
}
