import { buildIn } from './patch.ts';

/** A search for new mails, which always finds the last one, is taken at its word. */
buildIn({
  name: 'imap-star',
  module: 'channels/email/receive.ts',
  replace: [{ from: 'return found.filter((one) => one > uid).toSorted((a, b) => a - b);', to: 'return found.toSorted((a, b) => a - b);' }],
});
