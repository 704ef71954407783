import { buildIn } from './patch.ts';

/** Stores and lists the setting of a token, but the chat route reads only the gateway's. */
buildIn({
  name: 'compat-of-the-gateway-only',
  module: 'gateway/routes/v1-chat.ts',
  replace: [{ from: 'call.identity?.compat?.fields ?? deps.fields', to: 'deps.fields' }],
});
