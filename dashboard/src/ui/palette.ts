// Colours that people with the usual kinds of colour blindness can tell apart (after Okabe and Ito, 2008), for both themes.

const LIGHT = ["#0072b2", "#d55e00", "#007a5a", "#b0508a", "#8a6d00", "#3f8fc4", "#5b5b5b", "#7a3e9d"];
const DARK = ["#56b4e9", "#ff9e4a", "#2ec4a0", "#e29bc6", "#f0e442", "#9ad0f5", "#c8c8c8", "#c9a2e8"];

/** Returns the colours of the lines of a plot. */
export function plotColours(isDark: boolean): string[] {
  return isDark ? DARK : LIGHT;
}

/** Colours of a load: from hardly visible to one that stands out, also in lightness. */
const LOAD_LIGHT: [number, number, number][] = [
  [196, 206, 214],
  [96, 160, 208],
  [0, 98, 168],
  [214, 124, 0],
  [176, 32, 32],
];
const LOAD_DARK: [number, number, number][] = [
  [58, 72, 86],
  [52, 112, 156],
  [86, 180, 233],
  [255, 178, 44],
  [255, 96, 64],
];
/** Load at which each colour stands. */
const STOPS = [0, 0.25, 0.6, 0.8, 1];

/** Returns a table of CSS colours of loads in hundredths, and of an unknown one at its end. */
export function loadColours(isDark: boolean): string[] {
  const stops = isDark ? LOAD_DARK : LOAD_LIGHT;
  const table = Array.from({ length: 101 }, (_, hundredths) => mix(stops, hundredths / 100));
  return [...table, isDark ? "#6b5b7b" : "#b9a9c9"];
}

/** Returns the colours of loads from idle to full, as a CSS background. */
export function loadRamp(isDark: boolean): string {
  const stops = isDark ? LOAD_DARK : LOAD_LIGHT;
  return `linear-gradient(90deg, ${stops.map((colour, place) => `rgb(${colour.join()}) ${STOPS[place]! * 100}%`).join(", ")})`;
}

/** Index of the colour of an unknown load. */
export const UNKNOWN_LOAD = 101;

function mix(stops: [number, number, number][], load: number): string {
  const next = Math.max(1, STOPS.findIndex((stop) => stop >= load));
  const [low, high] = [STOPS[next - 1]!, STOPS[next]!];
  const share = (load - low) / (high - low);
  const channel = (place: 0 | 1 | 2) => Math.round(stops[next - 1]![place] * (1 - share) + stops[next]![place] * share);
  return `rgb(${channel(0)},${channel(1)},${channel(2)})`;
}
