import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isVouchedFor } from './authentication.ts';

const ada = 'ada@people.test';
const isKnown = (header: string, authServId?: string) => isVouchedFor(ada, [header], authServId);

test.each([
  'mx.test; dmarc=pass header.from=people.test',
  'mx.test 1; dmarc=pass',
  'mx.test; spf=none; dmarc = pass (p=REJECT sp=NONE dis=NONE) header.from=People.Test',
  'mx.test; dkim=pass header.d=people.test header.s=s1 header.b=abc=',
  'mx.test; dkim=fail header.d=list.test; dkim=pass header.i=@people.test',
  'mx.test; dkim="pass" header.d="people.test"',
])('believes %s', (header) => {
  expect(isKnown(header)).toBe(true);
  expect(isKnown(header, 'MX.test')).toBe(true);
  expect(isKnown(header, 'other.test')).toBe(false);
});

test.each([
  '',
  'mx.test; none',
  'mx.test 2; dmarc=pass',
  'mx.test; dmarc=fail; dmarc=pass',
  'mx.test; dmarc=pass header.from=evil.test',
  'mx.test; dkim=pass',
  'mx.test; dkim=pass header.d=test',
  'mx.test; dkim=pass header.d=evilpeople.test',
  'mx.test; dkim=pass header.d=sub.people.test',
  'mx.test; dkim=fail (dkim=pass header.d=people.test)',
  'mx.test; spf=pass smtp.mailfrom="x; dmarc=pass"@evil.test',
  'mx.test; spf=fail (\\); dmarc=pass',
  'mx.test; spf=fail (a (b) ; dmarc=pass',
  'mx.test; spf=pass smtp.mailfrom="x; dmarc=pass',
  'mx.test; spf=pass smtp.mailfrom=x\\; dmarc=fail',
  'mx.test; x-dmarc=pass; spf=pass smtp.mailfrom=people.test',
])('does not believe %s', (header) => expect(isKnown(header)).toBe(false));

test('uses the topmost results alone, or those of one server', () => {
  const [own, forged] = ['mx.test; spf=none', 'evil.test; dmarc=pass'];
  expect(isVouchedFor(ada, [own, forged], undefined)).toBe(false);
  expect(isVouchedFor(ada, [forged, own], 'mx.test')).toBe(false);
  expect(isVouchedFor(ada, ['gateway.test; spf=none', 'mx.test; dmarc=pass', 'mx.test; dmarc=fail'], 'mx.test')).toBe(true);
});

test('text of the sender in comments and quotes decides nothing', () => {
  const anything = fc.string({ unit: fc.constantFrom(';', ' ', '=', 'dmarc', 'dkim', 'pass', 'header.d', 'people.test', '(', 'x') });
  fc.assert(
    fc.property(anything, (text) => {
      expect(isKnown(`mx.test; spf=fail smtp.mailfrom="${text}"`)).toBe(false);
      expect(isKnown(`mx.test; spf=fail (${text.replaceAll('(', '')}) smtp.mailfrom=evil.test`)).toBe(false);
    }),
  );
});
