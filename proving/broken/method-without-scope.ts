import { buildIn } from './patch.ts';

/** Dispatches one method without checking the scopes of the token. */
buildIn({
  name: 'method-without-scope',
  module: 'gateway/rpc/dispatch.ts',
  replace: [
    {
      from: 'if (!allows(call.identity.scopes, declaration.scope))',
      to: "if (method !== 'tokens.create' && !allows(call.identity.scopes, declaration.scope))",
    },
  ],
});
