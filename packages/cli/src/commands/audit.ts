import type { ParamsInput, Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { renderTable } from '../render/table.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

type Query = ParamsInput<'obs.audit.query'>;
type AuditFlags = CommonFlags & {
  limit: number;
  action?: string;
  class?: string;
  outcome?: string;
  by?: string;
  about?: string;
  since?: string;
  until?: string;
  before?: string;
};

const classifications = ['read', 'mutate', 'destructive', 'security'] as const;
const outcomes = ['success', 'failure', 'denied'] as const;

/** `gatehouse audit`. */
export function addAuditCommand(program: Command, io: Io): void {
  withConnection(program.command('audit'))
    .summary('show recorded decisions and changes')
    .description('Lists recorded decisions and changes, newest first; needs a token with scope admin. With --json, each has all its details.')
    .addOption(countOption('--limit <n>', 'number of records, at most 1000', 50))
    .option('--action <name>', 'only this action, such as tokens.create')
    .option('--class <name>', classifications.join(', '))
    .option('--outcome <name>', outcomes.join(', '))
    .option('--by <principal>', 'only by this principal, such as token:ops')
    .option('--about <target>', 'only for this target')
    .option('--since <time>', 'from this time on, such as 2026-11-21 or 2026-11-21T09:00Z')
    .option('--until <time>', 'before this time')
    .option('--before <id>', 'older than this row: the next page')
    .action(async (all: AuditFlags) => {
      const query = readQuery(all);
      const { client } = await connect(all, io);
      const page = await client.call('obs.audit.query', query);
      print(io, all, page, auditTable);
    });
}

function readQuery({ limit, action, class: given, outcome, by, about, since, until, before }: AuditFlags): Query {
  return {
    limit,
    actionType: action,
    ...(given === undefined ? {} : { classification: oneOf('class', given, classifications) }),
    ...(outcome === undefined ? {} : { outcome: oneOf('outcome', outcome, outcomes) }),
    principalId: by,
    target: about,
    ...(since === undefined ? {} : { sinceMs: readTime('since', since) }),
    ...(until === undefined ? {} : { untilMs: readTime('until', until) }),
    before,
  };
}

function oneOf<T extends string>(flag: string, given: string, values: readonly T[]): T {
  const found = values.find((value) => value === given);
  if (found === undefined) throw usageError(`--${flag}: expected ${values.join(', ')}.`);
  return found;
}

function readTime(flag: string, given: string): number {
  const time = Date.parse(given);
  if (Number.isNaN(time)) throw usageError(`--${flag}: expected a time, such as 2026-11-21T09:00Z.`);
  return time;
}

function auditTable({ rows, hasMore }: Result<'obs.audit.query'>): string {
  if (rows.length === 0) return 'No records.';
  const table = renderTable(
    ['Time', 'Action', 'Outcome', 'By', 'About', 'Id'],
    rows.map(({ at, action, outcome, actor, target, id }) => [new Date(at).toISOString(), action, outcome, actor, target, id]),
  );
  return hasMore ? `${table}\nOlder records: --before ${rows.at(-1)?.id ?? ''}` : table;
}
