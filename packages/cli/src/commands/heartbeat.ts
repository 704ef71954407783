import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { type Io, printLine } from '../io.ts';
import { renderDuration, renderTable, renderTime } from '../render/table.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, withConnection } from './options.ts';

type State = Result<'heartbeat.states'>['agents'][number];

/** `gatehouse heartbeat list | enable | disable | trigger`. */
export function addHeartbeatCommand(program: Command, io: Io): void {
  const heartbeat = addGroup(program, 'heartbeat')
    .summary('list, switch and trigger the heartbeats of agents')
    .description('Beats: agents look at their checklist and at what has happened, without being asked. Needs a token with scope admin.');

  withConnection(heartbeat.command('list', { isDefault: true }))
    .description('Lists the agents with what their heartbeats are doing.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('heartbeat.states');
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(listed) : stateTable(listed.agents));
    });

  for (const [name, enabled] of [
    ['enable', true],
    ['disable', false],
  ] as const)
    withConnection(heartbeat.command(`${name} <agent>`))
      .description(enabled ? 'Lets the heartbeat of an agent run.' : 'Keeps the heartbeat of an agent from running: it calls no model.')
      .action(async (agentId: string, flags: CommonFlags) => {
        const { client } = await connect(flags, io);
        const done = await client.call('heartbeat.update', { agentId, enabled });
        if (flags.output === 'json') return printLine(io.stdout, JSON.stringify(done));
        const next = done.nextDueAtMs === null ? '' : `; the next beat is at ${renderTime(done.nextDueAtMs)}`;
        printLine(io.stdout, `The heartbeat of ${agentId} is ${enabled ? 'on' : 'off'}${next}.`);
      });

  withConnection(heartbeat.command('trigger <agent>'))
    .description('Asks for a beat now; does not wait for it.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('heartbeat.trigger', { agentId });
      if (flags.output === 'json') return printLine(io.stdout, JSON.stringify(done));
      const { status, correlationId } = done.admission;
      printLine(io.stdout, `A beat of ${agentId} ${status === 'accepted' ? 'was asked for' : 'was asked for before'}: ${correlationId}`);
    });
}

function stateTable(agents: readonly State[]): string {
  if (agents.length === 0) return 'There are no agents.';
  return renderTable(
    ['Agent', 'State', 'Every', 'Last beat', 'Next', 'Errors', 'Waiting events'],
    agents.map((state) => [
      state.agentId,
      stateWords(state),
      renderDuration(state.intervalMs),
      state.lastRunAtMs === null ? undefined : renderTime(state.lastRunAtMs),
      state.nextDueAtMs === null ? undefined : renderTime(state.nextDueAtMs),
      state.consecutiveErrors,
      state.queuedEvents,
    ]),
  );
}

function stateWords({ enabled, stoppedBy, tickStartedAtMs, backoffUntilMs }: State): string {
  if (!enabled) return 'off';
  if (stoppedBy !== null) return `stopped: ${stoppedBy}`;
  if (tickStartedAtMs !== null) return 'beats now';
  return backoffUntilMs === null ? 'on' : `waits until ${renderTime(backoffUntilMs)}`;
}
