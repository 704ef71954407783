import { buildIn } from './patch.ts';

/** The lock of a home is what a file says about a process. */
buildIn({
  name: 'pid-lock',
  module: 'kernel/lifecycle/lock-file.ts',
  replace: [{ from: "    db.exec('BEGIN EXCLUSIVE');", to: "    db.exec('SELECT 1');" }],
});
