import { appendFileSync, writeSync } from 'node:fs';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { isMainThread, workerData } from 'node:worker_threads';
import type { SqlFault, SqlLine } from './sql-hook.ts';

// Loaded into a daemon whose storage is observed: each SQLite call passes through here. SQL_LOG names a file that gets a line for
// each of them, SQL_FAULT the call that fails as a medium fails.
const role: string = isMainThread ? 'main' : String(workerData?.role ?? 'other');
const log = process.env['SQL_LOG'];
const fault = process.env['SQL_FAULT'] === undefined ? undefined : (JSON.parse(process.env['SQL_FAULT']) as SqlFault);
const errors = {
  EIO: { errcode: 778, errstr: 'disk I/O error' },
  ENOSPC: { errcode: 13, errstr: 'database or disk is full' },
  BUSY: { errcode: 5, errstr: 'database is locked' },
} as const;
const databases = new WeakMap<StatementSync, DatabaseSync>();
const { exec, prepare } = DatabaseSync.prototype;
let calls = 0;

function before(db: DatabaseSync | undefined, sql: string, prepared: boolean): void {
  if (log !== undefined) appendFileSync(log, `${JSON.stringify({ role, sql } satisfies SqlLine)}\n`);
  if (fault === undefined || role !== 'writer' || (fault.only !== undefined && !(prepared && sql === fault.only))) return;
  calls += 1;
  if (calls < fault.n || calls >= fault.n + (fault.times ?? 1)) return;
  writeSync(2, `storage fault: ${fault.code} in call ${calls}: ${sql.slice(0, 60)}\n`);
  // SQLite drops the transaction after some failures and leaves it open after others.
  if (fault.code !== 'BUSY' && fault.n % 2 === 0 && db?.isTransaction === true) exec.call(db, 'ROLLBACK');
  throw Object.assign(new Error(errors[fault.code].errstr), { code: 'ERR_SQLITE_ERROR', ...errors[fault.code] });
}

DatabaseSync.prototype.exec = function (sql) {
  before(this, sql, false);
  exec.call(this, sql);
};
DatabaseSync.prototype.prepare = function (sql, ...rest) {
  const statement = prepare.call(this, sql, ...rest);
  databases.set(statement, this);
  return statement;
};
for (const name of ['run', 'get', 'all', 'iterate'] as const) {
  const plain = StatementSync.prototype[name];
  Object.defineProperty(StatementSync.prototype, name, {
    value(this: StatementSync, ...values: unknown[]) {
      before(databases.get(this), this.sourceSQL, true);
      return Reflect.apply(plain, this, values);
    },
  });
}
