import { buildIn } from './patch.ts';

/** The time that Telegram names with a limit counts as a second. */
buildIn({
  name: 'channel-ignores-limit',
  module: 'channels/telegram/outcome.ts',
  replace: [{ from: '(parameters.retry_after ?? 1) * 1_000', to: '1_000' }],
});
