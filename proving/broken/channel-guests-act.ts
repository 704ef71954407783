import { buildIn } from './patch.ts';

/** The words of anybody have the authority of those whom the operator approved. */
buildIn({
  name: 'channel-guests-act',
  module: 'features/channels/messages/run-message.ts',
  replace: [{ from: "...(work.trust === 'guest' && { authority: 'webhook' as const }),", to: '' }],
});
