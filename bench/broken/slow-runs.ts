import { DatabaseSync, type StatementSync } from 'node:sqlite';

// A broken build for the harness to catch: each change of a sub-agent's row takes SLOW_MS. Loaded with --import in NODE_OPTIONS,
// which the storage threads read too.
const busyMs = Number(process.env['SLOW_MS']);
const prepare = DatabaseSync.prototype.prepare;
DatabaseSync.prototype.prepare = function slowed(this: DatabaseSync, text: string): StatementSync {
  const statement: StatementSync = Reflect.apply(prepare, this, [text]);
  if (!text.startsWith('update "sub_agent_run"')) return statement;
  const { run } = statement;
  statement.run = (...args: unknown[]): never => {
    for (const end = performance.now() + busyMs; performance.now() < end;);
    return Reflect.apply(run, statement, args) as never;
  };
  return statement;
};
