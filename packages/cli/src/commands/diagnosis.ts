import type { Client } from '@gatehouse/client';
import type { ParamsInput } from '@gatehouse/contract';
import { type Command, InvalidArgumentError } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { widthOf } from '../render/width.ts';
import { createPaint } from '../render/paint.ts';
import { explainText, healthText } from './diagnosis-text.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';
import { traceText } from './trace-text.ts';

const which =
  'REF is a session key, a conversation reference (cv_…), or the id of a trace, a turn, a sub-agent run, a graph or a root run; without it, the latest turn of the last two days.';

/** `gatehouse explain | trace | health`. */
export function addDiagnosisCommands(program: Command, io: Io, setExit: SetExit): void {
  withConnection(program.command('explain [ref]'))
    .summary('explain how a turn ended')
    .description(
      `Says how the latest turn of a conversation, or a given one, ended, what failed, the likely root cause and what to do; needs a token with scope admin. ${which} Exits with 1 when nothing is stored under it.`,
    )
    .option('--full', 'longer lists')
    .option('--synthetic', 'also evaluations and replays')
    .action(async (given: string | undefined, { full, synthetic, ...flags }: CommonFlags & { full?: true; synthetic?: true }) => {
      const { client } = await connect(flags, io);
      const ref = given ?? (await latestTurn(client));
      const report = await client.call('obs.explain', {
        ...(await addressOf(client, ref)),
        depth: full === true ? 'full' : 'summary',
        includeSynthetic: synthetic === true,
      });
      if (report.likelyRootCause?.code === 'session_not_found') setExit(exitCode.failed);
      print(io, flags, report, () => explainText(report, ref, createPaint(io)));
    });
  withConnection(program.command('trace [ref]'))
    .summary('show what a turn did, step by step')
    .description(
      `Draws the steps of a turn as a waterfall, with those of the sub-agents and graph nodes that it started: duration, tokens, cost and error of each. ${which} Exits with 1 when there is no such trace.`,
    )
    .action(async (given: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const trace = await client.call('obs.trace.get', { ref: given ?? (await latestTurn(client)) });
      print(io, flags, trace, () => traceText(trace, createPaint(io), widthOf(io)));
    });
  withConnection(program.command('health'))
    .summary('show how all conversations went')
    .description(
      'Shows how all sessions of a time went, with findings and what to do; needs a token with scope admin. Exits with 1 when the system is degraded: a finding whose name begins with system_.',
    )
    .option('--last <hours>', 'hours to look back, such as 24 or 0.5', readHours, 24)
    .action(async ({ last, ...flags }: CommonFlags & { last: number }) => {
      const { client } = await connect(flags, io);
      const report = await client.call('obs.system.health', { sinceHours: last });
      if (report.likelyRootCause?.code.startsWith('system_') === true) setExit(exitCode.failed);
      print(io, flags, report, () => healthText(report, createPaint(io)));
    });
}

function readHours(text: string): number {
  const hours = Number(text.replace(/h$/u, ''));
  if (!(hours > 0)) throw new InvalidArgumentError('Expected a number of hours, such as 24 or 0.5.');
  return hours;
}

type Address = Pick<ParamsInput<'obs.explain'>, 'sessionKey' | 'traceId' | 'rootRunId'>;

/** Returns the id of the turn that started last. */
async function latestTurn(client: Client): Promise<string> {
  const { rows } = await client.call('obs.trace.search', { where: 'kind = turn', limit: 1 });
  const [latest] = rows;
  if (latest === undefined) throw usageError('No turn of the last two days is stored: give a REF.');
  return latest.id;
}

/** Ids of turns, runs and graphs are known by their traces. */
async function addressOf(client: Client, ref: string): Promise<Address> {
  if (ref.includes(':') || ref.startsWith('cv_')) return { sessionKey: ref };
  if (ref.startsWith('root-')) return { rootRunId: ref };
  if (/^[0-9a-f]{32}$/u.test(ref)) return { traceId: ref };
  const { records } = await client.call('obs.trace.get', { ref });
  const named = records.find(({ id, refs }) => id === ref || id.startsWith(`${ref}.`) || refs['runId'] === ref) ?? records[0];
  return { traceId: named?.traceId ?? ref };
}
