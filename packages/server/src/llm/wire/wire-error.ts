import type { IncomingHttpHeaders } from 'node:http';
import { ModelError, type ModelErrorKind } from '../model.ts';

/*
 * What a refusal is about: the request alone, or the key and the account, which pauses the model for every caller.
 *
 * - Key or account: status 401 and 429, and any other 4xx whose machine-readable fields (`code`, `type`, `status`, reasons in
 *   `details`) name credentials, the permission of the key or the balance of the account (`keyCodes`, `balanceCodes`).
 * - The request: every other 4xx, and those whose fields name moderation (`moderationCodes`, `metadata.flagged_input`).
 * - Ambiguous: 402 and 403 without such a field, and a 400 whose message starts like the sentences that some providers use instead of
 *   a field. It is a refusal of the request that is `possibly` one of the key or account (`ProviderStates` counts those by caller).
 *
 * The message never decides, because servers repeat the caller's text in it. A message may still reveal which refusal of one request
 * it is (`context_length`), which affects nobody else.
 */

const maxMessage = 300;

/** What a provider reported about a failure, in whatever format. */
export interface ProviderComplaint {
  readonly message: string;
  /** Values of the machine-readable fields, in lower case. */
  readonly codes: readonly string[];
}

/** Reads `{error: {message, code, type}}`, `{error: "…"}`, `{message}`, `{detail}` and Google's one-element list of them; otherwise the text itself. */
export function readComplaint(body: string): ProviderComplaint {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return { message: body.trimStart().startsWith('<') ? 'an HTML page' : body, codes: [] };
  }
  return complaintOf(value);
}

export function complaintOf(value: unknown): ProviderComplaint {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  if (!isRecord(first)) return { message: typeof first === 'string' ? first : '', codes: [] };
  const inner = first['error'] ?? first;
  if (typeof inner === 'string') return { message: inner, codes: codesOf(first) };
  if (!isRecord(inner)) return { message: '', codes: [] };
  const message = [inner['message'], inner['detail'], first['message'], first['detail']].find((field) => field !== undefined);
  return {
    message: typeof message === 'string' ? message : message === undefined ? '' : JSON.stringify(message),
    codes: codesOf(inner),
  };
}

/** OpenAI's shape, Google's reasons, and the mark of OpenRouter's moderation. */
function codesOf({ code, type, status, details, metadata }: Record<string, unknown>): string[] {
  const reasons = Array.isArray(details) ? details.flatMap((detail) => (isRecord(detail) ? [detail['reason']] : [])) : [];
  const isFlagged = isRecord(metadata) && (metadata['flagged_input'] !== undefined || metadata['reasons'] !== undefined);
  return [code, type, status, ...reasons, ...(isFlagged ? [flaggedInput] : [])].flatMap((field) =>
    typeof field === 'string' || typeof field === 'number' ? [String(field).toLowerCase()] : [],
  );
}

const flaggedInput = 'flagged_input';
const moderationCodes: ReadonlySet<string> = new Set([
  flaggedInput,
  'content_filter',
  'content_policy_violation',
  'data_inspection_failed',
  'datainspectionfailed',
  'moderation_blocked',
]);
/** Without Google's `PERMISSION_DENIED`, which is also used for a file that a request names. */
const keyCodes: ReadonlySet<string> = new Set([
  'account_deactivated',
  'api_key_expired',
  'api_key_invalid',
  'api_key_service_blocked',
  'authentication_error',
  'consumer_invalid',
  'insufficient_permissions',
  'invalid_api_key',
  'invalid_authentication_error',
  'invalid_organization',
  'permission_error',
  'service_disabled',
  'unauthenticated',
  'unsupported_country_region_territory',
]);
const balanceCodes: ReadonlySet<string> = new Set([
  'arrearage',
  'billing_disabled',
  'billing_error',
  'billing_hard_limit_reached',
  'billing_not_active',
  'exceeded_current_quota_error',
  'insufficient_balance',
  'insufficient_credits',
  'insufficient_funds',
  'insufficient_quota',
]);
/** Sentences of Anthropic, xAI and Google; only at the start, where no server puts a caller's text. */
const balanceSentence = /^your credit balance is too low/i;
const keySentence = /^(incorrect api key provided|api key (not valid|expired))/i;

