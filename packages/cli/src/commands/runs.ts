import { setTimeout as pause } from 'node:timers/promises';
import type { Client } from '@gatehouse/client';
import type { ParamsInput } from '@gatehouse/contract';
import type { Command } from 'commander';
import { eventBatches } from '../connection/event-batches.ts';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { widthOf } from '../render/width.ts';
import { plainText } from '../render/plain.ts';
import { addBackgroundCommands } from './background.ts';
import { confirm } from './confirm.ts';
import { addGroup } from './group.ts';
import { untilInterrupted } from './interrupt.ts';
import { collect } from './job-flags.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';
import { runText, runTree, waitedText } from './runs-text.ts';
import { waitForRuns } from './wait-for-runs.ts';

type ListFlags = CommonFlags & { active?: true; limit: number; minutes: number; watch?: true };
type SpawnFlags = CommonFlags & { agent?: string; model?: string; maxSteps?: number; aim?: string; expect: string[]; tell?: string; wait?: true };

const kinds = [
  'session:sub_agent_spawned',
  'session:sub_agent_spawn_started',
  'session:sub_agent_completed',
  'graph:started',
  'graph:completed',
] as const;
/** Polling interval: each poll is two of the hundred calls that a token has per minute. */
const leastPauseMs = 2500;
const gateDescriptions = {
  pause: 'Rejects new sub-agents until resumed or the daemon restarts. Needs scope admin.',
  resume: 'Accepts new sub-agents again. Needs scope admin.',
  status: 'Shows whether new sub-agents are accepted. Needs scope admin.',
} as const;
/** Maximum age that the gateway accepts. */
const allMinutes = 10_080;

/** `gatehouse runs list | show | start | wait | steer | kill | background | stop | pause | resume | status`. */
export function addRunsCommand(program: Command, io: Io, setExit: SetExit): void {
  const runs = addGroup(program, 'runs')
    .summary('list, start, steer and kill sub-agents and whole runs')
    .description('Delegated work. ID is a sub-agent (sr_…) or, for `kill`, a whole run (root-…).');

  addList(runs, io, setExit);
  addShow(runs, io);
  addStart(runs, io, setExit);
  addWait(runs, io, setExit);
  addSteer(runs, io);
  addKill(runs, io);
  addBackgroundCommands(runs, io);
  for (const name of ['pause', 'resume', 'status'] as const) addGate(runs, io, name);
}

function addList(runs: Command, io: Io, setExit: SetExit): void {
  withConnection(runs.command('list', { isDefault: true }))
    .description('Lists runs as a tree, the newest first.')
    .option('--active', 'only active runs')
    .option('--watch', 'print again on each change, until Ctrl-C; with --json one line each time')
    .addOption(countOption('--limit <n>', 'number of root runs, at most 200', 20))
    .addOption(countOption('--minutes <n>', 'sub-agents of the last minutes; running ones are always listed', 30))
    .action(async ({ active, limit, minutes, watch, ...flags }: ListFlags) => {
      const { client } = await connect(flags, io);
      const show = async (): Promise<void> => {
        const [roots, subAgents] = await client.batch([
          { method: 'run.list', params: { limit, state: active === true ? 'active' : undefined } },
          { method: 'subagent.list', params: { recentMinutes: minutes } },
        ]);
        if (!roots.ok) throw roots.error;
        if (!subAgents.ok) throw subAgents.error;
        const listed = subAgents.result.runs.filter(({ status }) => active !== true || status === 'running' || status === 'queued');
        if (flags.output !== 'json' && watch === true && io.stdout.isTTY === true) io.stdout.write('\x1b[2J\x1b[H');
        print(io, flags, { ...roots.result, subAgents: listed }, ({ runs: all }) => runTree(all, listed, io.now(), widthOf(io)));
      };
      if (watch !== true) return show();
      await untilInterrupted(io, setExit, async (signal) => {
        for await (const _batch of eventBatches(client, kinds, signal)) {
          await show();
          await pause(leastPauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
        }
      });
    });
}

function addShow(runs: Command, io: Io): void {
  withConnection(runs.command('show <id>'))
    .description('Shows the details and the answer of a sub-agent.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const [status, list, wait] = await client.batch([
        { method: 'session.run_status', params: { runId: id } },
        { method: 'subagent.list', params: { recentMinutes: allMinutes } },
        { method: 'subagent.wait', params: { runIds: [id], timeoutMs: 0 } },
      ]);
      if (!status.ok) throw status.error;
      const run = list.ok ? list.result.runs.find(({ runId }) => runId === id) : undefined;
      const waited = wait.ok ? wait.result.results[0] : undefined;
      const waiting = status.result.status === 'running' ? status.result.waiting : undefined;
      print(io, flags, { ...run, ...status.result, ...(waited?.completion !== undefined && { completion: waited.completion }) }, () =>
        runText(run, waited, io.now(), waiting),
      );
    });
}

