import { DiscordAPIError, HTTPError, type RawFile, REST, RateLimitError, type RequestMethod } from '@discordjs/rest';
import type * as z from 'zod';
import { createFetch, RequestFailed } from '../http.ts';
import type { Act, WireClock } from '../port.ts';

/** Evidence of a request that was not carried out, or may have been. */
export type Failure =
  | { readonly is: 'limited'; readonly text: string; readonly retryAfterMs: number; readonly isGlobal: boolean }
  | { readonly is: 'refused'; readonly text: string; readonly status: number; readonly code: number }
  | { readonly is: 'notSent'; readonly text: string }
  | { readonly is: 'ambiguous'; readonly text: string };

export type Answer<Value> = { readonly is: 'answered'; readonly value: Value } | Failure;

export interface Request {
  readonly signal: AbortSignal;
  readonly body?: object | undefined;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly files?: RawFile[] | undefined;
  /** Text for the audit log of the guild. */
  readonly reason?: string | undefined;
  /** The path contains its own secret. */
  readonly isWithoutToken?: boolean;
}

type Method = `${RequestMethod}`;

const timeoutMs = 30_000;
const maxBytes = 8_388_608;
/** The library keeps an object for each channel; those that are unused are removed beyond this number. */
const maxHandlers = 512;
const longestText = 300;

/** Requests to the REST API of Discord, each made once: a rate limit is an answer, not a reason to wait. */
export class DiscordRest {
  readonly #rest: REST;
  readonly #token: string;

  constructor({ apiUrl, token, clock }: { readonly apiUrl: string; readonly token: string; readonly clock: WireClock }) {
    const request = createFetch({ clock, timeoutMs, maxBytes });
    this.#token = token;
    this.#rest = new REST({
      api: apiUrl.replace(/\/+$/, ''),
      version: '10',
      retries: 0,
      // `createFetch` has the deadline, on our clock.
      timeout: 2 ** 31 - 1,
      rejectOnRateLimit: () => true,
      hashSweepInterval: 0,
      handlerSweepInterval: 0,
      // The library makes no other headers and bodies.
      makeRequest: (url, { method, headers, body, signal }) =>
        request(url, {
          ...(method !== undefined && { method }),
          headers: headers as Record<string, string>,
          body: body as string | FormData | null,
          signal: signal ?? null,
        }),
    });
  }

  /** Never rejects. The answer is parsed with `schema`. */
  async ask<Schema extends z.ZodType>(method: Method, route: `/${string}`, schema: Schema, request: Request): Promise<Answer<z.output<Schema>>> {
    const { signal, body, query, files, reason, isWithoutToken = false } = request;
    if (signal.aborted) return { is: 'notSent', text: 'The channel stopped' };
    // The library forgets the token after a 401.
    this.#rest.setToken(this.#token);
    if (this.#rest.handlers.size > maxHandlers) this.#rest.handlers.sweep(({ inactive }) => inactive);
    try {
      const value = await this.#rest.request({
        method: method as RequestMethod,
        fullRoute: route,
        // The library never removes its listeners from a signal.
        signal: AbortSignal.any([signal]),
        auth: !isWithoutToken,
        ...(body !== undefined && { body }),
        ...(query !== undefined && { query: new URLSearchParams(query) }),
        ...(files !== undefined && { files }),
        ...(reason !== undefined && { reason }),
      });
      const parsed = schema.safeParse(value);
      return parsed.success ? { is: 'answered', value: parsed.data } : { is: 'ambiguous', text: 'Discord answered in an unknown form' };
    } catch (error) {
      return failureOf(error);
    }
  }
}

function failureOf(error: unknown): Failure {
  if (error instanceof RateLimitError)
    return {
      is: 'limited',
      text: 'Discord limits the rate of requests',
      retryAfterMs: Math.max(0, Math.ceil(error.retryAfter)),
      isGlobal: error.global || error.scope === 'global',
    };
  if (error instanceof DiscordAPIError)
    return { is: 'refused', text: error.message.slice(0, longestText), status: error.status, code: typeof error.code === 'number' ? error.code : 0 };
  if (error instanceof HTTPError) return { is: 'ambiguous', text: `Discord answered with ${error.status}` };
  if (error instanceof RequestFailed) return { is: error.maybeSent ? 'ambiguous' : 'notSent', text: error.message };
  // A request that was queued behind another one of the same channel has not been made.
  if (error instanceof Error && error.name === 'AbortError') return { is: 'notSent', text: 'The channel stopped' };
  return { is: 'ambiguous', text: 'The request failed' };
}

/** Returns the end of a call; `mutates`: it may have been carried out although no answer came. */
export function actOf<Value, Result>(answer: Answer<Value>, mutates: boolean, resultOf: (value: Value) => Result): Act<Result> {
  switch (answer.is) {
    case 'answered':
      return { is: 'done', value: resultOf(answer.value) };
    case 'limited':
      return { is: 'failed', kind: 'rate_limited', text: answer.text, retryAfterMs: answer.retryAfterMs };
    case 'refused':
      return { is: 'failed', kind: kindOfStatus(answer.status), text: answer.text };
    case 'notSent':
      return { is: 'failed', kind: 'unavailable', text: answer.text };
    case 'ambiguous':
      return { is: 'failed', kind: mutates ? 'ambiguous' : 'unavailable', text: answer.text };
  }
}

function kindOfStatus(status: number): 'not_found' | 'denied' | 'invalid' {
  if (status === 404) return 'not_found';
  return status === 401 || status === 403 ? 'denied' : 'invalid';
}