const contextPattern =
  /context[ _-]?(length|window|size)|maximum context|too many (input )?tokens|prompt is too long|input (is|was) too long|exceeds? the (maximum|max|model'?s?) (number of )?(input )?tokens?|reduce the length|string_above_max_length/i;
const overloadedPattern = /overloaded|capacity|temporarily unavailable/i;

export interface Refusal {
  readonly kind: ModelErrorKind;
  readonly possibly?: NonNullable<ModelError['possibly']>;
}

/** Classifies a refusal, by its status and by the provider's codes where one status means several things. */
export function readRefusal(status: number, { message, codes }: ProviderComplaint): Refusal {
  const said = `${codes.join(' ')} ${message}`;
  if (status === 401) return { kind: names(codes, balanceCodes) ? 'billing' : 'auth' };
  if (status === 408) return { kind: 'timeout' };
  if (status === 425) return { kind: 'rate_limit' };
  if (status === 429) return { kind: names(codes, balanceCodes) ? 'billing' : 'rate_limit' };
  if (status === 503 || status === 529) return { kind: 'overloaded' };
  if (status >= 500) return { kind: overloadedPattern.test(codes.join(' ')) ? 'overloaded' : 'server' };
  if (status >= 300 && status < 400) return { kind: 'bad_response' };
  if (names(codes, moderationCodes)) return { kind: 'bad_request' };
  if (names(codes, balanceCodes)) return { kind: 'billing' };
  if (names(codes, keyCodes)) return { kind: 'auth' };
  if (status === 402) return { kind: 'bad_request', possibly: 'billing' };
  if (status === 403) return { kind: 'bad_request', possibly: 'auth' };
  if (contextPattern.test(said)) return { kind: 'context_length' };
  if (status === 400 && balanceSentence.test(message)) return { kind: 'bad_request', possibly: 'billing' };
  if (status === 400 && keySentence.test(message)) return { kind: 'bad_request', possibly: 'auth' };
  return { kind: 'bad_request' };
}

/** Classifies an error that arrives inside a stream or in a whole answer, where the status was 200. */
function readStreamError(complaint: ProviderComplaint): Refusal {
  const { codes, message } = complaint;
  const status = codes.find((code) => /^[45]\d\d$/.test(code));
  if (status !== undefined) return readRefusal(Number(status), complaint);
  const code = codes.join(' ');
  if (/rate_limit/.test(code)) return { kind: 'rate_limit' };
  if (overloadedPattern.test(`${code} ${message}`)) return { kind: 'overloaded' };
  if (contextPattern.test(`${code} ${message}`)) return { kind: 'context_length' };
  if (names(codes, moderationCodes)) return { kind: 'bad_request' };
  if (names(codes, balanceCodes)) return { kind: 'billing' };
  if (names(codes, keyCodes)) return { kind: 'auth' };
  return { kind: /invalid_request/.test(code) ? 'bad_request' : 'server' };
}

/** Returns it as an error; `otherwise` is the message when the provider sent none. */
export function streamErrorOf(complaint: ProviderComplaint, otherwise: string): ModelError {
  const { kind, ...meaning } = readStreamError(complaint);
  return new ModelError(kind, complaint.message === '' ? otherwise : complaint.message, meaning);
}

function names(codes: readonly string[], known: ReadonlySet<string>): boolean {
  return codes.some((code) => known.has(code));
}

/** Makes a provider's message safe for logs and clients: one line, at most 300 characters, none of `secrets` and nothing that looks like a key. */
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

/** Returns `retry-after-ms`, or `retry-after` in seconds or as an HTTP date; undefined when neither can be read. */
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
