// Reads the results of an experiment by its name: "run", "group/run" or "sweep/run".

import { get } from "../api/client";
import type { Schemas } from "../api/types";

/** Reads results. */
export function readResults(id: string, signal: AbortSignal): Promise<Schemas["ExperimentResults"]> {
  const [name = "", run] = id.split("/", 2);
  return run === undefined
    ? get("/v1/experiments/{name}", { path: { name }, signal })
    : get("/v1/experiments/{name}/{run}", { path: { name, run }, signal });
}
