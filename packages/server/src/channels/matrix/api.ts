import { parseJsonUnchecked } from '../../kernel/json.ts';
import { createFetch, RequestFailed } from '../http.ts';
import type { WireClock } from '../port.ts';

/** What became of a request. */
export type Outcome =
  | { readonly is: 'done'; readonly body: unknown }
  /** A complete answer that is not a success. */
  | {
      readonly is: 'refused';
      readonly status: number;
      readonly errcode: string;
      readonly text: string;
      readonly retryAfterMs?: number | undefined;
    }
  /** No complete answer. */
  | { readonly is: 'lost'; readonly maybeSent: boolean; readonly text: string };
export type Failure = Exclude<Outcome, { readonly is: 'done' }>;

export interface RequestOptions {
  readonly signal: AbortSignal;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
  /** First segments of the path; version 3 of the client-server API when absent. */
  readonly base?: string;
  /** A sync has more time, and its answer more space: the first one, with all rooms, and long polls. */
  readonly sync?: 'first' | 'poll';
}

/** Time that the homeserver has for a poll without an event, and our deadline for its answer. */
export const pollMs = 30_000;
const pollDeadlineMs = pollMs + 15_000;
const firstSyncMs = 120_000;
const answerMs = 30_000;
const mediaMs = 120_000;
const maxAnswer = 4 * 1_048_576;
const maxSyncAnswer = 32 * 1_048_576;
const maxMedia = 52_428_800;
const longestText = 200;
const longestWaitMs = 60 * 60_000;

export interface ApiOptions {
  readonly homeserver: string;
  readonly accessToken: string;
  readonly clock: WireClock;
}

/** Requests to a homeserver: none is repeated, no id gets into a path unescaped, and no text contains the token. */
export class MatrixApi {
  readonly #base: string;
  readonly #token: string;
  readonly #ask: typeof fetch;
  readonly #syncs: Readonly<Record<'first' | 'poll', typeof fetch>>;
  readonly #media: typeof fetch;

  constructor({ homeserver, accessToken, clock }: ApiOptions) {
    this.#base = homeserver.replace(/\/+$/, '');
    this.#token = accessToken;
    this.#ask = createFetch({ clock, timeoutMs: answerMs, maxBytes: maxAnswer });
    this.#syncs = {
      first: createFetch({ clock, timeoutMs: firstSyncMs, maxBytes: maxSyncAnswer }),
      poll: createFetch({ clock, timeoutMs: pollDeadlineMs, maxBytes: maxSyncAnswer }),
    };
    this.#media = createFetch({ clock, timeoutMs: mediaMs, maxBytes: maxMedia });
  }

  /** Calls a method of the API; `path`: segments, not yet escaped. */
  async request(method: 'GET' | 'POST' | 'PUT', path: readonly string[], options: RequestOptions): Promise<Outcome> {
    const { body, signal, sync } = options;
    const init = { method, signal, ...(body !== undefined && { body: JSON.stringify(body) }) };
    const answer = await this.#fetch(sync === undefined ? this.#ask : this.#syncs[sync], this.#url(path, options), init, 'application/json');
    if (!(answer instanceof Response)) return answer;
    if (!answer.ok) return this.#refusal(answer);
    try {
      return { is: 'done', body: parseJsonUnchecked(await answer.text()) };
    } catch {
      return { is: 'lost', maybeSent: true, text: 'The answer of the homeserver is not valid JSON' };
    }
  }

  /** Uploads a file; the body of the answer names it. */
  async upload(bytes: Uint8Array<ArrayBuffer>, name: string, mediaType: string, signal: AbortSignal): Promise<Outcome> {
    const url = this.#url(['upload'], { base: '_matrix/media/v3', query: { filename: name } });
    const answer = await this.#fetch(this.#media, url, { method: 'POST', body: bytes, signal }, mediaType);
    if (!(answer instanceof Response)) return answer;
    if (!answer.ok) return this.#refusal(answer);
    try {
      return { is: 'done', body: parseJsonUnchecked(await answer.text()) };
    } catch {
      return { is: 'lost', maybeSent: true, text: 'The answer of the homeserver is not valid JSON' };
    }
  }

  /** Downloads a file; `base` names the API. */
  async download(base: string, path: readonly string[], signal: AbortSignal): Promise<Failure | { readonly is: 'done'; readonly bytes: Uint8Array }> {
    const answer = await this.#fetch(this.#media, this.#url(path, { base }), { method: 'GET', signal });
    if (!(answer instanceof Response)) return answer;
    if (!answer.ok) return this.#refusal(answer);
    return { is: 'done', bytes: new Uint8Array(await answer.arrayBuffer()) };
  }

  #url(path: readonly string[], { base = '_matrix/client/v3', query = {} }: Pick<RequestOptions, 'base' | 'query'>): string {
    const search = new URLSearchParams(query).toString();
    return `${this.#base}/${base}/${path.map(encodeURIComponent).join('/')}${search === '' ? '' : `?${search}`}`;
  }

  async #fetch(ask: typeof fetch, url: string, init: RequestInit, contentType?: string): Promise<Response | Failure> {
    if (init.signal?.aborted === true) return { is: 'lost', maybeSent: false, text: 'The channel stopped' };
    const headers = {
      authorization: `Bearer ${this.#token}`,
      ...(init.body != null && contentType !== undefined && { 'content-type': contentType }),
    };
    try {
      return await ask(url, { ...init, headers });
    } catch (error) {
      if (error instanceof RequestFailed) return { is: 'lost', maybeSent: error.maybeSent, text: error.message };
      return { is: 'lost', maybeSent: true, text: 'The request failed' };
    }
  }

  async #refusal(answer: Response): Promise<Failure> {
    const said = errorIn(await answer.text());
    const headerMs = Number(answer.headers.get('retry-after') ?? Number.NaN) * 1_000;
    const waitMs = said.retryAfterMs ?? (Number.isFinite(headerMs) ? headerMs : undefined);
    const errcode = /^[A-Z][A-Z0-9_.]{0,63}$/.test(said.errcode) ? said.errcode : '';
    const text = said.text
      .replaceAll(this.#token, '[token]')
      .replaceAll(/\p{C}+/gu, ' ')
      .slice(0, longestText);
    return {
      is: 'refused',
      status: answer.status,
      errcode,
      text: `The homeserver answered ${answer.status}${errcode === '' ? '' : ` ${errcode}`}${text === '' ? '' : `: ${text}`}`,
      ...(waitMs !== undefined && { retryAfterMs: Math.min(Math.max(0, waitMs), longestWaitMs) }),
    };
  }
}

/** Reads the body of an error; a proxy on the way answers with anything. */
function errorIn(body: string): { readonly errcode: string; readonly text: string; readonly retryAfterMs?: number } {
  let value: unknown;
  try {
    value = parseJsonUnchecked(body);
  } catch {
    return { errcode: '', text: '' };
  }
  if (typeof value !== 'object' || value === null) return { errcode: '', text: '' };
  const field = (name: string): unknown => (Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined);
  const [errcode, error, waitMs] = [field('errcode'), field('error'), field('retry_after_ms')];
  return {
    errcode: typeof errcode === 'string' ? errcode : '',
    text: typeof error === 'string' ? error : '',
    ...(typeof waitMs === 'number' && Number.isFinite(waitMs) && { retryAfterMs: waitMs }),
  };
}