function addStart(runs: Command, io: Io, setExit: SetExit): void {
  withConnection(runs.command('start <task>').alias('spawn'))
    .description('Starts a sub-agent in the background; its result is sent to your inbox.')
    .option('--agent <id>', 'agent (default: the default one)')
    .option('--model <name>', "override the agent's model")
    .addOption(countOption('--max-steps <n>', 'maximum number of steps, 1 to 1000'))
    .option('--aim <text>', 'objective behind the task')
    .option('--expect <text>', 'expected output; repeatable', collect, [])
    .option('--tell <where>', 'where to announce the end: inbox, or one of your conversations (cv_…)')
    .option('--wait', 'wait until it ends and print its answer')
    .action(async (task: string, { wait, ...flags }: SpawnFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('session.spawn', spawnParams(task, flags));
      if (wait === true) return waitAndPrint(client, [done.runId], { flags, io, setExit });
      print(io, flags, done, () => `${done.queued === true ? 'Queued' : 'Started'}: ${done.runId}`);
    });
}

function addWait(runs: Command, io: Io, setExit: SetExit): void {
  withConnection(runs.command('wait <ids...>'))
    .description('Waits until sub-agents end and prints their answers; exits with 1 when one failed or is still running.')
    .addOption(countOption('--timeout <seconds>', 'maximum wait (default: until all have ended)'))
    .action(async (ids: string[], { timeout, ...flags }: CommonFlags & { timeout?: number }) => {
      const { client } = await connect(flags, io);
      await waitAndPrint(client, ids, { flags, io, setExit, timeoutSeconds: timeout });
    });
}

function addSteer(runs: Command, io: Io): void {
  withConnection(runs.command('steer <id> <text>'))
    .description('Redirects a sub-agent with a message.')
    .action(async (target: string, message: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('subagent.steer', { target, message });
      print(io, flags, done, () =>
        done.status === 'steered' ? `Stopped ${done.oldRunId}; it continues as ${done.newRunId}.` : `${done.runId} reads it at its next step.`,
      );
    });
}

function addKill(runs: Command, io: Io): void {
  withConnection(runs.command('kill <id>'))
    .description('Kills a sub-agent, or a whole run (scope admin), with everything it delegated.')
    .option('-y, --yes', 'skip the confirmation')
    .action(async (id: string, { yes, ...flags }: CommonFlags & { yes?: true }) => {
      const isRoot = id.startsWith('root-');
      if (yes !== true) await confirm(`Kill ${isRoot ? 'the whole run' : 'the sub-agent'} ${plainText(id)} with everything it delegated?`, io);
      const { client } = await connect(flags, io);
      if (isRoot) {
        const done = await client.call('run.kill', { rootRunId: id });
        return print(io, flags, done, () => `Killed ${done.killed} runs.`);
      }
      const done = await client.call('subagent.kill', { target: id });
      print(io, flags, done, () => `Killed ${done.runId}.`);
    });
}

function addGate(runs: Command, io: Io, name: keyof typeof gateDescriptions): void {
  withConnection(runs.command(name))
    .description(gateDescriptions[name])
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const gate = await client.call(`subagent.${name}`);
      print(io, flags, gate, ({ acceptingSpawns, paused }) =>
        acceptingSpawns ? (paused ? 'New sub-agents are rejected.' : 'New sub-agents are accepted.') : 'The daemon is stopping.',
      );
    });
}

interface Waiting {
  readonly flags: CommonFlags;
  readonly io: Io;
  readonly setExit: SetExit;
  readonly timeoutSeconds?: number | undefined;
}

async function waitAndPrint(client: Client, ids: readonly string[], { flags, io, setExit, timeoutSeconds }: Waiting): Promise<void> {
  await untilInterrupted(io, setExit, async (signal) => {
    const results = await waitForRuns(client, ids, { io, signal, timeoutMs: timeoutSeconds === undefined ? undefined : timeoutSeconds * 1000 });
    print(io, flags, { results }, () => waitedText(results));
    if (results.some(({ completion }) => completion?.endReason !== 'completed')) setExit(exitCode.failed);
  });
}

function spawnParams(task: string, { agent, model, maxSteps, aim, expect, tell: destination }: SpawnFlags): ParamsInput<'session.spawn'> {
  if (destination !== undefined && destination !== 'inbox' && !destination.startsWith('cv_'))
    throw usageError('--tell: expected inbox, or the reference of a conversation (cv_…).');
  return {
    task,
    agent,
    model,
    maxSteps,
    objective: aim,
    ...(expect.length > 0 && { expectedOutputs: expect }),
    ...(destination !== undefined && { announceChannelType: 'gateway', announceChannelId: destination }),
  };
}
