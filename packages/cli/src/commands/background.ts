import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import type { Io } from '../io.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderDuration, renderTable } from '../render/table.ts';
import { type CommonFlags, withConnection } from './options.ts';
import { print } from './print.ts';

const descriptionLength = 60;

/** `gatehouse runs background | stop`: commands and tool calls that run detached from their turns. */
export function addBackgroundCommands(runs: Command, io: Io): void {
  addBackground(runs, io);
  addStop(runs, io);
}

function addBackground(runs: Command, io: Io): void {
  withConnection(runs.command('background'))
    .description('Lists the commands and tool calls that agents have running in the background.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('background.list');
      print(io, flags, listed, () => taskTable(listed.items, io.now()));
    });
}

function addStop(runs: Command, io: Io): void {
  withConnection(runs.command('stop <id>'))
    .description('Stops a background command (cmd_…) or tool call (bt_…) with everything it started.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('background.stop', { id });
      print(io, flags, done, () => `Stopped ${done.id}.`);
    });
}

function taskTable(items: Result<'background.list'>['items'], nowMs: number): string {
  if (items.length === 0) return 'No background tasks.';
  return renderTable(
    ['Id', 'Agent', 'Kind', 'Runs for', 'Run', 'What'],
    items.map(({ id, agentId, kind, startedAt, rootRunId, description }) => [
      id,
      agentId,
      kind,
      renderDuration(nowMs - startedAt),
      rootRunId,
      shorten(plainText(description), descriptionLength),
    ]),
  );
}
