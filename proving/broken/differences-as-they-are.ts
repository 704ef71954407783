import { changeExports } from './patch.ts';

import type { redactedLines } from '../../packages/server/src/features/operations/settings/redacted-text.ts';

/** Shows lines of config.yaml as they are: the redactor knows the keys that are in force. */
changeExports({
  name: 'differences-as-they-are',
  module: 'features/operations/settings/redacted-text.ts',
  exports: {
    redactedLines:
      (_original: typeof redactedLines) =>
      (...[, text]: Parameters<typeof redactedLines>) =>
        text.split('\n'),
  },
});
