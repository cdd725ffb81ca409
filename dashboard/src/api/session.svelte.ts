// The token of this browser, and what it may do.
//
// The token is in memory and in the session storage of the tab, never in a cookie, so that a page of another site cannot use it.
// Tabs pass it on through the shared worker.

const STORAGE = "thalweg-token";

class Session {
  token = $state<string | null>(read());
  /** Whether the daemon refused the token, or wants one. */
  isRefused = $state(false);
  /** Name of the token; null if the daemon has no tokens. */
  name = $state<string | null>(null);
  /** Whether the page may change the network. */
  mayWrite = $state(false);

  #listeners: ((token: string | null) => void)[] = [];

  /** Calls `listener` when the user signs in or out. */
  onChange(listener: (token: string | null) => void): void {
    this.#listeners.push(listener);
  }

  /** Signs in with a token, or out with null. */
  set(token: string | null): void {
    this.accept(token);
    for (const listener of this.#listeners) listener(token);
  }

  /** Takes over the token of another tab. */
  accept(token: string | null): void {
    this.token = token;
    this.isRefused = false;
    this.mayWrite = false;
    try {
      if (token === null) sessionStorage.removeItem(STORAGE);
      else sessionStorage.setItem(STORAGE, token);
    } catch {
      // Without storage the token lasts until the page is reloaded.
    }
  }

  /** The daemon refused a request with this token. Another one may have been accepted meanwhile. */
  refuse(token: string | null): void {
    if (token !== this.token) return;
    this.isRefused = true;
    this.mayWrite = false;
  }
}

function read(): string | null {
  try {
    return sessionStorage.getItem(STORAGE);
  } catch {
    return null;
  }
}

export const session = new Session();
