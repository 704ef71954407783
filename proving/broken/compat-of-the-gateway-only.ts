import { buildIn } from './patch.ts';

/** The setting of a token is stored and listed, but the chat route reads that of the gateway alone. */
buildIn({
  name: 'compat-of-the-gateway-only',
  module: 'gateway/routes/v1-chat.ts',
  replace: [{ from: 'call.identity?.compat?.fields ?? deps.fields', to: 'deps.fields' }],
});
