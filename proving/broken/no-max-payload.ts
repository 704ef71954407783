import { buildIn } from './patch.ts';

/** A WebSocket message may be as large as its sender says. */
buildIn({
  name: 'no-max-payload',
  module: 'gateway/sockets.ts',
  replace: [{ from: 'maxPayload: deps.maxMessageBytes,', to: 'maxPayload: 0,' }],
});
