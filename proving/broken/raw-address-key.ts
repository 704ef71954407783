import { buildIn } from './patch.ts';

/** Keys limits per address by the address as it was spelled. */
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
