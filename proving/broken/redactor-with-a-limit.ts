import { changeExports } from './patch.ts';

import type { createRedactor } from '../../packages/server/src/kernel/redact.ts';

/** Skips long texts: scanning them would take too much time. */
changeExports({
  name: 'redactor-with-a-limit',
  module: 'kernel/redact.ts',
  exports: {
    createRedactor: (original: typeof createRedactor) => (secrets?: Iterable<string>) => {
      const redactor = original(secrets);
      const unlessLong = (change: (text: string) => string) => (text: string) => (text.length > 16_384 ? text : change(text));
      return { ...redactor, redact: unlessLong(redactor.redact), hide: unlessLong(redactor.hide) };
    },
  },
});
