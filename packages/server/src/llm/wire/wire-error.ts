import type { IncomingHttpHeaders } from 'node:http';
import type { ModelErrorKind } from '../model.ts';

const maxMessage = 300;

/** What a provider said about a failure, in whatever shape it says it. */
export interface ProviderComplaint {
  readonly message: string;
  readonly code: string;
}

/** Reads `{error: {message, code, type}}`, `{error: "…"}`, `{message}`, `{detail}` and Google's one-element list of them; otherwise the text itself. */
export function readComplaint(body: string): ProviderComplaint {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return { message: body.trimStart().startsWith('<') ? 'an HTML page' : body, code: '' };
  }
  return complaintOf(value);
}

export function complaintOf(value: unknown): ProviderComplaint {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (!isRecord(first)) return { message: typeof first === 'string' ? first : '', code: '' };
  const inner = first['error'] ?? first;
  if (typeof inner === 'string') return { message: inner, code: '' };
  if (!isRecord(inner)) return { message: '', code: '' };
  const message = [inner['message'], inner['detail'], first['message'], first['detail']].find((field) => field !== undefined);
  const words = [inner['code'], inner['type'], inner['status']].filter((field) => typeof field === 'string' || typeof field === 'number');
  return { message: typeof message === 'string' ? message : message === undefined ? '' : JSON.stringify(message), code: words.join(' ') };
}

const contextWords =
  /context[ _-]?(length|window|size)|maximum context|too many (input )?tokens|prompt is too long|input (is|was) too long|exceeds? the (maximum|max|model'?s?) (number of )?(input )?tokens?|reduce the length|string_above_max_length/i;
const billingWords =
  /insufficient[ _](quota|balance|credits?|funds)|credit balance|billing|payment required|out of credits|exceeded your current quota/i;
const keyWords = /api[ _-]?key|unauthorized|authentication/i;
const overloadedWords = /overloaded|capacity|temporarily unavailable/i;

/** What may be done about a refusal is told by its status first and by the provider's code where one status means several things. */
export function kindOfRefusal(status: number, complaint: ProviderComplaint): ModelErrorKind {
  const said = `${complaint.code} ${complaint.message}`;
  if (status === 401 || status === 403) return billingWords.test(complaint.code) ? 'billing' : 'auth';
  if (status === 402) return 'billing';
  if (status === 408) return 'timeout';
  if (status === 413) return /rate_limit|per minute/i.test(said) ? 'rate_limit' : contextWords.test(said) ? 'context_length' : 'bad_request';
  if (status === 429) return billingWords.test(said) ? 'billing' : 'rate_limit';
  if (status === 425) return 'rate_limit';
  if (status === 503 || status === 529) return 'overloaded';
  if (status >= 500) return overloadedWords.test(complaint.code) ? 'overloaded' : 'server';
  if (status >= 300 && status < 400) return 'bad_response';
  if (contextWords.test(said)) return 'context_length';
  if (billingWords.test(said)) return 'billing';
  // Google and xAI answer a wrong key with 400.
  if (status === 400 && keyWords.test(said) && /invalid|incorrect|not valid|missing|expired/i.test(said)) return 'auth';
  return 'bad_request';
}

/** The kind of an error that arrives inside a stream, where the status was 200. */
export function kindOfStreamError(complaint: ProviderComplaint): ModelErrorKind {
  const status = /\b([45]\d\d)\b/.exec(complaint.code)?.[1];
  if (status !== undefined) return kindOfRefusal(Number(status), complaint);
  const said = `${complaint.code} ${complaint.message}`;
  if (/rate_limit/i.test(said)) return 'rate_limit';
  if (overloadedWords.test(said)) return 'overloaded';
  if (contextWords.test(said)) return 'context_length';
  if (billingWords.test(said)) return 'billing';
  if (/authentication_error|permission_error|invalid_api_key/i.test(said)) return 'auth';
  if (/invalid_request/i.test(complaint.code)) return 'bad_request';
  return 'server';
}

/** A provider's words made fit for logs and clients: one line, at most 300 characters, none of `secrets` and nothing that looks like a key. */
export function cleanMessage(text: string, secrets: readonly string[]): string {
  let clean = text.slice(0, 16_384);
  for (const secret of secrets) if (secret.length >= 4) clean = clean.replaceAll(secret, '[redacted]');
  clean = clean
    .replace(/\b(?:sk|pk|rk|gsk|xai|csk|fw|pplx|tgp|r8|hf)[-_][\w*.-]{8,}|\bAIza[\w-]{10,}|\bBearer\s+\S+/g, '[redacted]')
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ')
    .trim();
  return clean.length > maxMessage ? `${clean.slice(0, maxMessage - 1)}…` : clean;
}

const maxRetryAfterMs = 86_400_000;

/** `retry-after-ms`, or `retry-after` in seconds or as an HTTP date; undefined when neither can be read. */
export function retryAfterOf(headers: IncomingHttpHeaders, nowMs: number): number | undefined {
  const ms = numberOf(headers['retry-after-ms']);
  if (ms !== undefined) return bounded(ms);
  const value = headers['retry-after'];
  const seconds = numberOf(value);
  if (seconds !== undefined) return bounded(seconds * 1000);
  const date = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : bounded(date - nowMs);
}

function bounded(ms: number) {
  return Math.min(maxRetryAfterMs, Math.max(0, Math.ceil(ms)));
}

function numberOf(value: string | string[] | undefined) {
  return typeof value === 'string' && /^\s*\d+(\.\d+)?\s*$/.test(value) ? Number(value) : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
