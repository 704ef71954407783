import { type Client, GatehouseError, NotFoundError } from '@gatehouse/client';
import type { ParamsInput } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { CliError, usageError } from '../failure.ts';
import { type Io, printLine } from '../io.ts';
import { nearest } from '../nearest.ts';
import { widthOf } from '../render/width.ts';
import { plainText } from '../render/plain.ts';
import { confirm } from './confirm.ts';
import { backfillText, estimateText, jobTable, runTable, scheduleText, statusText } from './cron-text.ts';
import { addGroup } from './group.ts';
import { collect, type JobFlags, readPayload, readInstant, readPolicies, readSchedule, withJob } from './job-flags.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

type AgentFlags = CommonFlags & { agent?: string };
type BackfillFlags = AgentFlags & { from?: number; to?: number; limit: number; dryRun?: true; yes?: true };
type Cleared = 'deliveryTarget' | 'wakeGate' | 'cacheRetention' | 'toolPolicy' | 'maxConsecutiveDependencyErrors';

/** Fields that an update can clear, by the flag that sets them. */
const clearable: Readonly<Record<string, Cleared>> = {
  'delivery-target': 'deliveryTarget',
  gate: 'wakeGate',
  cache: 'cacheRetention',
  profile: 'toolPolicy',
  'max-errors': 'maxConsecutiveDependencyErrors',
};

/** `gatehouse cron list | add | update | pause | resume | remove | run | backfill | runs | status`. */
export function addCronCommand(program: Command, io: Io): void {
  const cron = addGroup(program, 'cron')
    .summary('list, add, change and run scheduled jobs')
    .description('Scheduled jobs. JOB is the name of a job, or its id (cj_…) when the name is ambiguous.');

  addList(cron, io);
  addAdd(cron, io);
  addUpdate(cron, io);
  addSwitch(cron, io, 'pause');
  addSwitch(cron, io, 'resume');
  addRemove(cron, io);
  addRun(cron, io);
  addBackfill(cron, io);
  addRuns(cron, io);
  addStatus(cron, io);
}

function addList(cron: Command, io: Io): void {
  withAgent(cron.command('list', { isDefault: true }), 'only those of this agent')
    .description('Lists jobs with their next runs.')
    .action(async ({ agent, ...flags }: AgentFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('cron.list', { agentId: agent });
      print(io, flags, listed, jobTable);
    });
}

function addAdd(cron: Command, io: Io): void {
  withJob(cron.command('add <name>'))
    .description('Adds a job: schedule it with --cron, --every, --at or --in; set its task with --message, --event or --deliver.')
    .option('--agent <id>', 'agent (default: the default one)')
    .allowExcessArguments()
    .action(async (name: string, flags: JobFlags & { agent?: string }, { args }: Command) => {
      if (args.length > 1)
        throw usageError(
          `Too many arguments after the name ${plainText(name)}.`,
          'Pass the message to the agent with --message "…", and quote a name that has spaces.',
        );
      const schedule = readSchedule(flags);
      if (schedule === undefined) throw usageError('Missing schedule.', 'Pass one of --cron, --every, --at and --in.');
      const payload = readPayload(flags);
      if (payload === undefined) throw usageError('Missing task.', 'Pass one of --message, --event and --deliver.');
      const policies = await readPolicies(flags, io);
      const { client } = await connect(flags, io);
      if (payload.kind === 'agent_turn' && flags.output !== 'json') await printEstimate(client, schedule, flags.agent, io);
      const done = await client.call('cron.add', { name, schedule, payload, agentId: flags.agent, ...policies });
      print(io, flags, done, () => `Added ${plainText(done.name)}, ${plainText(scheduleText(done.schedule))}: ${done.jobId}`);
    });
}

function addUpdate(cron: Command, io: Io): void {
  withJob(cron.command('update <job>'))
    .description('Changes the given settings of a job; the rest stays.')
    .option('--name <name>', 'new name')
    .option('--clear <flag>', `clear the setting of this flag (${Object.keys(clearable).join(', ')}); can be given again`, collect, [])
    .action(async (job: string, { name, clear, ...flags }: JobFlags & { name?: string; clear: string[] }) => {
      const schedule = readSchedule(flags);
      const payload = readPayload(flags);
      const changes = {
        ...(name === undefined ? {} : { name }),
        ...(schedule === undefined ? {} : { schedule }),
        ...(payload === undefined ? {} : { payload }),
        ...(await readPolicies(flags, io)),
        ...clearedBy(clear),
      };
      if (Object.keys(changes).length === 0) throw usageError('Nothing to change.', 'See gatehouse cron update --help.');
      const { client } = await connect(flags, io);
      const done = await withNearNames(client, { job }, client.call('cron.update', { ...jobOf(job), ...changes }));
      print(io, flags, done, () => `Changed ${plainText(done.jobName)}.`);
    });
}

function addSwitch(cron: Command, io: Io, name: 'pause' | 'resume'): void {
  const paused = name === 'pause';
  withConnection(cron.command(`${name} <job>`))
    .description(paused ? 'Pauses the schedule of a job.' : 'Resumes a paused job; its next run is scheduled from now.')
    .action(async (job: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await withNearNames(client, { job }, client.call('cron.update', { ...jobOf(job), paused }));
      print(io, flags, done, () => `${paused ? 'Paused' : 'Resumed'} ${plainText(done.jobName)}.`);
    });
}

