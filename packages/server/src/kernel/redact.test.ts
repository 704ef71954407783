import { cpuGrowth, linear } from '@gatehouse/testkit/cpu-growth';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRedactor, type Redactor } from './redact.ts';

const pem = (body: string) => `-----BEGIN RSA PRIVATE KEY-----\n${body}\n-----END RSA PRIVATE KEY-----`;

function throughStream(redactor: Redactor, text: string, sizes: readonly number[]): string {
  const stream = redactor.stream();
  let result = '';
  for (let at = 0, index = 0; at < text.length; index++) {
    const size = sizes[index % sizes.length] ?? 1;
    result += stream.push(text.slice(at, at + size));
    at += size;
  }
  return result + stream.end();
}

describe('live secrets', () => {
  const redactor = createRedactor(['correct horse battery', 'with"quote\\and\nline', 'a/b?c=d&e f!', 'short']);

  test('are replaced everywhere, also as encoded in JSON and URLs', () => {
    expect(redactor.redact('xcorrect horse batteryx correct%20horse%20battery')).toBe('x[REDACTED]x [REDACTED]');
    expect(redactor.redact(JSON.stringify({ a: 'with"quote\\and\nline' }))).toBe('{"a":"[REDACTED]"}');
    expect(redactor.redact('GET /?q=a%2Fb%3Fc%3Dd%26e%20f!')).toBe('GET /?q=[REDACTED]');
    expect(redactor.redact('GET /?q=a%2Fb%3Fc%3Dd%26e+f%21&r=1')).toBe('GET /?q=[REDACTED]&r=1');
  });

  test('that overlap are covered whole', () => {
    const both = createRedactor(['abcdefghij', 'fghijklmno']);
    expect(both.redact('abcdefghijklmno')).toBe('[REDACTED]');
    expect(createRedactor(['aabaabaab']).redact('xaabaabaabaaby')).toBe('x[REDACTED]y');
  });

  test('are the only ones hidden in text under work: what only looks like a key stays', () => {
    const text = `correct horse battery, sk-${'a'.repeat(30)} and "token": "of a form"`;
    expect(redactor.hide(text)).toBe(text.replace('correct horse battery', '[REDACTED]'));
    expect(redactor.redact(text)).not.toContain('sk-');
  });

  test('too short to distinguish from words are left alone', () => {
    expect(redactor.redact('a short word')).toBe('a short word');
  });

  test('can be added at any time', () => {
    const growing = createRedactor();
    expect(growing.redact('late-comer!')).toBe('late-comer!');
    growing.add(['late-comer!']);
    expect(growing.redact('late-comer!')).toBe('[REDACTED]');
  });

  test('are found in a text of any length', () => {
    const text = `${'x'.repeat(3_000_000)}correct horse battery`;
    expect(redactor.redact(text).endsWith('x[REDACTED]')).toBe(true);
  });
});

describe('what looks like a secret', () => {
  const { redact } = createRedactor();
  const long = 'abcDEF0123456789abcDEF0123456789';

  test.each([
    [`Authorization: Bearer ${long}`, 'Authorization: Bearer [REDACTED]'],
    [`{"authorization":"Bearer ${long}"}`, '{"authorization":"[REDACTED]"}'],
    [`bearer ${long}, next`, 'bearer [REDACTED], next'],
    ['x-api-key: hunter2hunter2', 'x-api-key: [REDACTED]'],
    [`key sk-proj-${long}.`, 'key [REDACTED].'],
    [`token gh_${long}${long}`, 'token [REDACTED]'],
    ['AKIAIOSFODNN7EXAMPLE', '[REDACTED]'],
    ['eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl end', '[REDACTED] end'],
    ['postgres://ada:pa55word@db/x', 'postgres://[REDACTED]@db/x'],
    ['GET /ws?token=abc&x=1 HTTP', 'GET /ws?token=[REDACTED]&x=1 HTTP'],
    ['https://h/?x=1&api_key=abc#f', 'https://h/?x=1&api_key=[REDACTED]#f'],
    ['{"apiKey":"abc","maxTokens":5}', '{"apiKey":"[REDACTED]","maxTokens":5}'],
    ['{"text":"{\\"password\\":\\"abc\\"}"}', '{"text":"{\\"password\\":\\"[REDACTED]\\"}"}'],
    [`a ${pem('MIIEow\nIBAAK=')} b`, 'a [REDACTED] b'],
    [JSON.stringify({ k: pem('MIIEow') }), '{"k":"[REDACTED]"}'],
    ['-----BEGIN PRIVATE KEY-----\nMIIE and no end', '[REDACTED]'],
  ])('%j', (text, expected) => {
    expect(redact(text)).toBe(expected);
  });

  test.each([
    'the bearer token is missing',
    'task-management-of-everything',
    'basic authorization',
    'http://127.0.0.1:4766/v1',
    'tokens: 5, key: value',
    'a monkey ate the cookie',
    '-----BEGIN CERTIFICATE-----',
  ])('%j is not a secret', (text) => {
    expect(redact(text)).toBe(text);
  });

  test.each(['bearer ', 'sk-', 'eyJ', '://a:', '-----BEGIN PRIVATE KEY-----', '"secret":"', '?token=', '"a', 'authorization:   "a '])(
    'a megabyte of %j takes linear time',
    async (unit) => {
      expect(await cpuGrowth(125_000, (length) => redact(unit.repeat(length / unit.length)))).toBeLessThan(linear);
    },
  );
});

