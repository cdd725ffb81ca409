// What a user can change: redirect a flow, and release it. Each asks for confirmation.

import { send } from "../api/client";
import { ask } from "../ui/Confirm.svelte";

/** Asks, then releases a flow. */
export function release(key: string): void {
  ask({
    title: "Release this flow?",
    text: `${key} moves back to the primary queue when its packets have left the scavenger queue. If it still is a cheetah flow, it can be redirected again.`,
    action: "Release",
    run: () => send("DELETE", "/v1/redirections/{key}", { path: { key } }),
  });
}

/** Asks, then redirects a flow. `done` is called when the daemon has accepted it. */
export function redirect(key: string, isDryRun: boolean, done: () => void): void {
  const effect = isDryRun
    ? "This is a dry run: the daemon only records the request."
    : "Its packets go to the scavenger queue of the link, behind all other packets, until you release it.";
  ask({
    title: "Redirect this flow?",
    text: `${key}: ${effect}`,
    action: "Redirect",
    run: async () => {
      await send("PUT", "/v1/redirections/{key}", { path: { key } });
      done();
    },
  });
}
