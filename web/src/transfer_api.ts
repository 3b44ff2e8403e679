// The API of a coordinator for the page, with the types of packages transfer and catalog.

export interface User {
  name: string;
  roles: string[] | null;
  until?: string;
  known?: boolean; // signed in by the browser's certificate
}

export interface Site {
  name: string;
  kind: string;
  url?: string;
  max?: number;
  free_bytes: number; // -1: unknown
  seen?: string;
  up: boolean;
  problem?: string;
}

export interface Dataset {
  name: string;
  blocks: number;
  files: number;
  bytes: number;
  files_at?: Record<string, number>;
}

export interface Replica {
  site: string;
  path?: string;
  verified?: string;
  bad?: string;
}

export interface DatasetFile {
  name: string;
  block?: string;
  size_bytes: number;
  adler32?: string;
  replicas?: Replica[];
}

export interface Submission {
  key?: string;
  dataset: string;
  block?: string;
  files?: string[];
  to: string;
  from?: string[];
  mode?: string;
  share?: string;
  priority?: number;
  approve?: boolean;
  expires?: string;
  tries?: number;
  unchecked?: boolean;
  comment?: string;
}

export interface Counts {
  files: number;
  bytes: number;
  queued: number;
  no_source: number;
  leased: number;
  done: number;
  skipped: number;
  failed: number;
  cancelled: number;
  done_bytes: number;
  attempts: number;
}

export interface Request extends Submission {
  id: number;
  status: string;
  by: string;
  decided_by?: string;
  reason?: string;
  made: string;
  began?: string;
  ended?: string;
  asked: { files: number; bytes: number }; // when it was submitted
  count: Counts;
  rate_bytes_per_second: number;
}

export interface Item {
  id: number;
  name: string;
  size_bytes: number;
  adler32?: string;
  state: string;
  tries: number;
  source?: string;
  mode?: string;
  stage?: string;
  moved_bytes?: number;
  not_before?: string;
  fault?: string;
  reason?: string;
  ended?: string;
}

export interface Attempt {
  item: number;
  epoch: number;
  source: string;
  dest: string;
  mode: string;
  fault?: string;
  reason?: string;
  size_bytes: number;
  adler32?: string;
  verified: boolean;
  existed?: boolean;
  moved_bytes: number;
  resumed_bytes?: number;
  begin: string;
  end: string;
  cpu_seconds?: number;
}

export interface Link {
  source: string;
  dest: string;
  active: number;
  limit: number;
  why: string;
  rate_bytes_per_second: number;
  success: number;
}

export interface Sample {
  time: string;
  cores: number;
  cpu: number;
  memory: number;
  memory_bytes: number;
  received_bytes_per_second: number;
  sent_bytes_per_second: number;
  read_bytes_per_second: number;
  write_bytes_per_second: number;
  running: number;
  moved_bytes_per_second: number;
}

export interface Explanation {
  request: Request;
  reasons: { files: number; file?: string; text: string }[] | null;
}

export interface TransferEvent {
  id: number;
  time: string;
  request?: number;
  item?: number; // the number of the failed file
  status?: string; // the status of the request after the event
  text: string;
}

/** ApiError is an error response; status 0: there was no response. code is "" unless the page distinguishes this error. */
export class ApiError extends Error {
  constructor(readonly status: number, text: string, readonly code = "") {
    super(text);
  }
}

let clockOffset = 0; // coordinator's clock minus the local clock, in milliseconds

/** now returns the time of the coordinator's clock. */
export const now = (): number => Date.now() + clockOffset;

const requestTimeout = 30_000;

/** fetchJSON sends a GET request to path, or a POST request if there is a body, and returns the decoded response. */
export async function fetchJSON<T>(path: string, body?: unknown): Promise<T> {
  let r: Response;
  try {
    r = await fetch(path, {
      signal: AbortSignal.timeout(requestTimeout),
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json", "X-Weir": "page" } }),
    });
  } catch {
    throw new ApiError(0, "The coordinator is unreachable.");
  }
  const date = Date.parse(r.headers.get("Date") ?? "");
  if (date) {
    const off = date + 500 - Date.now(); // the header has a resolution of one second
    clockOffset = Math.abs(off) > 2000 ? off : 0;
  }
  const data = (await r.json().catch(() => undefined)) as (T & { error?: string; code?: string }) | undefined;
  if (!r.ok || data === undefined) {
    const text = data?.error || "The coordinator returned " + r.status + " " + r.statusText + ".";
    throw new ApiError(r.ok ? 0 : r.status, text, data?.code);
  }
  return data;
}

/** query appends the parameters that are set to a path, as its query. */
export function query(path: string, params: Record<string, string | number | undefined>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== undefined && v !== "" && v !== 0) q.set(k, String(v));
  const text = q.toString();
  return text ? path + "?" + text : path;
}

const api = "/api/v1";

export const sites = (): Promise<Site[]> => fetchJSON<Site[] | null>(api + "/sites").then((l) => l ?? []);
export const links = (): Promise<Link[]> => fetchJSON<Link[] | null>(api + "/links").then((l) => l ?? []);
export const datasets = (after: string, n: number): Promise<Dataset[]> => fetchJSON<Dataset[] | null>(query(api + "/datasets", { after, n })).then((l) => l ?? []);
/** datasetsFrom returns datasets in order, starting with the name from. */
export const datasetsFrom = (from: string, n: number): Promise<Dataset[]> => fetchJSON<Dataset[] | null>(query(api + "/datasets", { from, n })).then((l) => l ?? []);
/** samples returns the samples of a site's host after a time in milliseconds. */
export const samples = (site: string, after: number, n: number): Promise<Sample[]> => fetchJSON<Sample[] | null>(query(api + "/samples", { site, n, after: Math.floor(after) + "000000" })).then((l) => l ?? []);
export const dataset = (name: string): Promise<Dataset> => fetchJSON(query(api + "/dataset", { name }));
export const datasetFiles = (name: string, after: string, n: number): Promise<DatasetFile[]> => fetchJSON<DatasetFile[] | null>(query(api + "/dataset/files", { name, after, n })).then((l) => l ?? []);

export interface Filter {
  status?: string;
  open?: string;
  to?: string;
  dataset?: string;
  by?: string;
  before?: number;
  n?: number;
}
export const requests = (f: Filter): Promise<Request[]> => fetchJSON<Request[] | null>(query(api + "/requests", { ...f })).then((l) => l ?? []);
export const request = (id: number): Promise<Request> => fetchJSON(`${api}/requests/${id}`);
export const submit = (s: Submission): Promise<Request> => fetchJSON(api + "/requests", s);
export const decide = (id: number, verb: string, reason: string): Promise<Request> => fetchJSON(`${api}/requests/${id}/${verb}`, { reason });
export const items = (id: number, state: string, after: number, n: number): Promise<Item[]> => fetchJSON<Item[] | null>(query(`${api}/requests/${id}/items`, { state, after, n })).then((l) => l ?? []);
export const attempts = (id: number, item: number): Promise<Attempt[]> => fetchJSON<Attempt[] | null>(query(`${api}/requests/${id}/attempts`, { item, n: 1000 })).then((l) => l ?? []);
export const explain = (id: number, file: string): Promise<Explanation> => fetchJSON(query(`${api}/requests/${id}/explain`, { file }));
export const manifest = (id: number): string => `${api}/requests/${id}/manifest`;
