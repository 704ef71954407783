import { buildIn } from './patch.ts';

/** A WebSocket message may be as large as its sender says. */
buildIn({
  name: 'no-max-payload',
  module: 'gateway/rpc/websocket.ts',
  replace: [{ from: 'maxPayload: deps.limits.maxMessageBytes,', to: 'maxPayload: 0,' }],
});
