import { buildIn } from './patch.ts';

/** What a platform delivers again after a restart is a new message. */
buildIn({
  name: 'channel-forgets-events',
  module: 'features/channels/messages/messages.ts',
  replace: [{ from: 'eventKey: message.eventKey ?? null,', to: 'eventKey: null,' }],
});
