import { buildIn } from './patch.ts';

/** Accepts a WebSocket message of any size that its sender declares. */
buildIn({
  name: 'no-max-payload',
  module: 'gateway/sockets.ts',
  replace: [{ from: 'maxPayload: deps.maxMessageBytes,', to: 'maxPayload: 0,' }],
});
