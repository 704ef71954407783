import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type Logger,
  LogLevel,
  WebAPIHTTPError,
  WebAPIPlatformError,
  WebAPIRateLimitedError,
  WebAPIRequestError,
  WebClient,
  type WebClientOptions,
} from '@slack/web-api';
import { createFetch, RequestFailed } from '../http.ts';
import type { Act, WireClock } from '../port.ts';

/** End of a request, by evidence. */
export type Answer =
  | { readonly is: 'ok'; readonly data: Readonly<Record<string, unknown>> }
  /** A complete answer that says no; `error` is the term of Slack. */
  | { readonly is: 'refused'; readonly error: string }
  | { readonly is: 'limited'; readonly retryAfterMs: number }
  /** No complete answer, or one that leaves open what was done. */
  | { readonly is: 'failed'; readonly text: string; readonly maybeSent: boolean };

export type NotOk = Exclude<Answer, { readonly is: 'ok' }>;

export interface ClientDeps {
  readonly botToken: string;
  readonly apiUrl: string;
  readonly clock: WireClock;
  /** Called when Slack does not accept the token any more. */
  readonly onUnauthorized: (error: string) => void;
}

const answerMs = 30_000;
const maxAnswerBytes = 16_777_216;
/** Pause when Slack does not say how long. */
const pauseSeconds = 30;

/** Errors after which nothing works before somebody changes the app or the configuration. */
const unauthorized: ReadonlySet<string> = new Set([
  'invalid_auth',
  'not_authed',
  'account_inactive',
  'token_revoked',
  'token_expired',
  'not_allowed_token_type',
  'no_permission',
  'user_removed_from_team',
  'team_disabled',
  'team_access_not_granted',
  'org_login_required',
  'ekm_access_denied',
  'access_denied',
]);
/** Slack says of these that it may have done a part, or does not say that it did nothing. */
const unclear: ReadonlySet<string> = new Set(['fatal_error', 'internal_error', 'service_unavailable', 'request_timeout']);
const limited: ReadonlySet<string> = new Set(['ratelimited', 'rate_limited']);

export const isUnauthorized = (error: string): boolean => unauthorized.has(error);

const ignore = () => {};
/** Texts of the libraries contain whole requests and answers. */
export const silentLog: Logger = {
  debug: ignore,
  info: ignore,
  warn: ignore,
  error: ignore,
  setLevel: ignore,
  setName: ignore,
  getLevel: () => LogLevel.ERROR,
};

/** Options of the library with which it repeats nothing, logs nothing and names neither machine nor system. */
export function clientOptions(clock: WireClock, apiUrl: string, signalOf: () => AbortSignal | undefined): WebClientOptions {
  const request = createFetch({ clock, timeoutMs: answerMs, maxBytes: maxAnswerBytes });
  return {
    slackApiUrl: apiUrl,
    retryConfig: { retries: 0 },
    rejectRateLimitedCalls: true,
    maxRequestConcurrency: Number.POSITIVE_INFINITY,
    fetch: async (input, init = {}) => {
      const headers = new Headers(init.headers);
      headers.set('user-agent', 'gatehouse');
      const response = await request(input, { ...init, headers, signal: signalOf() ?? null });
      if (response.status !== 429 || /^\d{1,6}$/.test(response.headers.get('retry-after') ?? '')) return response;
      return new Response(null, { status: 429, headers: { 'retry-after': String(pauseSeconds) } });
    },
  };
}

/** The Web API with the bot token: one request for each call, and its end as evidence. */
export class SlackClient {
  readonly #web: WebClient;
  readonly #onUnauthorized: (error: string) => void;
  /** The library takes no signal for a call. */
  readonly #signals = new AsyncLocalStorage<AbortSignal>();

