// Reads server-sent events (HTML Standard, section 9.2) from a response. EventSource is no alternative: it sends no headers, so no token.

/** Maximum length of a message. */
const MAX_MESSAGE = 32 << 20;

export interface Message {
  event: string;
  data: string;
  id: string | null;
}

/** Splits a stream into messages, as they arrive. */
export class MessageParser {
  #rest = "";
  #event = "";
  #data: string[] = [];
  #id: string | null = null;
  #size = 0;

  /** Returns the messages that are complete with this text. */
  push(text: string): Message[] {
    const messages: Message[] = [];
    const lines = (this.#rest + text).split(/\r\n|\n/);
    this.#rest = lines.pop() ?? "";
    this.#size += text.length;
    if (this.#size > MAX_MESSAGE) throw new Error("a message of the stream is too long");
    for (const line of lines) {
      if (line === "") {
        this.#complete(messages);
        continue;
      }
      this.#line(line);
    }
    return messages;
  }

  #line(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return; // A comment keeps the connection alive.
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#event = value;
    else if (name === "data") this.#data.push(value);
    else if (name === "id") this.#id = value;
  }

  #complete(messages: Message[]): void {
    // A message may have an id alone: where to resume.
    if (this.#data.length > 0 || this.#id !== null) {
      messages.push({ event: this.#event || "message", data: this.#data.join("\n"), id: this.#id });
    }
    this.#event = "";
    this.#data = [];
    this.#id = null;
    this.#size = this.#rest.length;
  }
}

/** Reads messages until the response ends. */
export async function readMessages(body: ReadableStream<Uint8Array>, take: (messages: Message[]) => void): Promise<void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parser = new MessageParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      take(parser.push(decoder.decode(value, { stream: true })));
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
