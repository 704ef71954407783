import { buildIn } from './patch.ts';

/** Binds an approval to the arguments of a call, regardless of the files that they name. */
buildIn({
  name: 'digest-without-files',
  module: 'features/access/approvals/requests/ask.ts',
  replace: [{ from: "import { digestNamedFiles } from './named-files.ts';", to: "const digestNamedFiles = async (..._: unknown[]) => '';" }],
});
