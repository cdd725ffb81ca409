// Measures the page at 1,000 links and 10,000 flows:  node tests/frames.mjs URL [SECONDS]
//
//   target/release/thalweg-bench dashboard --serve 127.0.0.1:9600 &
//   node dashboard/tests/frames.mjs http://127.0.0.1:9600
//
// For the map, the table of links and the table of flows: the time of scripts per frame of loads (ten per second), as the browser's own trace
// counts it, and the longest task. And the time from the request of the page to the first view, without a cache.

import { gzipSync } from "node:zlib";

import { openPage, startBrowser, waitUntilLive } from "./browser.mjs";

const [url = "http://127.0.0.1:9600", seconds = "15"] = process.argv.slice(2);
const FRAMES_PER_SECOND = 10;

const browser = await startBrowser();
try {
  const rows = [];
  for (const [view, address] of [
    ["map", "#/network"],
    ["table of links", "#/network?show=table"],
    ["flows", "#/flows"],
    ["link", "#/network/link/leaf0:p10:out"],
  ]) {
    const context = await browser.newContext({ viewport: { width: 1600, height: 1_000 } });
    const page = await openPage(context, `${url}/${address}`);
    await waitUntilLive(page);
    await page.waitForTimeout(2_000);
    rows.push({ view, ...(await trace(page, Number(seconds))) });
    await context.close();
  }
  console.table(rows);
  console.log(JSON.stringify({ first_view_ms: await firstView(), compressed_bytes: await size(), rows }));
} finally {
  await browser.close();
}

/** Returns the script times of a page, from a trace of its main thread. */
async function trace(page, seconds) {
  const session = await page.context().newCDPSession(page);
  const before = await session.send("Performance.enable").then(() => session.send("Performance.getMetrics"));
  const start = Date.now();
  await page.evaluate(() => {
    window.tasks = [];
    new PerformanceObserver((list) => window.tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ["longtask"] });
  });
  await page.waitForTimeout(seconds * 1_000);
  const elapsed = (Date.now() - start) / 1_000;
  const after = await session.send("Performance.getMetrics");
  const value = (metrics, name) => metrics.metrics.find((metric) => metric.name === name).value;
  const perFrame = (name) => (((value(after, name) - value(before, name)) * 1_000) / (elapsed * FRAMES_PER_SECOND)).toFixed(2);
  const tasks = await page.evaluate(() => window.tasks);
  return {
    "script ms per frame": perFrame("ScriptDuration"),
    "layout ms per frame": perFrame("LayoutDuration"),
    "style ms per frame": perFrame("RecalcStyleDuration"),
    "all tasks ms per frame": perFrame("TaskDuration"),
    "tasks over 50 ms": tasks.length,
  };
}

/** Returns the time from the request to the first drawn map, in a browser that has never seen the page. */
async function firstView() {
  const times = [];
  for (let run = 0; run < 5; run += 1) {
    const context = await browser.newContext({ viewport: { width: 1600, height: 1_000 } });
    const page = await context.newPage();
    const start = Date.now();
    await page.goto(url, { waitUntil: "commit" });
    await page.locator(".map canvas").first().waitFor();
    times.push(Date.now() - start);
    await context.close();
  }
  return times.sort((a, b) => a - b)[2];
}

/** Returns the bytes of all files of the page, as they are sent. */
async function size() {
  const paths = ["/", "/dashboard/app.js", "/dashboard/worker.js", "/dashboard/app.css", "/dashboard/icon.svg"];
  const sizes = await Promise.all(paths.map(async (path) => gzipSync(Buffer.from(await (await fetch(url + path)).arrayBuffer()), { level: 9 }).length));
  return sizes.reduce((sum, size) => sum + size, 0);
}
