import { derived, type Live } from '../../../../kernel/config/live.ts';
import type { TraceWork } from '../../../../kernel/work-trace.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import { AppError } from '../../../../kernel/app-error.ts';
import type { WebhookCall, WebhookIntake, WebhooksApi } from '../api.ts';
import { strictId, type WebhooksConfig } from '../config.ts';
import { readOffThread } from './delivery-reader.ts';
import { normalizePath, wantsPath } from '../rules/match.ts';
import { githubBodyBytes } from '../rules/presets.ts';
import type { DeliveryReading, DeliveryRequest } from './read-delivery.ts';
import { isEnabled, type Rule, strictRule } from '../rules/rules.ts';
import {
  badSignature,
  checkTimestamp,
  type Claim,
  digestBody,
  type Headers,
  provesBody,
  readClaim,
  type SignaturePolicy,
  single,
} from './signature.ts';

/** A delivery with a proven sender and a matching rule. */
export interface Proven {
  readonly rule: Rule;
  readonly reading: DeliveryReading;
  readonly bodyDigest: string;
  readonly bodyBytes: number;
  /** Id of the delivery: signed, rendered, or from a common header. */
  readonly senderId: string | undefined;
  /** Timestamp as sent, signed or not. */
  readonly timestamp: string | undefined;
  readonly isTimestampSigned: boolean;
  readonly remoteAddress: string | null;
  readonly traceId: string;
}

/** Maximum bodies in memory, which bounds what unauthenticated senders can use; large ones are limited separately. */
const maxBodies = 200;
const maxHeldBytes = 52_428_800;
const maxLargeBodies = 2;
const retryAfterMs = 2_000;
/** Headers with which senders identify a delivery (decisions §6). */
const idHeaders = ['x-github-delivery', 'webhook-id'];

interface StrictCall extends WebhookCall {
  readonly isStrict: boolean;
}

export interface IntakeDeps {
  readonly config: Live<WebhooksConfig>;
  /** Largest body when the webhook configuration sets none. */
  readonly httpBodyLimitBytes: () => number;
  readonly rules: () => readonly Rule[];
  readonly clock: Clock;
  readonly traceWork: TraceWork;
  /** Commits a proven delivery and its effects. */
  readonly accept: (proven: Proven) => Promise<void>;
}

