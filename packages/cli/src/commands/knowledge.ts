import type { Result } from '@gatehouse/contract';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import type { Io } from '../io.ts';
import { plainText } from '../render/plain.ts';
import { renderBytes, renderTable, renderTime } from '../render/table.ts';
import { addGroup } from './group.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { print } from './print.ts';

/** `gatehouse knowledge list | search | read | refresh`. */
export function addKnowledgeCommand(program: Command, io: Io): void {
  const knowledge = addGroup(program, 'knowledge')
    .summary('search the folders and sites that agents answer from')
    .description('Folders and sites that agents answer from; they are configured as agents.<id>.knowledge.sources.');

  withConnection(knowledge.command('list', { isDefault: true }))
    .description('Lists the sources and the state of their index.')
    .option('--agent <id>', 'only this agent')
    .action(async ({ agent, ...flags }: CommonFlags & { agent?: string }) => {
      const { client } = await connect(flags, io);
      const listed = await client.call('knowledge.list', agent === undefined ? {} : { agentId: agent });
      print(io, flags, listed, () => sourcesText(listed));
    });

  withConnection(knowledge.command('search <query...>'))
    .description('Shows the passages that match best.')
    .option('--agent <id>', 'agent whose sources are searched')
    .option('--source <name>', 'only this source')
    .addOption(countOption('--limit <n>', 'number of passages, at most 50', 10))
    .action(async (query: string[], { agent, source, limit, ...flags }: CommonFlags & { agent?: string; source?: string; limit: number }) => {
      const { client } = await connect(flags, io);
      const found = await client.call('knowledge.search', {
        query: query.join(' '),
        limit,
        ...(agent !== undefined && { agentId: agent }),
        ...(source !== undefined && { source }),
      });
      print(io, flags, found, () => passagesText(found));
    });

  withConnection(knowledge.command('read <file> [part]'))
    .description('Shows a page or section of a file, by the id that a search shows.')
    .action(async (file: string, part: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const read = await client.call('knowledge.read', { fileId: file, part: Number(part ?? 1), count: 1 });
      print(io, flags, read, () =>
        read.parts.map(({ label, text }) => [plainText(label), plainText(text)].filter((line) => line !== '').join('\n')).join('\n\n'),
      );
    });

  withConnection(knowledge.command('refresh <agent> [source]'))
    .description('Compares sources with their index now.')
    .action(async (agent: string, source: string | undefined, flags: CommonFlags) => {
      const { client } = await connect(flags, io);
      const started = await client.call('knowledge.refresh', { agentId: agent, ...(source !== undefined && { source }) });
      print(io, flags, started, () => 'Started.');
    });
}

function sourcesText({ sources }: Result<'knowledge.list'>): string {
  if (sources.length === 0) return 'No sources.';
  const table = renderTable(
    ['AGENT', 'SOURCE', 'STATE', 'FILES', 'PASSAGES', 'SIZE', 'TRUSTED', 'COMPARED', 'PLACE'],
    sources.map(({ agentId, name, state, files, passages, bytes, trusted, checkedAt, folder, site }) => [
      agentId,
      name,
      state,
      String(files),
      String(passages),
      renderBytes(bytes),
      trusted ? 'yes' : 'no',
      checkedAt === null ? '-' : renderTime(checkedAt),
      plainText(folder ?? site ?? ''),
    ]),
  );
  const notes = sources.flatMap(({ agentId, name, problem, unwatched, failedCount, failed }) => [
    ...(problem === undefined ? [] : [`${agentId}/${name}: ${plainText(problem)}`]),
    ...(unwatched === 0 ? [] : [`${agentId}/${name}: ${unwatched} folders beyond the limit of watches are compared at intervals only`]),
    ...failed.map((one) => `${agentId}/${name}: ${plainText(one.path)}: ${plainText(one.problem)}`),
    ...(failedCount > failed.length ? [`${agentId}/${name}: ${failedCount - failed.length} more files without text`] : []),
  ]);
  return [table, ...notes].join('\n');
}

function passagesText({ passages }: Result<'knowledge.search'>): string {
  if (passages.length === 0) return 'Nothing found.';
  return passages
    .map(({ fileId, path, part, label, text }) =>
      [`${plainText([path, label].filter((one) => one !== '').join(', '))}  (${fileId} ${part})`, plainText(text)].join('\n'),
    )
    .join('\n\n');
}
