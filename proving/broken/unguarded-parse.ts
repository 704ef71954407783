import { changeExports } from './patch.ts';

import type { parseJson } from '../../packages/server/src/kernel/json.ts';

/** Treats errors of the JSON parser as internal errors. */
changeExports({
  name: 'unguarded-parse',
  module: 'kernel/json.ts',
  exports: {
    parseJson: (original: typeof parseJson) => (text: string, options?: Parameters<typeof parseJson>[1]) => {
      JSON.parse(text);
      return original(text, options);
    },
    parseJsonUnchecked: () => (text: string) => JSON.parse(text) as unknown,
  },
});
