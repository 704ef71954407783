import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import type { Io } from '../io.ts';
import { renderDuration, renderTable, renderTime } from '../render/table.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

type State = Result<'heartbeat.states'>['agents'][number];

/** `gatehouse heartbeat list | enable | disable | trigger`. */
export function addHeartbeatCommand(program: Command, io: Io): void {
  const heartbeat = addGroup(program, 'heartbeat')
    .summary('list, enable, disable and trigger heartbeats of agents')
    .description('At each heartbeat an agent reviews its checklist and recent events. Needs a token with scope admin.');

  addList(heartbeat, io);
  addSwitch(heartbeat, io, 'enable');
  addSwitch(heartbeat, io, 'disable');
  addTrigger(heartbeat, io);
}

function addList(heartbeat: Command, io: Io): void {
  withConnection(heartbeat.command('list', { isDefault: true }))
    .description('Lists agents with the state of their heartbeats.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('heartbeat.states');
      print(io, flags, listed, () => stateTable(listed.agents));
    });
}

function addSwitch(heartbeat: Command, io: Io, name: 'enable' | 'disable'): void {
  const enabled = name === 'enable';
  withConnection(heartbeat.command(`${name} <agent>`))
    .description(enabled ? 'Enables the heartbeat of an agent.' : 'Disables the heartbeat of an agent; it makes no model calls.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('heartbeat.update', { agentId, enabled });
      const next = done.nextDueAtMs === null ? '' : `; next run at ${renderTime(done.nextDueAtMs)}`;
      print(io, flags, done, () => `The heartbeat of ${agentId} is ${enabled ? 'on' : 'off'}${next}.`);
    });
}

function addTrigger(heartbeat: Command, io: Io): void {
  withConnection(heartbeat.command('trigger <agent>'))
    .description('Triggers a heartbeat now; does not wait for it.')
    .action(async (agentId: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('heartbeat.trigger', { agentId });
      const { status, correlationId } = done.admission;
      const outcome = status === 'accepted' ? `Triggered the heartbeat of ${agentId}` : `A heartbeat of ${agentId} is already pending`;
      print(io, flags, done, () => `${outcome}: ${correlationId}`);
    });
}

function stateTable(agents: readonly State[]): string {
  if (agents.length === 0) return 'No agents.';
  return renderTable(
    ['Agent', 'State', 'Every', 'Last run', 'Next', 'Errors', 'Queued events'],
    agents.map((state) => [
      state.agentId,
      stateText(state),
      renderDuration(state.intervalMs),
      state.lastRunAtMs === null ? undefined : renderTime(state.lastRunAtMs),
      state.nextDueAtMs === null ? undefined : renderTime(state.nextDueAtMs),
      state.consecutiveErrors,
      state.queuedEvents,
    ]),
  );
}

function stateText({ enabled, stoppedBy, tickStartedAtMs, backoffUntilMs }: State): string {
  if (!enabled) return 'off';
  if (stoppedBy !== null) return `stopped: ${stoppedBy}`;
  if (tickStartedAtMs !== null) return 'running';
  return backoffUntilMs === null ? 'on' : `paused until ${renderTime(backoffUntilMs)}`;
}
