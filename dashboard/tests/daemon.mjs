// Starts daemons for the tests of the dashboard.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
const PROGRAM = process.env.THALWEG ?? join(ROOT, "target/debug/thalweg");

/** A free port of this machine. */
export async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** A running daemon. */
export class Daemon {
  #process = null;
  #log = "";

  constructor(folder, port) {
    this.folder = folder;
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Starts a daemon with the files of an example, and a configuration that `change` may change. */
  static async start(example, change = (text) => text) {
    const folder = mkdtempSync(join(tmpdir(), "dashboard-"));
    const port = await freePort();
    const daemon = new Daemon(folder, port);
    const source = join(ROOT, "examples", example);
    const text = readFileSync(join(source, "thalweg.toml"), "utf8").replaceAll(/"([\w-]+\.toml)"/g, (_, file) => JSON.stringify(join(source, file)));
    // At a third of the pace of the examples the emulation leaves the processor to the browser.
    const slowed = text.replace(/^pace = 0\.01$/m, "pace = 0.003");
    daemon.write("thalweg.toml", change(`[api]\nlisten = "127.0.0.1:${port}"\n${slowed}`, folder));
    await daemon.start();
    return daemon;
  }

  /** Writes a file into the folder of the daemon. */
  write(name, text) {
    writeFileSync(join(this.folder, name), text, { mode: 0o600 });
  }

  /** Starts the program, and waits until it is ready. */
  async start() {
    const child = spawn(PROGRAM, ["serve", "-c", join(this.folder, "thalweg.toml")], { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (this.#log += data));
    for (let tries = 0; tries < 200; tries += 1) {
      const isReady = await fetch(`${this.url}/readyz`).then((response) => response.ok, () => false);
      if (isReady) return;
      if (child.exitCode !== null) break;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`the daemon is not ready:\n${this.#log}`);
  }

  /** Ends the program. */
  async end(signal = "SIGTERM") {
    const child = this.#process;
    if (child === null || child.exitCode !== null) return;
    const ended = new Promise((done) => child.once("exit", done));
    child.kill(signal);
    await ended;
  }

  /** Sends a signal. */
  signal(name) {
    this.#process.kill(name);
  }

  /** Ends the program, and removes its folder. */
  async remove() {
    await this.end("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Reads JSON from the API. */
  async get(path, headers = {}) {
    const response = await fetch(this.url + path, { headers });
    if (!response.ok) throw new Error(`${path}: status ${response.status}`);
    return response.json();
  }

  /** Returns the value of a metric without labels. */
  async metric(name, headers = {}) {
    const text = await (await fetch(`${this.url}/metrics`, { headers })).text();
    const line = text.split("\n").find((line) => line.startsWith(`${name} `));
    return line === undefined ? null : Number(line.split(" ")[1]);
  }
}
