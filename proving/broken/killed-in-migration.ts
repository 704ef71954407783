import { buildIn } from './patch.ts';

/**
 * Not a fault in the program: kills the daemon inside the migration that KILL_AT names, `18 begun`: after its
 * first statement (`begun`), after its last (`run`), or when it is recorded and not committed (`recorded`).
 */
const die = (point: string): string => `if (process.env['KILL_AT'] === step.number + ' ${point}') process.kill(process.pid, 'SIGKILL');`;

buildIn({
  name: 'killed-in-migration',
  module: 'kernel/db/sqlite/migrate.ts',
  replace: [
    {
      from: 'for (const statement of step.statements) db.exec(statement);',
      to: `for (const statement of step.statements) { db.exec(statement); ${die('begun')} } ${die('run')}`,
    },
    {
      from: 'record.run(step.number, step.name, step.checksum, nowMs, programVersion);',
      to: `record.run(step.number, step.name, step.checksum, nowMs, programVersion); ${die('recorded')}`,
    },
  ],
});
