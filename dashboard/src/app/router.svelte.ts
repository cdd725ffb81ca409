// Which view the address names: #/flows?sort=rate. A link to a view works in another browser, and "back" works.

export type Query = Record<string, string>;

export interface Place {
  /** The parts of the path: ["flows", "tcp 10.0.0.1:1 > 10.0.0.2:2"]. */
  path: string[];
  query: Query;
}

function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    path: path.split("/").filter((part) => part !== "").map(decode),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Returns the address of a place, for links. */
export function href(path: string[], query: Record<string, string | number | null | undefined> = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

class Router {
  place = $state.raw<Place>(parse(location.hash));

  constructor() {
    addEventListener("hashchange", () => (this.place = parse(location.hash)));
  }

  /** The first part of the path. */
  get view(): string {
    return this.place.path[0] ?? "network";
  }

  /** Goes to a place. */
  go(path: string[], query: Record<string, string | number | null | undefined> = {}): void {
    location.hash = href(path, query);
  }

  /** Changes parameters of the query; null removes one. "Back" does not undo it. */
  update(changes: Record<string, string | number | null>): void {
    const address = href(this.place.path, { ...this.place.query, ...changes });
    history.replaceState(null, "", address);
    this.place = parse(address);
  }
}

export const router = new Router();
