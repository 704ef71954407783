import { providerTypes } from '@gatehouse/contract';
import { vendorOffers } from '@gatehouse/contract/vendor-list';
import { expect, test } from 'vitest';
import { vendors } from './vendors.ts';

test('every type of provider is offered once', () => {
  expect(vendorOffers.map(({ type }) => type).toSorted()).toEqual([...providerTypes].toSorted());
});

test.each(vendorOffers)('$type is offered as the daemon knows it', ({ type, name, kind, address }) => {
  const { name: known, local, baseUrl } = vendors[type];
  expect(name).toBe(known);
  expect(kind).toBe(local !== undefined ? 'local' : baseUrl === undefined ? 'own' : 'hosted');
  expect(address).toBe(local === undefined ? undefined : baseUrl);
});
