import { DatabaseSync, type StatementSync } from 'node:sqlite';

// A broken build for the harness to catch: each query for due jobs reads all jobs first. Loaded with --import in
// NODE_OPTIONS, which the storage threads read too.
const prepare = DatabaseSync.prototype.prepare;
DatabaseSync.prototype.prepare = function looking(this: DatabaseSync, text: string): StatementSync {
  const statement: StatementSync = Reflect.apply(prepare, this, [text]);
  if (!text.includes('"due_at_ms" >')) return statement;
  const everything: StatementSync = Reflect.apply(prepare, this, ['SELECT * FROM cron_job']);
  for (const name of ['all', 'get', 'iterate'] as const) {
    const ask = statement[name];
    statement[name] = (...args: unknown[]): never => {
      everything.all();
      return Reflect.apply(ask, statement, args) as never;
    };
  }
  return statement;
};
