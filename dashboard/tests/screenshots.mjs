// Makes the pictures in the documentation:  node tests/screenshots.mjs DIRECTORY

import { join } from "node:path";

import { openPage, startBrowser, waitUntilLive } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const [directory = "."] = process.argv.slice(2);

const daemon = await Daemon.start("rerouting");
const browser = await startBrowser();
try {
  const context = await browser.newContext({ viewport: { width: 1400, height: 860 }, colorScheme: "light" });
  const page = await openPage(context, daemon.url);
  await waitUntilLive(page);
  // A reroute that has just been decided, with its rates, and others whose rates are known.
  await page.locator("[data-reroute]", { hasText: ", now " }).first().waitFor({ timeout: 60_000 });
  const known = await page.locator("[data-reroute]").first().getAttribute("data-reroute");
  await page.waitForFunction((known) => document.querySelector("[data-reroute]")?.dataset.reroute !== known, known, { timeout: 60_000 });
  await page.waitForTimeout(400);
  await page.screenshot({ path: join(directory, "dashboard-network.png") });
} finally {
  await browser.close();
  await daemon.remove();
}
