// Small shares, such as losses.

import { percent } from "../ui/format";

/** Returns a share with two digits that count: 0.10 %, 0.00010 %, 12 %. */
export function share(value: number | null | undefined): string {
  if (value === null || value === undefined) return "-";
  if (value === 0) return "0 %";
  const digits = Math.min(10, Math.max(0, 1 - Math.floor(Math.log10(Math.abs(value) * 100))));
  return percent(value, digits);
}
