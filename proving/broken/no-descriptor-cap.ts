import { buildIn } from './patch.ts';

/** Connections are taken whatever the limit of open files is. */
buildIn({
  name: 'no-descriptor-cap',
  module: 'kernel/descriptors.ts',
  replace: [{ from: 'if (limit === undefined) return wanted;', to: 'return wanted;' }],
});
