// Measures how long after the decision a reroute is visible:  node tests/latency.mjs [REROUTES]
//
// The daemon publishes a decision at once; this program reads it from the stream of events. The page notes when the element of the
// reroute is in the document and when the next frame has been drawn. Both use the clock of this machine.

import { openPage, startBrowser, waitUntilLive } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const [wanted = "50"] = process.argv.slice(2);

const daemon = await Daemon.start("rerouting");
const browser = await startBrowser();
try {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await openPage(context, daemon.url);
  await waitUntilLive(page);
  await page.evaluate(() => {
    window.seen = {};
    const note = () => {
      const now = performance.timeOrigin + performance.now();
      for (const element of document.querySelectorAll("[data-reroute]")) {
        if (window.seen[element.dataset.reroute] !== undefined) continue;
        window.seen[element.dataset.reroute] = { inDocument: now, drawn: null };
        requestAnimationFrame(() => setTimeout(() => (window.seen[element.dataset.reroute].drawn = performance.timeOrigin + performance.now())));
      }
    };
    note();
    new MutationObserver(note).observe(document.body, { childList: true, subtree: true });
  });
  const decided = await decisions(daemon.url, Number(wanted));
  await page.waitForTimeout(1_000);
  const seen = await page.evaluate(() => window.seen);
  const delays = (kind) => [...decided].map(([id, at]) => (seen[id]?.[kind] ?? Infinity) - at).sort((a, b) => a - b);
  for (const kind of ["inDocument", "drawn"]) {
    const sorted = delays(kind);
    const quantile = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))].toFixed(1);
    console.log(JSON.stringify({ kind, reroutes: sorted.length, p50_ms: quantile(0.5), p99_ms: quantile(0.99), max_ms: sorted.at(-1).toFixed(1) }));
  }
} finally {
  await browser.close();
  await daemon.remove();
}

/** Returns when decisions to reroute arrived, by the number of their events. */
async function decisions(url, count) {
  const abort = new AbortController();
  const response = await fetch(`${url}/v1/events?type=decision`, { signal: abort.signal });
  const decoder = new TextDecoder();
  const found = new Map();
  let rest = "";
  const reader = response.body.getReader();
  for (;;) {
    const { value: chunk } = await reader.read();
    const at = performance.timeOrigin + performance.now();
    const messages = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = messages.pop();
    for (const message of messages) {
      const data = /^data: (.*)$/m.exec(message)?.[1];
      if (data === undefined) continue;
      const event = JSON.parse(data);
      if (event.verdict === "reroute") found.set(String(event.id), at);
      if (found.size < count) continue;
      abort.abort();
      return found;
    }
  }
  return found;
}
