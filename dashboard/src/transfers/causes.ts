// Causes of slow transfers in words, and what to change.

import { count } from "../ui/format";
import { words } from "../ui/format";
import type { SlowRow } from "./report";

const CAUSES: Record<string, string> = {
  streams: "too few parallel connections",
  sender_window: "the sender's buffer is smaller than the path needs",
  receiver_window: "the receiver's window is smaller than the path needs",
  sender_disk: "the sender's disk is too slow",
  receiver_disk: "the receiver's disk is too slow",
  sender_cpu: "the sending process lacks processor time",
  receiver_cpu: "the receiving process lacks processor time",
  path_loss: "the path loses packets without congestion",
  path_congestion: "the path is congested",
  none: "nothing that could be improved",
  not_enough_data: "not enough data",
};

/** Returns a cause in words. */
export function causeWords(cause: string): string {
  return CAUSES[cause] ?? words(cause);
}

/** Returns what to change about a slow transfer. */
export function adviceText({ cause, sender, receiver, advised_streams, advised_buffer_bytes }: SlowRow): string {
  const [from, to] = [sender || "the sender", receiver || "the receiver"];
  switch (cause) {
    case "streams":
      return `Use ${count(advised_streams)} parallel connections.`;
    case "sender_window":
      return `Raise the send buffer on ${from} to ${count(advised_buffer_bytes)} bytes for each connection.`;
    case "receiver_window":
      return `Raise the receive buffer on ${to} to ${count(advised_buffer_bytes)} bytes for each connection.`;
    case "sender_disk":
      return `Read from a faster file system on ${from}, or less at once. More connections will not help.`;
    case "receiver_disk":
      return `Write to a faster file system on ${to}, or less at once. More connections will not help.`;
    case "sender_cpu":
      return `Give the process on ${from} more processor time: fewer other jobs, a higher quota, or a cheaper cipher.`;
    case "receiver_cpu":
      return `Give the process on ${to} more processor time: fewer other jobs, a higher quota, or a cheaper cipher.`;
    case "path_loss":
      return "Ask the network operators for the link that loses packets although its queue is short. Check optics and duplex settings.";
    case "path_congestion":
      return "Move the transfer to a quieter time, or ask the network operators about the congested link.";
    case "none":
      return "Nothing to gain.";
    default:
      return "Collect what is missing.";
  }
}
