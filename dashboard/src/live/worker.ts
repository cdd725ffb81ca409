// The shared worker: holds the connection for all tabs.

import type { FromTab, ToTab } from "./protocol";
import { LiveSource } from "./source";

const source = new LiveSource("/v1/live");

(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = (event) => {
  const port = event.ports[0];
  if (port === undefined) return;
  const take = source.add((message: ToTab) => port.postMessage(message));
  port.onmessage = (sent: MessageEvent<FromTab>) => take(sent.data);
};
