import { buildIn } from './patch.ts';

/** Limits per address are kept under the address as it was spelled. */
buildIn({
  name: 'raw-address-key',
  module: 'gateway/address.ts',
  replace: [
    {
      from: 'nearest === undefined ? describe(peer) : { text: nearest.toString(), key: keyOf(nearest) };',
      to: 'nearest === undefined ? describe(peer) : { text: nearest.toString(), key: String(header) };',
    },
  ],
});
