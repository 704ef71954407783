import { buildIn } from './patch.ts';

const name = 'default-timeouts';

/** Applies node's default time limits to slow clients. */
buildIn({
  name,
  module: 'gateway/listener.ts',
  replace: [
    { from: 'headersTimeout: 5_000,', to: 'headersTimeout: 60_000,' },
    { from: 'requestTimeout: 3_600_000,', to: 'requestTimeout: 300_000,' },
    { from: 'connectionsCheckingInterval: 1_000,', to: 'connectionsCheckingInterval: 30_000,' },
  ],
});
buildIn({ name, module: 'gateway/body.ts', replace: [{ from: 'const paceMs = 8_000;', to: 'const paceMs = 300_000;' }] });
buildIn({ name, module: 'gateway/paced-body.ts', replace: [{ from: 'const paceMs = 8_000;', to: 'const paceMs = 300_000;' }] });
