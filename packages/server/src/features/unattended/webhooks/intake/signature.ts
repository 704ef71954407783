import { createHash, createHmac, createSecretKey, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../../../kernel/app-error.ts';

export type HmacAlgorithm = 'sha256' | 'sha384' | 'sha512';

/** The headers of a request, each with all its values (`headersDistinct` of node). */
export type Headers = Readonly<Record<string, readonly string[] | undefined>>;

/** How a mapping authenticates its sender. */
export type SignaturePolicy =
  | { readonly kind: 'none' }
  | {
      readonly kind: 'hmac';
      readonly secret: string;
      readonly header: string;
      readonly algorithm: HmacAlgorithm;
      /** Absent when the sender has none, like GitHub. */
      readonly timestamp?: {
        readonly header: string;
        readonly maxAgeSec: number;
        readonly isRequired: boolean;
        /** Whether the sender signs `<timestamp>.<body>`. */
        readonly isSigned: boolean;
      };
    }
  /** Standard Webhooks: `webhook-id`, `webhook-timestamp` and `webhook-signature`. */
  | { readonly kind: 'standard'; readonly secret: string; readonly maxAgeSec: number };

/** The claim made by the headers of a request, well-formed but not verified. */
export interface Claim {
  readonly policy: SignaturePolicy;
  /** Candidate signatures; one valid one is enough. */
  readonly signatures: readonly Buffer[];
  /** Signed text before the body. */
  readonly prefix: string;
  /** Unix seconds, as sent. */
  readonly timestamp: string | undefined;
  /** The signed id, trustworthy once the claim is verified. */
  readonly signedId: string | undefined;
}

const secretPrefix = 'whsec_';
/** Bytes hashed per iteration of the event loop. */
const sliceBytes = 1_048_576;

export function isSigningSecret(secret: string): boolean {
  const text = secret.slice(secretPrefix.length);
  const { length } = Buffer.from(text, 'base64');
  return secret.startsWith(secretPrefix) && /^[A-Za-z0-9+/]+={0,2}$/.test(text) && length >= 24 && length <= 64;
}

/** Returns the same error for every invalid signature, without revealing which part was wrong. */
export function badSignature(): AppError {
  return new AppError('unauthenticated', 'The signature of the request is missing or not valid');
}

/**
 * Parses the claim in the headers before the body is read; undefined when no signature of this policy can be valid.
 * A duplicate header proves nothing, because others may read the other value.
 */
export function readClaim(policy: SignaturePolicy, headers: Headers): Claim | undefined {
  if (policy.kind === 'none') return { policy, signatures: [], prefix: '', timestamp: undefined, signedId: undefined };
  if (policy.kind === 'standard') return readStandard(policy, headers);
  const value = single(headers, policy.header);
  const hex = value === undefined ? undefined : hexOf(value, policy.algorithm);
  if (hex === undefined) return undefined;
  if (policy.timestamp === undefined) return { policy, signatures: [hex], prefix: '', timestamp: undefined, signedId: undefined };
  const { header, isSigned } = policy.timestamp;
  if ((headers[header]?.length ?? 0) > 1) return undefined;
  const timestamp = single(headers, header);
  if (isSigned && timestamp === undefined) return undefined;
  return { policy, signatures: [hex], prefix: isSigned ? `${timestamp}.` : '', timestamp, signedId: undefined };
}

function readStandard(policy: SignaturePolicy, headers: Headers): Claim | undefined {
  const id = single(headers, 'webhook-id');
  const timestamp = single(headers, 'webhook-timestamp');
  const value = single(headers, 'webhook-signature');
  if (id === undefined || id === '' || id.length > 256 || timestamp === undefined || value === undefined || value.length > 4_096) return undefined;
  // Key rotation sends several signatures; versions other than v1 are for other kinds of keys. The last character of 32 bytes has two
  // bits that decoders ignore: with others than zeros it would be a second spelling of the same signature.
  const signatures = value
    .split(' ')
    .filter((one) => /^v1,[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(one))
    .map((one) => Buffer.from(one.slice(3), 'base64'));
  return signatures.length === 0 ? undefined : { policy, signatures, prefix: `${id}.${timestamp}.`, timestamp, signedId: id };
}

function hexOf(value: string, algorithm: HmacAlgorithm): Buffer | undefined {
  const hex = value.startsWith(`${algorithm}=`) ? value.slice(algorithm.length + 1) : value;
  if (hex.length !== 2 * digestBytes[algorithm]) return undefined;
  // Decoding stops at the first character that is not a hex digit.
  const bytes = Buffer.from(hex, 'hex');
  return bytes.length === digestBytes[algorithm] ? bytes : undefined;
}

const digestBytes: Readonly<Record<HmacAlgorithm, number>> = { sha256: 32, sha384: 48, sha512: 64 };

/** Returns the value of a header that must not be duplicated. */
export function single(headers: Headers, name: string): string | undefined {
  const values = headers[name];
  return values?.length === 1 ? values[0] : undefined;
}

/** Key objects by policy, because creating one from text for each digest is expensive. */
const keys = new WeakMap<SignaturePolicy, KeyObject>();

function keyOf(policy: Exclude<SignaturePolicy, { readonly kind: 'none' }>): KeyObject {
  let key = keys.get(policy);
  if (key === undefined) {
    const { kind, secret } = policy;
    key = createSecretKey(kind === 'standard' ? Buffer.from(secret.slice(secretPrefix.length), 'base64') : Buffer.from(secret));
    keys.set(policy, key);
  }
  return key;
}

/** Returns whether the raw bytes match the claimed signature; compares in constant time. */
export async function provesBody(claim: Claim, body: Buffer): Promise<boolean> {
  const { policy } = claim;
  if (policy.kind === 'none') return true;
  const hmac = createHmac(policy.kind === 'standard' ? 'sha256' : policy.algorithm, keyOf(policy)).update(claim.prefix);
  await inSlices(body, (slice) => hmac.update(slice));
  const expected = hmac.digest();
  let isEqual = false;
  for (const signature of claim.signatures) if (signature.length === expected.length && timingSafeEqual(signature, expected)) isEqual = true;
  return isEqual;
}

/** Returns the SHA-256 of the raw bytes, which unlike the text of a signature is canonical. */
export async function digestBody(body: Buffer): Promise<string> {
  if (body.length <= sliceBytes) return hash('sha256', body, 'base64url');
  const digest = createHash('sha256');
  await inSlices(body, (slice) => digest.update(slice));
  return digest.digest('base64url');
}

async function inSlices(body: Buffer, take: (slice: Buffer) => unknown): Promise<void> {
  for (let at = 0; at < body.length; at += sliceBytes) {
    if (at > 0) await new Promise((resolve) => setImmediate(resolve));
    take(body.subarray(at, at + sliceBytes));
  }
}

/** Rejects a verified request whose timestamp is missing, malformed or too far from now (http-gateway.md §5). */
export function checkTimestamp({ policy, timestamp }: Claim, nowMs: number): void {
  if (policy.kind === 'none') return;
  const rule = policy.kind === 'standard' ? { maxAgeSec: policy.maxAgeSec, isRequired: true } : policy.timestamp;
  if (rule === undefined || (timestamp === undefined && !rule.isRequired)) return;
  const isFresh = timestamp !== undefined && /^\d{1,12}$/.test(timestamp) && Math.abs(Math.floor(nowMs / 1000) - Number(timestamp)) <= rule.maxAgeSec;
  if (!isFresh)
    throw new AppError('unauthenticated', `The timestamp of the request is missing, malformed or more than ${rule.maxAgeSec} seconds off`);
}
