// What phases, reasons and counters of isolation mean.

import type { Schemas } from "../api/types";
import type { EventLevel } from "../ui/event_text";

type Phase = Schemas["RedirectionPhase"];

export const PHASES: Record<Phase, { level: EventLevel; text: string }> = {
  waiting: { level: "warn", text: "Waits for the limit of changes per second, or for another attempt after a failure." },
  requested: { level: "", text: "The actuator has been asked to redirect the flow." },
  redirected: { level: "", text: "The packets of the flow go to the scavenger queue." },
  confirmed: { level: "good", text: "The counters of the flow and of the scavenger queue have both grown." },
  draining: { level: "", text: "The flow has ended or is quiet. Its packets are leaving the scavenger queue." },
  releasing: { level: "", text: "The actuator has been asked to release the flow." },
  released: { level: "", text: "The flow is no longer redirected." },
  failed: { level: "bad", text: "The flow could not be redirected." },
  withheld: { level: "warn", text: "The flow was not redirected: dry run." },
};

export const REASONS: Record<Schemas["RedirectionReason"], string> = {
  cheetah: "cheetah flow",
  pinned: "by a user",
  adopted: "earlier run",
};

type Count = keyof Schemas["RedirectionCounts"];

/** A counter, and what to think of it. */
export interface CountText {
  id: Count;
  title: string;
  text: string;
  level: EventLevel;
}

/** Counters of problems: above zero, somebody should look. */
export const PROBLEMS: CountText[] = [
  { id: "failed", title: "Failed", level: "bad", text: "The actuator could not redirect the flow. Flows that stay cheetah flows are tried again, up to eight times." },
  { id: "ineffective", title: "Without effect", level: "bad", text: "The flow was redirected, but the scavenger queue did not receive it. Check the queue and the filters of the port." },
  { id: "errors", title: "Actuator errors", level: "bad", text: "Single attempts of the actuator that failed, repeated ones included." },
  { id: "refused", title: "Refused", level: "warn", text: "max_redirections was reached. These flows follow when others end. Raise max_redirections if this number grows." },
  { id: "lost", title: "Lost", level: "bad", text: "Cheetah flows that never reached isolation, because the queue from the collectors was full." },
  { id: "forced", title: "Released early", level: "warn", text: "The flow did not drain within release_timeout. Its packets may have been reordered." },
  { id: "restored", title: "Restored", level: "warn", text: "Others removed these redirections, and they were set again." },
  { id: "repairs", title: "Repairs", level: "warn", text: "Others changed queues, classes or programs, and they were set again." },
  { id: "expired_packets", title: "Expired packets", level: "warn", text: "Packets of redirections that had expired. They went to the primary queue." },
];

/** Other counters. */
export const OTHERS: CountText[] = [
  { id: "requests", title: "Requests", level: "", text: "Cheetah flows and flows that users redirected." },
  { id: "redirected", title: "Redirected", level: "", text: "Flows that the actuator redirected." },
  { id: "confirmed", title: "Confirmed", level: "", text: "Redirections that the counters of flow and queue confirmed." },
  { id: "released", title: "Released", level: "", text: "Flows that moved back to the primary queue." },
  { id: "withheld", title: "Withheld", level: "", text: "Requests that were only recorded, on a dry run." },
  { id: "excluded", title: "Excluded", level: "", text: "Requests that never_ports or never_prefixes exclude." },
  { id: "repeated", title: "Repeated", level: "", text: "Requests for flows that were redirected already." },
  { id: "cancelled", title: "Cancelled", level: "", text: "Redirections that ended before the flow was redirected." },
  { id: "renewed", title: "Renewed", level: "", text: "Redirections that followed a failed one of the same flow." },
  { id: "put_off", title: "Put off", level: "", text: "Releases that were put off, because the flow had sent meanwhile." },
];
