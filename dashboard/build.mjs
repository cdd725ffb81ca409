// Builds the page and its shared worker:  node build.mjs [--outDir DIR] [--logLevel LEVEL]

import { parseArgs } from "node:util";
import { build } from "vite";

const { values } = parseArgs({ options: { outDir: { type: "string", default: "dist" }, logLevel: { type: "string", default: "info" } } });

for (const [configFile, emptyOutDir] of [
  ["vite.config.ts", true],
  // It adds to what the page's build has written.
  ["vite.worker.config.ts", false],
]) {
  await build({ configFile, logLevel: values.logLevel, build: { outDir: values.outDir, emptyOutDir } });
}
