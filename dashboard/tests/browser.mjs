// Starts the browser for the tests, and notices what a page does wrong.

import { existsSync } from "node:fs";

import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const CHROMIUM = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** Starts a browser. */
export async function startBrowser() {
  if (CHROMIUM === undefined) throw new Error("no chromium: install Debian's package chromium, or set CHROMIUM");
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** Opens a page, and collects what it writes to the console as errors. */
export async function openPage(context, url) {
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.errors = [];
  page.on("console", (message) => {
    if (message.type() === "error") page.errors.push(`${message.text()} ${message.location().url ?? ""}`);
  });
  page.on("pageerror", (error) => page.errors.push(String(error)));
  await page.goto(url);
  return page;
}

/** Returns the serious and critical findings of axe, in one line each. */
export async function accessibilityFaults(page) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return grave.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}

/** Waits until the page is connected. */
export async function waitUntilLive(page) {
  await page.getByText("Live", { exact: true }).waitFor({ timeout: 20_000 });
}
