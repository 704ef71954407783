import { buildIn } from './patch.ts';

/** The writer answers as soon as a batch has run and commits it a little later, together with what arrived since. */
buildIn({
  name: 'ack-before-commit',
  module: 'kernel/db/sqlite/group-commit.ts',
  replace: [
    { from: 'statement.begin.run();', to: 'if (!db.isTransaction) statement.begin.run();' },
    { from: 'statement.commit.run();', to: 'setTimeout(() => { if (db.isTransaction) statement.commit.run(); }, 60);' },
  ],
});
