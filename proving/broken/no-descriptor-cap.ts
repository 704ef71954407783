import { buildIn } from './patch.ts';

/** Accepts connections regardless of the limit of open files. */
buildIn({
  name: 'no-descriptor-cap',
  module: 'kernel/descriptors.ts',
  replace: [{ from: 'if (limit === undefined) return wanted;', to: 'return wanted;' }],
});