describe('in chunks', () => {
  const secret = 'correct horse battery';
  const redactor = createRedactor([secret]);

  test('a secret split anywhere is hidden', () => {
    const text = `start ${secret} middle gh_${'x'.repeat(64)} and postgres://u:p4ssw0rd@h ${pem('MIIE'.repeat(2000))} ${'word '.repeat(600)}${secret}`;
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 4000 }), { minLength: 1, maxLength: 8 }), (sizes) => {
        expect(throughStream(redactor, text, sizes)).toBe(redactor.redact(text));
      }),
      { numRuns: 60 },
    );
  });

  test('one character at a time', () => {
    expect(throughStream(redactor, `a ${secret} b Bearer ${'t'.repeat(40)} c`, [1])).toBe('a [REDACTED] b Bearer [REDACTED] c');
  });

  test('harmless text passes unchanged, and before the end', () => {
    const stream = redactor.stream();
    const said = stream.push('word '.repeat(2000));
    expect(said.length).toBeGreaterThan(8000);
    expect(said + stream.end()).toBe('word '.repeat(2000));
  });

  test('an endless secret neither fills the memory nor appears in the output', () => {
    for (const [begin, unit, finish] of [
      ['Bearer ', 'abcdefgh', ' end'],
      ['-----BEGIN PRIVATE KEY-----\n', 'MIIEabcd', '\n-----END PRIVATE KEY----- end'],
    ] as const) {
      const stream = redactor.stream();
      let said = stream.push(`start ${begin}`);
      for (let i = 0; i < 500; i++) said += stream.push(unit.repeat(128));
      said += stream.push(finish) + stream.end();
      expect(said).not.toContain(unit);
      expect(said).toMatch(/^start .*\[REDACTED\] end$/);
    }
  });
});

test('no live secret survives, whatever is around it and however it is cut', () => {
  const secret = fc.stringMatching(/^[A-Za-z0-9/+ "\\-]{8,40}$/);
  fc.assert(
    fc.property(
      fc.array(secret, { minLength: 1, maxLength: 4 }),
      fc.array(fc.oneof(fc.string(), fc.nat(3)), { maxLength: 12 }),
      fc.integer({ min: 1, max: 50 }),
      (secrets, parts, size) => {
        const redactor = createRedactor(secrets);
        const text = parts.map((part) => (typeof part === 'number' ? (secrets[part % secrets.length] ?? '') : part)).join('');
        const whole = redactor.redact(text);
        const pieces = throughStream(redactor, text, [size]);
        for (const each of secrets) if (!'[REDACTED]'.includes(each)) expect([whole.includes(each), pieces.includes(each)]).toEqual([false, false]);
      },
    ),
    { numRuns: 300 },
  );
});

test('a secret that replaces another one is hidden in its place, and no other is forgotten', () => {
  const redactor = createRedactor(['lasting-secret']);
  redactor.replace('server', ['first-token']);
  redactor.replace('other', ['other-token']);
  redactor.replace('server', ['second-token']);
  expect(redactor.redact('first-token second-token other-token lasting-secret')).toBe('first-token [REDACTED] [REDACTED] [REDACTED]');
  redactor.replace('server', []);
  redactor.replace('other', []);
  expect(redactor.redact('second-token other-token lasting-secret')).toBe('second-token other-token [REDACTED]');
});
