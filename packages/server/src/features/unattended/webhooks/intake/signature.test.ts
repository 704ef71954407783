import { createHmac } from 'node:crypto';
import { sign as signAsGithub, verify as verifyAsGithub } from '@octokit/webhooks-methods';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { checkTimestamp, type Headers, isSigningSecret, provesBody, readClaim, type SignaturePolicy } from './signature.ts';

const secret = 'a-shared-secret-of-more-than-32-characters';
const timestamp = { header: 'x-webhook-timestamp', maxAgeSec: 300, isRequired: false, isSigned: false };
const plain: SignaturePolicy = { kind: 'hmac', secret, header: 'x-webhook-signature', algorithm: 'sha256', timestamp };
const github = (own: string): SignaturePolicy => ({ kind: 'hmac', secret: own, header: 'x-hub-signature-256', algorithm: 'sha256' });
const standard = (own: string): SignaturePolicy => ({ kind: 'standard', secret: own, maxAgeSec: 300 });
const hex = (body: string | Buffer, algorithm = 'sha256') => createHmac(algorithm, secret).update(body).digest('hex');

async function holds(policy: SignaturePolicy, headers: Headers, body: string | Buffer): Promise<boolean> {
  const claim = readClaim(policy, headers);
  return claim !== undefined && (await provesBody(claim, Buffer.from(body)));
}

describe('published vectors', () => {
  it('GitHub: its published example, and signatures of its library', async () => {
    const published = '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
    const policy = github("It's a Secret to Everybody");
    expect(await holds(policy, { 'x-hub-signature-256': [`sha256=${published}`] }, 'Hello, World!')).toBe(true);
    const body = JSON.stringify({ zen: 'Ünïcode 🐙' });
    const signature = await signAsGithub(secret, body);
    expect([await verifyAsGithub(secret, body, signature), await holds(github(secret), { 'x-hub-signature-256': [signature] }, body)]).toEqual([
      true,
      true,
    ]);
    expect(await holds(github(secret), { 'x-hub-signature-256': [signature] }, `${body} `)).toBe(false);
  });

  it('Standard Webhooks: the vector of its specification, signatures of its library, and multiple signatures', async () => {
    const own = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
    const body = '{"test": 2432232314}';
    const headers = {
      'webhook-id': ['msg_p5jXN8AQM9LWM0D4loKWxJek'],
      'webhook-timestamp': ['1614265330'],
      'webhook-signature': ['v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='],
    };
    expect(await holds(standard(own), headers, body)).toBe(true);
    const sent = new Date(1_790_000_000_000);
    const signature = new Webhook(own).sign('msg_1', sent, body);
    const of = (value: string, id = 'msg_1') => ({ 'webhook-id': [id], 'webhook-timestamp': ['1790000000'], 'webhook-signature': [value] });
    expect(await holds(standard(own), of(signature), body)).toBe(true);
    expect(await holds(standard(own), of(`v1,${'A'.repeat(43)}= v1a,${'A'.repeat(43)}= ${signature}`), body)).toBe(true);
    for (const [value, id] of [
      [signature, 'msg_2'],
      [signature.replace('v1,', 'v2,'), 'msg_1'],
      [`v1,${'A'.repeat(43)}=`, 'msg_1'],
      // The same bytes, spelled with bits that decoders ignore.
      [signature.replace(/.=$/, (last) => `${String.fromCharCode(last.charCodeAt(0) + 1)}=`), 'msg_1'],
      ['', 'msg_1'],
    ] as const)
      expect(await holds(standard(own), of(value, id), body), value).toBe(false);
    expect([isSigningSecret(own), isSigningSecret('whsec_short'), isSigningSecret(own.slice(6)), isSigningSecret('whsec_***')]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe('signatures (C1, C2)', () => {
  it('are valid for exactly the raw bytes', async () => {
    const bodies = [
      Buffer.from([0x80]),
      Buffer.from([0x81]),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('\uFEFF{}'),
      Buffer.from('{}'),
      Buffer.from('{}\r\n'),
      Buffer.from('{}\n'),
    ];
    for (const [index, body] of bodies.entries())
      for (const [other, against] of bodies.entries())
        expect(await holds(plain, { 'x-webhook-signature': [hex(body)] }, against), `${index} ${other}`).toBe(index === other);
  });

  it('are hex in either case, bare or prefixed with the hash name, and nothing else', async () => {
    const good = hex('{}');
    const flipped = `${good.startsWith('0') ? '1' : '0'}${good.slice(1)}`;
    const accepted = [good, good.toUpperCase(), `sha256=${good}`, `sha256=${good.toUpperCase()}`];
    const refused = [
      '',
      good.slice(2),
      `${good}00`,
      flipped,
      `sha512=${good}`,
      `sha256= ${good}`,
      `sha256=sha256=${good}`,
      `${good}, ${good}`,
      'z'.repeat(64),
    ];
    for (const value of accepted) expect(await holds(plain, { 'x-webhook-signature': [value] }, '{}'), value).toBe(true);
    for (const value of refused) expect(await holds(plain, { 'x-webhook-signature': [value] }, '{}'), value).toBe(false);
    expect([await holds(plain, {}, '{}'), await holds(plain, { 'x-webhook-signature': [good, good] }, '{}')]).toEqual([false, false]);
    for (const algorithm of ['sha384', 'sha512'] as const)
      expect(await holds({ ...plain, algorithm }, { 'x-webhook-signature': [`${algorithm}=${hex('{}', algorithm)}`] }, '{}')).toBe(true);
  });

  it('are valid for bodies of many megabytes, which are hashed in chunks', async () => {
    const body = Buffer.alloc(5_000_000, 'gatehouse');
    expect(await holds(plain, { 'x-webhook-signature': [hex(body)] }, body)).toBe(true);
  });

  it('cover the timestamp when the sender signs it', async () => {
    const policy = { ...plain, timestamp: { ...timestamp, isSigned: true, isRequired: true } };
    const headers = (time: string) => ({ 'x-webhook-signature': [hex('1790000000.{}')], 'x-webhook-timestamp': [time] });
    expect([await holds(policy, headers('1790000000'), '{}'), await holds(policy, headers('1790000001'), '{}')]).toEqual([true, false]);
    expect(await holds(policy, { 'x-webhook-signature': [hex('{}')] }, '{}')).toBe(false);
  });
});

describe('timestamps (C3)', () => {
  const nowMs = 1_790_000_000_400;
  const fresh = (values: readonly string[] | undefined, isRequired = false): boolean => {
    const policy: SignaturePolicy = { ...plain, timestamp: { ...timestamp, isRequired } };
    const claim = readClaim(policy, { 'x-webhook-signature': [hex('{}')], 'x-webhook-timestamp': values });
    if (claim === undefined) return false;
    try {
      checkTimestamp(claim, nowMs);
      return true;
    } catch {
      return false;
    }
  };

  it.each(['1790000000', '1789999700', '1790000300'])('%s is accepted', (value) => expect(fresh([value])).toBe(true));
  it.each(['1789999699', '1790000301', '1e99', '123abc', '-1790000000', '+1790000000', '1790000000.0', '0x6ab1', '', ' ', '1790000000000'])(
    '"%s" is rejected',
    (value) => expect(fresh([value])).toBe(false),
  );
  it('duplicates are rejected, and a missing one is accepted unless required', () => {
    expect([fresh(['1790000000', '1790000000']), fresh(undefined), fresh(undefined, true)]).toEqual([false, true, false]);
  });
});
