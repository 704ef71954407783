import { changeExports } from './patch.ts';

/** Binds an approval to the arguments of a call, regardless of the files that they name. */
changeExports({
  name: 'digest-without-files',
  module: 'features/access/approvals/requests/named-files.ts',
  exports: {
    digestNamedFiles: () => async () => '',
  },
});
