// Every view shows what the daemon of `make run` has, without errors, and to those who cannot see it or use no mouse.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessibilityFaults, openPage, startBrowser, waitUntilLive } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

let daemon;
let browser;

before(async () => {
  [daemon, browser] = await Promise.all([Daemon.start("rerouting"), startBrowser()]);
});

after(async () => {
  await browser?.close();
  await daemon?.remove();
});

/** What each view shows on the emulated network. */
const VIEWS = {
  network: "Latest reroutes",
  flows: "directions of flows",
  isolation: "Isolation",
  tasks: "Tasks",
  records: "Records",
  transfers: "Transfers",
  experiments: "Experiments",
  history: "History",
};

for (const [view, text] of Object.entries(VIEWS)) {
  test(`the view ${view} has no faults in light and dark colours`, async () => {
    const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
    const page = await openPage(context, `${daemon.url}/#/${view}`);
    await waitUntilLive(page);
    await page.getByText(text).first().waitFor();
    // Data arrive, and with them what may be wrong.
    await page.waitForTimeout(1_200);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await accessibilityFaults(page), [], colorScheme);
    }
    assert.deepEqual(page.errors, []);
    await context.close();
  });
}

test("on a phone no view is wider than the screen", async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 800 } });
  const page = await openPage(context, daemon.url);
  await waitUntilLive(page);
  for (const view of Object.keys(VIEWS)) {
    await page.goto(`${daemon.url}/#/${view}`);
    await page.waitForTimeout(400);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `${view} is ${width} pixels wide`);
  }
  await context.close();
});

test("a reroute appears with its paths, its rates and its outcome", async () => {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await openPage(context, daemon.url);
  await waitUntilLive(page);
  const reroute = page.locator("[data-reroute]:not([data-at='0'])").first();
  await reroute.waitFor({ timeout: 30_000 });
  assert.match(await reroute.innerText(), /Tree \d to \d: expected .+bit\/s instead of .+bit\/s/);
  const confirmed = page.locator("[data-reroute]", { hasText: "confirmed" }).first();
  await confirmed.waitFor({ timeout: 30_000 });
  assert.match(await confirmed.innerText(), /first packet on the new path after/);
  // The rate that came of it is read a moment later.
  await page.locator("[data-reroute]", { hasText: ", now " }).first().waitFor({ timeout: 30_000 });
  await context.close();
});

test("a link has its load, the last ten minutes, its flows and its events", async () => {
  const context = await browser.newContext({ viewport: { width: 1400, height: 1_000 } });
  const page = await openPage(context, `${daemon.url}/#/network/link/core0:p0:out`);
  await waitUntilLive(page);
  await page.getByRole("heading", { name: "agg0:p2 - core0:p0" }).waitFor();
  const direction = page.getByRole("button", { name: "core0 to agg0" });
  assert.equal(await direction.getAttribute("aria-pressed"), "true");
  await page.locator("figcaption", { hasText: "Utilisation of agg0:p2 - core0:p0" }).waitFor({ state: "attached" });
  await page.getByRole("link", { name: "Close the page of this link" }).click();
  await page.waitForURL(/#\/network$/);
  assert.deepEqual(page.errors, []);
  await context.close();
});

test("flows are filtered and sorted by the daemon, and the address says how", async () => {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await openPage(context, `${daemon.url}/#/flows`);
  await waitUntilLive(page);
  await page.getByLabel("Filter").fill("src ip 10.0.0.1");
  await page.keyboard.press("Enter");
  await page.getByText("flows match").waitFor();
  assert.match(page.url(), /filter=src\+ip\+10\.0\.0\.1/);
  const flows = page.locator("[role=rowgroup] [role=row]");
  await flows.first().waitFor();
  assert.match(await flows.first().innerText(), /10\.0\.0\.1:/);
  await page.getByRole("button", { name: "Sampled" }).click();
  assert.match(page.url(), /sort=bytes/);
  await page.getByLabel("Filter").fill("src ip nonsense");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "nonsense" }).waitFor();
  // By keyboard alone: the first row, and back.
  await page.getByLabel("Filter").fill("");
  await page.locator("[role=rowgroup]").focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Seen by" }).waitFor();
  await context.close();
});

test("the controller is frozen after a confirmation, and only then", async () => {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  const page = await openPage(context, daemon.url);
  await waitUntilLive(page);
  await page.getByRole("button", { name: "Freeze" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  assert.equal((await daemon.get("/v1/control")).frozen, false);
  await page.getByRole("button", { name: "Freeze" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Freeze" }).click();
  await page.getByText("Controller frozen", { exact: true }).waitFor();
  assert.equal((await daemon.get("/v1/control")).frozen, true);
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await page.getByText("Controller frozen", { exact: true }).waitFor({ state: "detached" });
  await context.close();
});

test("a pair is pinned to a tree and unpinned", async () => {
  const context = await browser.newContext({ viewport: { width: 1400, height: 1_000 } });
  const page = await openPage(context, `${daemon.url}/#/network/pair/h0/h8`);
  await waitUntilLive(page);
  const tree = page.getByRole("listitem").filter({ hasText: "Tree 2" });
  await tree.getByRole("button", { name: "Pin" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pin" }).click();
  await page.getByText("pinned to tree 2").waitFor();
  assert.deepEqual((await daemon.get("/v1/control")).pins, [{ src: "h0", dst: "h8", tree: 2 }]);
  await page.getByRole("button", { name: "Unpin" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Unpin" }).click();
  await page.getByText("pinned to tree 2").waitFor({ state: "detached" });
  await context.close();
});
