// What others may do to the page: names that are HTML, answers that are too large or wrong, clocks that differ.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { openPage, startBrowser, waitUntilLive } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

let browser;
let daemon;
before(async () => {
  [daemon, browser] = await Promise.all([Daemon.start("rerouting"), startBrowser()]);
});
after(async () => {
  await browser?.close();
  await daemon?.remove();
});

/** Runs a test with a page of its own. */
function withPage(name, run) {
  test(name, async () => {
    const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
    try {
      await run(await openPage(context, "about:blank"));
    } finally {
      await context.unrouteAll({ behavior: "ignoreErrors" });
      await context.close();
    }
  });
}

withPage("names of the topology are text, whatever they contain", async (opened) => {
  const evil = `<img src=x onerror="document.title='hacked'">`;
  const topology = await daemon.get("/v1/topology");
  const network = JSON.parse(JSON.stringify(topology.network).replaceAll('"h0"', JSON.stringify(evil)));
  // The daemon may refuse such a name; a page must not rely on that.
  await opened.context().route("**/v1/topology", (route) => route.fulfill({ json: { ...topology, network } }));
  await opened.context().route("**/v1/links", async (route) => {
    const links = JSON.stringify(await daemon.get("/v1/links")).replaceAll('"h0"', JSON.stringify(evil));
    await route.fulfill({ body: links, contentType: "application/json" });
  });
  await opened.goto(`${daemon.url}/#/network?show=table`);
  await waitUntilLive(opened);
  await opened.getByLabel("Search").fill("onerror");
  await opened.getByText("<img src=x").first().waitFor();
  assert.equal(await opened.locator("main img").count(), 0);
  assert.notEqual(await opened.title(), "hacked");
});

withPage("an answer of 20 MB is an error and no burden", async (opened) => {
  await opened.context().route("**/v1/flows?**", (route) => route.fulfill({ body: `{"responses":[],"total":1,"flows":["${"x".repeat(20 << 20)}"]}`, contentType: "application/json" }));
  await opened.goto(`${daemon.url}/#/flows`);
  await opened.getByText("The answer has more than 16 MiB.").waitFor();
});

withPage("an answer that is no JSON is an error", async (opened) => {
  await opened.context().route("**/v1/flows?**", (route) => route.fulfill({ body: "<html>proxy</html>", contentType: "text/html" }));
  await opened.goto(`${daemon.url}/#/flows`);
  await opened.getByText("The answer is not JSON.").waitFor();
});

withPage("a script within the page does not run", async (opened) => {
  await opened.goto(daemon.url);
  await waitUntilLive(opened);
  const ran = await opened.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.ran = true";
    document.body.append(script);
    return window.ran === true;
  });
  assert.equal(ran, false);
});

withPage("a clock that is an hour fast is shown as such", async (opened) => {
  await opened.clock.install({ time: new Date(Date.now() + 3_600_000) });
  await opened.goto(daemon.url);
  await waitUntilLive(opened);
  await opened.getByText("Clocks differ by 60 min").waitFor({ timeout: 20_000 });
});

withPage("a name in the address does not lead to another path", async (opened) => {
  const asked = [];
  opened.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await opened.goto(`${daemon.url}/#/network/pair/..%2F..%2Fetc/..`);
  await opened.getByText('There is nothing with the name "..".').waitFor();
  assert.ok(!asked.some((path) => path.startsWith("/v1/control/") && !path.startsWith("/v1/control/paths/")), asked.join(" "));
});

test("the page of another site cannot change the network", async () => {
  const response = await fetch(`${daemon.url}/v1/control/frozen`, {
    method: "PUT",
    headers: { "Content-Type": "application/json", Origin: "http://evil.example" },
    body: JSON.stringify({ frozen: true }),
  });
  assert.equal(response.status, 403);
  assert.equal((await daemon.get("/v1/control")).frozen, false);
});
