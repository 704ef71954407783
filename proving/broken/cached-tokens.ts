import { buildIn } from './patch.ts';

/** Nobody is told that a token is gone: what was let in by it stays. */
buildIn({
  name: 'cached-tokens',
  module: 'features/access/tokens/registry.ts',
  replace: [{ from: 'for (const listener of this.#listeners) listener(tokenId);', to: 'void tokenId;' }],
});
