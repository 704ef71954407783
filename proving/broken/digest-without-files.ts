import { buildIn } from './patch.ts';

/** An approval is bound to the arguments of a call, whatever lies in the files that they name. */
buildIn({
  name: 'digest-without-files',
  module: 'features/access/approvals/requests/ask.ts',
  replace: [{ from: "import { digestNamedFiles } from './named-files.ts';", to: "const digestNamedFiles = async (..._: unknown[]) => '';" }],
});
