// Messages between a tab and the connection that all tabs share.

import type { Event, LiveStatus } from "../api/types";

/** The state of the connection to the daemon. */
export type Connection =
  | { state: "connecting" }
  | { state: "open" }
  /** Connected, but nothing has arrived for some seconds. */
  | { state: "silent" }
  | { state: "lost"; reason: string; retryAt: number }
  /** The daemon wants a token, or refuses the one it got. */
  | { state: "unauthorised"; reason: string };

/** An event, and when it arrived: 0 if it is older than the connection. */
export interface Arrived {
  event: Event;
  at: number;
}

export type FromTab =
  | { kind: "hello"; token: string | null }
  | { kind: "token"; token: string | null }
  /** Hidden tabs get no loads. */
  | { kind: "visible"; visible: boolean }
  /** Sent now and then, because a port does not tell that its tab is gone. */
  | { kind: "alive" }
  | { kind: "bye" };

export type ToTab =
  | { kind: "connection"; connection: Connection }
  | { kind: "token"; token: string | null }
  | { kind: "links"; links: string[] }
  /** Utilisation of each link in thousandths, -1 if unknown, and when it was read by the daemon's clock. */
  | { kind: "loads"; loads: Int16Array; time: number }
  | { kind: "status"; status: LiveStatus }
  | { kind: "events"; events: Arrived[] }
  /** The daemon has restarted, or events are missing: what is shown of the past has a gap. */
  | { kind: "gap"; count: number | null };