/** Handles a request from its headers to the stored delivery. Nothing is parsed before a signature is verified. */
export function createIntake({ config, httpBodyLimitBytes, rules, clock, traceWork, accept }: IntakeDeps): WebhooksApi {
  const strict = derived(config, strictRule);
  let bodies = 0;
  let heldBytes = 0;
  let largeBodies = 0;

  /** Returns the rules that match the path, in order. */
  function rulesFor(normalized: string): readonly Rule[] {
    const found = isEnabled(config.current) ? rules().filter(({ mapping }) => wantsPath(mapping.match, normalized)) : [];
    return normalized === strictId ? [...found, strict()] : found;
  }

  function open(call: WebhookCall): WebhookIntake {
    const normalized = normalizePath(call.path);
    const isStrict = normalized === strictId;
    const { current } = config;
    if (isStrict && (!isEnabled(current) || current.token === undefined)) throw badSignature();
    const wanted = rulesFor(normalized);
    if (wanted.length === 0) throw noMapping();
    // The payload may select among several rules; until then the secret of any of them is sufficient.
    const claims = new Map<Rule, Claim>();
    for (const rule of wanted) {
      const claim = isStrict && rule.policy.kind === 'none' ? undefined : readClaim(rule.policy, call.headers);
      if (claim !== undefined) claims.set(rule, claim);
    }
    if (claims.size === 0) throw badSignature();
    const maxBodyBytes = current.maxBodyBytes ?? httpBodyLimitBytes();
    const isGithub = [...claims].some(([{ mapping }, { signatures }]) => mapping.preset === 'github' && signatures.length > 0);
    const bodyLimit = isGithub ? Math.max(githubBodyBytes, maxBodyBytes) : maxBodyBytes;
    const length = single(call.headers, 'content-length');
    // Unsigned requests and those without a content length are held to the common limit.
    const isLarge = length !== undefined && Number(length) > maxBodyBytes && Number(length) <= bodyLimit;
    const mayHold = isLarge ? 0 : Math.min(length === undefined ? maxBodyBytes : Number(length), maxBodyBytes);
    return {
      isStrict,
      bodyLimit: isLarge ? bodyLimit : maxBodyBytes,
      isLarge,
      async receive(read) {
        if (bodies >= maxBodies || heldBytes + mayHold > maxHeldBytes || (isLarge && largeBodies >= maxLargeBodies))
          throw new AppError('unavailable', 'Too many concurrent deliveries', { retryAfterMs });
        bodies += 1;
        heldBytes += mayHold;
        if (isLarge) largeBodies += 1;
        try {
          const proven = await prove({ ...call, isStrict }, wanted, claims, await read());
          await accept(proven);
          return { mapping: proven.rule.mapping.id, isSigned: proven.rule.policy.kind !== 'none' };
        } finally {
          bodies -= 1;
          heldBytes -= mayHold;
          if (isLarge) largeBodies -= 1;
        }
      },
    };
  }

  async function prove(call: StrictCall, wanted: readonly Rule[], claims: ReadonlyMap<Rule, Claim>, body: Buffer): Promise<Proven> {
    const proven = new Set<Rule>();
    // Rules with the same policy make the same claim for a request.
    const known = new Map<SignaturePolicy, boolean>();
    for (const [rule, claim] of claims) {
      const holds = known.get(rule.policy) ?? (await provesBody(claim, body));
      known.set(rule.policy, holds);
      if (holds) proven.add(rule);
    }
    if (proven.size === 0) throw badSignature();
    const reading = await readOffThread(requestOf(call, wanted, body, clock.now()));
    if (reading === undefined) {
      const facts = { filtered: 'no_mapping', bytes: body.length };
      traceWork({
        kind: 'delivery',
        traceId: call.traceId,
        origin: 'webhook',
        channelType: 'webhook',
        outcome: 'skipped',
        endReason: 'filtered',
        facts,
      });
      throw noMapping();
    }
    const rule = wanted.find(({ mapping }) => mapping.id === reading.ruleId);
    const claim = rule === undefined ? undefined : claims.get(rule);
    // The secret of another rule of the same path does not authorise this one.
    if (rule === undefined || claim === undefined || !proven.has(rule)) throw badSignature();
    checkTimestamp(claim, clock.now());
    return {
      rule,
      reading,
      bodyDigest: await digestBody(body),
      bodyBytes: body.length,
      senderId: claim.signedId ?? (claim.policy.kind === 'standard' ? undefined : (reading.deliveryId ?? idIn(call))),
      timestamp: claim.timestamp,
      isTimestampSigned: claim.prefix !== '',
      remoteAddress: call.remoteAddress,
      traceId: call.traceId,
    };
  }

  return { path: config.current.path, rateLimit: () => config.current.rateLimit, open };
}

function noMapping(): AppError {
  return new AppError('not_found', 'No matching webhook mapping');
}

function idIn({ headers }: WebhookCall): string | undefined {
  for (const name of idHeaders) {
    const id = single(headers, name);
    if (id !== undefined && id !== '' && id.length <= 256) return id;
  }
  return undefined;
}

/** Matches headers that a template must not copy into a prompt or a key: credentials and signatures. */
const secretHeader = /auth|cookie|token|secret|signature|api-?key|password|credential/;

function requestOf(call: StrictCall, rules: readonly Rule[], body: Buffer, nowMs: number): DeliveryRequest {
  return {
    rules: rules.map(({ reading }) => reading),
    body,
    isForm: rules.some(({ mapping }) => mapping.preset === 'github') && isForm(call),
    isStrict: call.isStrict,
    context: {
      headers: rules.some(({ readsHeaders }) => readsHeaders) ? readableHeaders(call.headers, rules) : {},
      query: call.search === '' ? {} : Object.fromEntries(new URLSearchParams(call.search)),
      path: call.path.replace(/^\/+|\/+$/g, ''),
      now: new Date(nowMs).toISOString(),
    },
  };
}

function readableHeaders(all: Headers, rules: readonly Rule[]): Record<string, string> {
  const proof = new Set(rules.flatMap(({ policy }) => (policy.kind === 'hmac' ? [policy.header] : [])));
  const headers = Object.entries(all).flatMap(([name, values]) =>
    values === undefined || proof.has(name) || secretHeader.test(name) ? [] : [[name, values.join(', ')] as const],
  );
  return Object.fromEntries(headers);
}

function isForm({ headers }: WebhookCall): boolean {
  return /^application\/x-www-form-urlencoded\s*(;|$)/i.test(single(headers, 'content-type') ?? '');
}
