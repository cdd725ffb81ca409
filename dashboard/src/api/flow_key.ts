// Flow keys as the API writes them: "tcp 10.0.0.1:443 > 10.0.0.2:51000", "icmp 10.0.0.1 > 10.0.0.2".

export interface FlowKeyParts {
  protocol: string;
  src: string;
  dst: string;
  /** Null for protocols without ports. */
  srcPort: number | null;
  dstPort: number | null;
}

/** Splits a key; null if it is none. */
export function parseFlowKey(key: string): FlowKeyParts | null {
  const found = /^(\S+) (\S+) > (\S+)$/.exec(key);
  if (found === null) return null;
  const [, protocol, from, to] = found as unknown as [string, string, string, string];
  const [src, srcPort] = parseEndpoint(from);
  const [dst, dstPort] = parseEndpoint(to);
  return { protocol, src, dst, srcPort, dstPort };
}

function parseEndpoint(text: string): [string, number | null] {
  const bracketed = /^\[([0-9a-fA-F:.%]+)\]:(\d+)$/.exec(text);
  if (bracketed !== null) return [bracketed[1]!, Number(bracketed[2])];
  const plain = /^([0-9.]+):(\d+)$/.exec(text);
  return plain === null ? [text, null] : [plain[1]!, Number(plain[2])];
}

/** Returns the flow filter that selects this direction of a flow (docs/reference/flow-filter.md). */
export function filterOf({ protocol, src, dst, srcPort, dstPort }: FlowKeyParts): string {
  const ports = srcPort === null || dstPort === null ? "" : ` and src port ${srcPort} and dst port ${dstPort}`;
  return `proto ${protocol} and src ip ${src} and dst ip ${dst}${ports}`;
}

/** Returns the key of the other direction. */
export function reverseKey(key: string): string {
  return key.replace(/^(\S+) (\S+) > (\S+)$/, "$1 $3 > $2");
}
