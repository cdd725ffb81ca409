// Names for the types of the API. They are generated from the OpenAPI document (npm run types).

import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Flow = Schemas["Flow"];
export type Link = Schemas["Link"];
export type Control = Schemas["Control"];
export type LiveStatus = Schemas["LiveStatus"];
export type LiveLinks = Schemas["LiveLinks"];
export type LiveLoads = Schemas["LiveLoads"];
export type Problem = Schemas["Problem"];
export type Event = Schemas["Event"];
export type EventType = Event["type"];
export type EventOf<T extends EventType> = Extract<Event, { type: T }>;

/** Paths that can be read. */
export type GetPath = { [P in keyof paths]: paths[P] extends { get: { responses: unknown } } ? P : never }[keyof paths];

type Json<R> = R extends { content: { "application/json": infer T } } ? T : never;

/** The JSON answer of a GET request. */
export type Answer<P extends GetPath> = paths[P] extends { get: { responses: { 200: infer R } } } ? Json<R> : never;

/** The query parameters of a GET request. */
export type QueryOf<P extends GetPath> = paths[P] extends { get: { parameters: { query?: infer Q } } } ? Q : never;
