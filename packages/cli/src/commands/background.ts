import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { type Io, printLine } from '../io.ts';
import { plainText, shorten } from '../render/plain.ts';
import { renderDuration, renderTable } from '../render/table.ts';
import { type CommonFlags, withConnection } from './options.ts';

const descriptionLength = 60;

/** `gatehouse runs background | stop`: commands and tool calls that run detached from their turns. */
export function addBackgroundCommands(runs: Command, io: Io): void {
  withConnection(runs.command('background'))
    .description('Lists the commands and tool calls that agents have running in the background.')
    .action(async (flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('background.list');
      if (flags.output === 'json') return printLine(io.stdout, JSON.stringify(listed));
      if (listed.items.length === 0) return printLine(io.stdout, 'No background tasks.');
      const rows = listed.items.map(({ id, agentId, kind, startedAt, rootRunId, description }) => [
        id,
        agentId,
        kind,
        renderDuration(io.now() - startedAt),
        rootRunId,
        shorten(plainText(description), descriptionLength),
      ]);
      printLine(io.stdout, renderTable(['Id', 'Agent', 'Kind', 'Runs for', 'Run', 'What'], rows));
    });

  withConnection(runs.command('stop <id>'))
    .description('Stops a background command (cmd_…) or tool call (bt_…) with everything it started.')
    .action(async (id: string, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const done = await client.call('background.stop', { id });
      printLine(io.stdout, flags.output === 'json' ? JSON.stringify(done) : `Stopped ${done.id}.`);
    });
}