function addRemove(cron: Command, io: Io): void {
  withConnection(cron.command('remove <job>'))
    .description('Removes a job with its run history.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (job: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      if (yes !== true) await confirm(`Remove the job ${plainText(job)} with its run history?`, io);
      const { client } = await connect(flags, io);
      const done = await withNearNames(client, { job }, client.call('cron.remove', jobOf(job)));
      print(io, flags, done, () => `Removed ${plainText(done.jobName)}.`);
    });
}

function addRun(cron: Command, io: Io): void {
  withAgent(cron.command('run [job]'))
    .description('Runs a job now, or all overdue jobs with --due; does not wait for completion.')
    .option('--due', 'run all overdue jobs of the agent')
    .action(async (job: string | undefined, { agent, due, ...flags }: AgentFlags & { due?: true }) => {
      if ((job === undefined) !== (due === true)) throw usageError('Pass a job or --due.');
      const { client } = await connect(flags, io);
      const running = client.call('cron.run', { ...(job === undefined ? { mode: 'due' } : { jobName: job }), agentId: agent });
      const done = await withNearNames(client, { job, agent }, running);
      print(io, flags, done, () =>
        done.mode === 'force' ? `Started ${plainText(done.jobName)}: ${done.executionId}` : `Started ${done.executionIds.length} overdue jobs.`,
      );
    });
}

function addBackfill(cron: Command, io: Io): void {
  withAgent(cron.command('backfill <job>'))
    .description('Runs the missed times of a job, or the times of a range that have not run, one after another; lists them first.')
    .option('--from <time>', 'start of the range, such as 2026-12-24T18:00Z (default: the missed times)', readInstant)
    .option('--to <time>', 'end of the range (default: now)', readInstant)
    .addOption(countOption('--limit <n>', 'maximum number of times, the oldest first, at most 100', 20))
    .option('--dry-run', 'only list the times')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (job: string, { agent, from, to, limit, dryRun, yes, ...flags }: BackfillFlags) => {
      const { client } = await connect(flags, io);
      const params = { jobName: job, agentId: agent, fromMs: from, toMs: to, limit };
      const planned = await withNearNames(client, { job, agent }, client.call('cron.backfill', { ...params, dryRun: true }));
      if (dryRun === true || planned.timesMs.length === 0) return print(io, flags, planned, backfillText);
      if (yes !== true) {
        printLine(io.stderr, backfillText(planned));
        await confirm('Run them?', io);
      }
      const done = await client.call('cron.backfill', params);
      print(io, flags, done, ({ timesMs }) => `Queued ${timesMs.length} times of ${plainText(done.jobName)}.`);
    });
}

function addRuns(cron: Command, io: Io): void {
  withAgent(cron.command('runs <job>'))
    .description('Lists the runs of a job, newest first.')
    .addOption(countOption('--limit <n>', 'number of runs, at most 10000', 20))
    .action(async (job: string, { agent, limit, ...flags }: AgentFlags & { limit: number }) => {
      const { client } = await connect(flags, io);
      const listed = await withNearNames(client, { job, agent }, client.call('cron.runs', { jobName: job, limit, agentId: agent }));
      print(io, flags, listed, () => runTable(listed, widthOf(io)));
    });
}

function addStatus(cron: Command, io: Io): void {
  withAgent(cron.command('status'))
    .description("Shows the state of an agent's schedule.")
    .action(async ({ agent, ...flags }: AgentFlags) => {
      const { client } = await connect(flags, io);
      const status = await client.call('cron.status', { agentId: agent });
      print(io, flags, status, statusText);
    });
}

/** Prints the estimated cost of a job before it is stored. Ignores errors, which `cron.add` reports. */
async function printEstimate(client: Client, schedule: ParamsInput<'cron.add'>['schedule'], agent: string | undefined, io: Io): Promise<void> {
  try {
    const agentId = agent ?? (await client.call('cron.status')).resolvedAgentId;
    const estimate = await client.call('cron.preview', { schedule, count: 1, agentId });
    const text = estimateText(estimate);
    if (text !== undefined) printLine(io.stderr, text);
  } catch (error) {
    if (!(error instanceof GatehouseError)) throw error;
  }
}

/** Returns the result of a call on a job; when there is no such job, the error names it and those with a similar name. */
async function withNearNames<T>(
  client: Client,
  { job, agent }: { job: string | undefined; agent?: string | undefined },
  called: Promise<T>,
): Promise<T> {
  try {
    return await called;
  } catch (error) {
    if (!(error instanceof NotFoundError) || job === undefined) throw error;
    // Rejects with the error of the agent, when that does not exist.
    const { jobs } = await client.call('cron.list', { agentId: agent });
    const meant = nearest(
      job,
      jobs.map(({ name }) => name),
    );
    throw new CliError(`There is no job ${JSON.stringify(plainText(job))}.`, {
      code: error.code,
      hint: meant === undefined ? '`gatehouse cron list` lists the jobs.' : `Did you mean ${JSON.stringify(plainText(meant))}?`,
      cause: error,
    });
  }
}

function withAgent(command: Command, help = 'agent (default: the default one)'): Command {
  return withConnection(command).option('--agent <id>', help);
}

function jobOf(job: string): { jobId: string } | { jobName: string } {
  return /^cj_[A-Za-z0-9_-]+$/.test(job) ? { jobId: job } : { jobName: job };
}

function clearedBy(flags: readonly string[]): Pick<ParamsInput<'cron.update'>, Cleared> {
  return Object.fromEntries(
    flags.map((flag) => {
      const field = clearable[flag];
      if (field === undefined) throw usageError(`--clear ${plainText(flag)}: expected ${Object.keys(clearable).join(', ')}.`);
      return [field, null];
    }),
  );
}
