import { buildIn } from './patch.ts';

/** Announces no removed token: connections that it opened stay. */
buildIn({
  name: 'cached-tokens',
  module: 'features/access/tokens/registry.ts',
  replace: [{ from: 'for (const listener of this.#listeners) listener(identity.tokenId, identity);', to: 'void identity;' }],
});
