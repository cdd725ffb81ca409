// All fields of an event, as rows of a table.

/** Most fields that are shown: an event may name a hundred flows. */
const MAX_FIELDS = 400;

/** Returns the fields of a value with their paths: flows[0].rate_bps. */
export function fieldsOf(value: unknown, path = ""): [string, string][] {
  const fields: [string, string][] = [];
  collect(value, path, fields);
  return fields.slice(0, MAX_FIELDS);
}

function collect(value: unknown, path: string, fields: [string, string][]): void {
  if (fields.length > MAX_FIELDS) return;
  if (Array.isArray(value)) {
    if (value.length === 0) fields.push([path, "none"]);
    value.forEach((item, place) => collect(item, `${path}[${place}]`, fields));
  } else if (typeof value === "object" && value !== null) {
    for (const [name, item] of Object.entries(value)) collect(item, path === "" ? name : `${path}.${name}`, fields);
  } else {
    fields.push([path, value === null ? "-" : typeof value === "number" ? value.toLocaleString("en-US", { maximumFractionDigits: 6 }) : String(value)]);
  }
}
