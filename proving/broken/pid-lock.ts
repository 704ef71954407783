import { buildIn } from './patch.ts';

/** Locks a home by a process id in a file. */
buildIn({
  name: 'pid-lock',
  module: 'kernel/lifecycle/lock-file.ts',
  replace: [{ from: "    db.exec('BEGIN EXCLUSIVE');", to: "    db.exec('SELECT 1');" }],
});