  constructor({ botToken, apiUrl, clock, onUnauthorized }: ClientDeps) {
    this.#onUnauthorized = onUnauthorized;
    this.#web = new WebClient(botToken, { ...clientOptions(clock, apiUrl, () => this.#signals.getStore()), logger: silentLog });
  }

  /** Calls a method; never rejects. */
  async call(method: string, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<Answer> {
    if (signal.aborted) return { is: 'failed', text: 'The channel stopped', maybeSent: false };
    try {
      const result = await this.#signals.run(signal, () => this.#web.apiCall(method, { ...args }));
      return { is: 'ok', data: { ...result } };
    } catch (error) {
      const answer = answerOf(error);
      if (answer.is === 'refused' && isUnauthorized(answer.error)) this.#onUnauthorized(answer.error);
      return answer;
    }
  }
}

/** Returns what an error of the library is evidence of. */
export function answerOf(error: unknown): NotOk {
  if (error instanceof WebAPIRateLimitedError) return { is: 'limited', retryAfterMs: error.retryAfter * 1_000 };
  if (error instanceof WebAPIPlatformError) return answerOfTerm(error.data.error, error.data.response_metadata?.retryAfter);
  if (error instanceof WebAPIHTTPError) {
    const { statusCode } = error;
    return statusCode >= 300 && statusCode < 500
      ? { is: 'refused', error: `http_${statusCode}` }
      : { is: 'failed', text: `Slack answered ${statusCode}`, maybeSent: true };
  }
  const cause = error instanceof WebAPIRequestError ? error.original : error;
  if (cause instanceof RequestFailed) return { is: 'failed', text: cause.message, maybeSent: cause.maybeSent };
  return { is: 'failed', text: 'The request ended without an answer', maybeSent: true };
}

function answerOfTerm(error: unknown, retryAfter: unknown): NotOk {
  // A proxy that answers with a page is not Slack.
  if (typeof error !== 'string' || !/^[a-z0-9_-]{1,64}$/.test(error))
    return { is: 'failed', text: 'The answer is not one of the Web API of Slack', maybeSent: true };
  if (limited.has(error)) return { is: 'limited', retryAfterMs: (typeof retryAfter === 'number' ? retryAfter : pauseSeconds) * 1_000 };
  if (unclear.has(error)) return { is: 'failed', text: `Slack answered ${error}`, maybeSent: true };
  return { is: 'refused', error };
}

const notFound = /^(?:message|channel|user|file|thread|bookmark|no)_(?:not_found|item_specified)$|^file_deleted$/;
const isInvalid = /^(?:invalid_|bad_|too_|name_taken|msg_too_long|no_text|missing_(?:argument|post)|unknown_method|already_|cant_invite|cant_kick)/;

/** Returns the end of a call other than a send. */
export function failureOf(answer: NotOk): Extract<Act<never>, { readonly is: 'failed' }> {
  switch (answer.is) {
    case 'limited':
      return { is: 'failed', kind: 'rate_limited', text: 'Slack limits the rate of calls', retryAfterMs: answer.retryAfterMs };
    case 'failed':
      return { is: 'failed', kind: answer.maybeSent ? 'ambiguous' : 'unavailable', text: answer.text };
    case 'refused': {
      const { error } = answer;
      const kind = isUnauthorized(error) ? 'unavailable' : notFound.test(error) ? 'not_found' : isInvalid.test(error) ? 'invalid' : 'denied';
      return { is: 'failed', kind, text: refusalText(error) };
    }
  }
}

const hints: Readonly<Record<string, string>> = {
  not_in_channel: 'the app is not a member of the channel: invite it',
  missing_scope: 'the bot token lacks a scope: see the manifest in docs/guide/channels-slack.md',
  channel_not_found: 'the channel does not exist, or the app is not a member of it',
  is_archived: 'the channel is archived',
};

/** Returns a sentence about a refusal. */
export const refusalText = (error: string): string => `Slack refused: ${error}${hints[error] === undefined ? '' : `, ${hints[error]}`}`;
