// The connection to the daemon: one for all tabs, again after a restart, and none for those who have no token.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { openPage, startBrowser, waitUntilLive } from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const READ = "read-token-of-the-test-1";
const WRITE = "write-token-of-the-test-2";
const OTHER = "another-token-of-the-test";

let browser;
before(async () => (browser = await startBrowser()));
after(() => browser?.close());

async function withDaemon(change, run) {
  const daemon = await Daemon.start("rerouting", change);
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 } });
  try {
    await run(daemon, context);
  } finally {
    await context.close();
    await daemon.remove();
  }
}

/** Gives the daemon tokens. */
function withTokens(text, folder) {
  writeFileSync(`${folder}/tokens`, `viewer read ${READ}\noperator write ${WRITE}\n`, { mode: 0o600 });
  // Started by root, the daemon would change its user, and then not read the file again.
  const user = process.getuid() === 0 ? `[process]\nuser = "root"\n` : "";
  return user + text.replace("[api]\n", `[api]\ntoken_file = "${folder}/tokens"\n`);
}

test("ten tabs share one connection, and a thousand do too", async () => {
  await withDaemon(undefined, async (daemon, context) => {
    const pages = [];
    for (let tab = 0; tab < 10; tab += 1) pages.push(await openPage(context, `${daemon.url}/#/tasks`));
    for (const page of pages) await waitUntilLive(page);
    assert.equal(await daemon.metric("thalweg_subscribers"), 1);
    await pages[0].evaluate(() => {
      window.ports = Array.from({ length: 1_000 }, () => new SharedWorker("/dashboard/worker.js", { type: "module", name: "thalweg" }).port);
      for (const port of window.ports) {
        port.start();
        port.postMessage({ kind: "hello", token: null });
        port.postMessage({ kind: "visible", visible: false });
      }
    });
    await pages[0].waitForTimeout(1_500);
    assert.equal(await daemon.metric("thalweg_subscribers"), 1);
    // The page still works.
    await pages[0].goto(`${daemon.url}/#/flows`);
    await pages[0].getByText("directions of flows").waitFor();
    for (const page of pages) await page.close();
  });
});

test("the page says that the daemon is gone, and goes on when it is back", async () => {
  await withDaemon(undefined, async (daemon, context) => {
    const page = await openPage(context, daemon.url);
    await waitUntilLive(page);
    await page.locator("[data-reroute]").first().waitFor({ timeout: 30_000 });
    await daemon.end("SIGKILL");
    await page.getByRole("alert").filter({ hasText: "not current" }).waitFor();
    await daemon.start();
    await waitUntilLive(page);
    await page.getByRole("alert").filter({ hasText: "not current" }).waitFor({ state: "detached" });
    // Reroutes of the new run appear.
    await page.locator("[data-reroute]:not([data-at='0'])").first().waitFor({ timeout: 30_000 });
  });
});

test("a page without a token shows nothing, and one with a token what it may", async () => {
  await withDaemon(withTokens, async (daemon, context) => {
    const page = await openPage(context, daemon.url);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    assert.equal(await page.getByText("core0").count(), 0);
    await page.getByLabel("Token").fill("wrong-token-of-the-test");
    await page.keyboard.press("Enter");
    await page.getByRole("status").filter({ hasText: "unknown token" }).waitFor();
    await page.getByLabel("Token").fill(READ);
    await page.keyboard.press("Enter");
    await waitUntilLive(page);
    await page.getByText("Latest reroutes").waitFor();
    // A reader sees no button that changes something.
    await page.waitForTimeout(500);
    assert.equal(await page.getByRole("button", { name: "Freeze" }).count(), 0);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByLabel("Token").fill(WRITE);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Freeze" }).waitFor();
    // Another tab gets the token from the first one, and shows its view.
    for (const view of ["flows", "history", "network"]) {
      const other = await openPage(context, `${daemon.url}/#/${view}`);
      await waitUntilLive(other);
      await other.getByRole("heading", { level: 1 }).filter({ hasNotText: "Sign in" }).waitFor();
      await other.close();
    }
    // A token that no header can carry is refused in the page.
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").fill("tökén");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").filter({ hasText: "not a token" }).waitFor();
  });
});

test("a token that is withdrawn ends what the page shows", async () => {
  await withDaemon(withTokens, async (daemon, context) => {
    const page = await openPage(context, daemon.url);
    await page.getByLabel("Token").fill(WRITE);
    await page.keyboard.press("Enter");
    await waitUntilLive(page);
    daemon.write("tokens", `operator write ${OTHER}\n`);
    daemon.signal("SIGHUP");
    await page.getByRole("heading", { name: "Sign in" }).waitFor({ timeout: 20_000 });
    assert.equal(await page.locator("[data-reroute]").count(), 0);
    await page.getByLabel("Token").fill(OTHER);
    await page.keyboard.press("Enter");
    await waitUntilLive(page);
  });
});

test("a daemon without a dashboard serves none", async () => {
  await withDaemon((text) => text.replace("[api]\n", "[api]\ndashboard = false\n"), async (daemon) => {
    for (const path of ["/", "/dashboard/app.js"]) assert.equal((await fetch(daemon.url + path)).status, 404, path);
    assert.equal((await fetch(`${daemon.url}/healthz`)).status, 200);
  });
});
