import type { Result } from '@gatehouse/contract';
import { plainText, shorten } from '../render/plain.ts';
import { type Cell, renderBytes, renderColumns, renderTable, renderTime } from '../render/table.ts';

/** Characters of a memory in a list. */
const contentLength = 80;

export function browsed({ entries, total, offset }: Result<'memory.browse'>): string {
  if (entries.length === 0) return total === 0 ? 'There are no memories.' : `There are ${total} memories, none after ${offset}.`;
  const table = renderTable(
    ['Id', 'Type', 'Trust', 'Tags', 'Stored', 'Content'],
    entries.map((one) => [
      one.id,
      one.memoryType,
      one.trustLevel,
      tagsText(one.tags),
      renderTime(one.createdAt),
      shorten(one.content, contentLength),
    ]),
  );
  return entries.length === total ? table : `${table}\n${offset + 1} to ${offset + entries.length} of ${total}`;
}

/** Why each was found: the place that its words have, and how near its meaning is. */
export function foundMemories({ results }: Result<'memory.search'>): string {
  if (results.length === 0) return 'Nothing was found.';
  return renderTable(
    ['Score', 'Words', 'Meaning', 'Trust', 'Id', 'Content'],
    results.map(({ score, explain, trustLevel, id, content }) => [
      score.toFixed(2),
      explain.textRank === undefined ? undefined : `#${explain.textRank}`,
      explain.vectorSimilarity === undefined ? undefined : explain.vectorSimilarity.toFixed(2),
      trustLevel,
      id,
      shorten(content, contentLength),
    ]),
  );
}

export function entryText(entry: NonNullable<Result<'memory.inspect'>['entry']>): string {
  const { source } = entry;
  const rows: (readonly [string, Cell])[] = [
    ['id', entry.id],
    ['agent', entry.agentId],
    ['belongs to', entry.principalId === '*' ? 'everybody' : entry.principalId],
    ['type', entry.memoryType],
    ['trust', entry.trustLevel],
    ['taint', entry.taintLevel],
    ['source', [source.who, source.channel, source.sessionKey ?? source.conversationRef].filter((part) => part !== undefined).join(', ')],
    ['tags', tagsText(entry.tags)],
    ['stored', renderTime(entry.createdAt)],
  ];
  if (entry.updatedAt !== undefined) rows.push(['changed', renderTime(entry.updatedAt)]);
  if (entry.expiresAt !== undefined) rows.push(['expires', renderTime(entry.expiresAt)]);
  if (entry.confidence !== undefined) rows.push(['confidence', entry.confidence.toFixed(2)]);
  if (entry.proofCount > 0) rows.push(['derived from', entry.sourceIds?.join(', ') ?? `${entry.proofCount} sources`]);
  if (entry.consolidatedAt !== undefined) rows.push(['taken up', renderTime(entry.consolidatedAt)]);
  // Its lines are indented, so that none looks like a fact about it.
  const content = entry.content.split(/\r\n|\n|\r/).map((line) => `  ${plainText(line)}`);
  return [renderColumns(rows), '', ...content].join('\n');
}

export function statsText(stats: Result<'memory.stats'>): string {
  return renderColumns([
    ['memories', stats.totalEntries],
    ...partsOf('type', stats.byType),
    ...partsOf('trust', stats.byTrustLevel),
    ['with a vector', stats.embeddedEntries],
    ['embedded by', stats.embeddingProvider ?? 'nothing'],
    ['cache hit rate', typeof stats.embeddingCacheHitRate === 'number' ? `${Math.round(stats.embeddingCacheHitRate * 100)} %` : undefined],
    ['database', renderBytes(stats.dbSizeBytes)],
    ['oldest', stats.oldestCreatedAt === null ? undefined : renderTime(stats.oldestCreatedAt)],
  ]);
}

export function reviewText(done: Result<'memory.review'>): string {
  const { conversationsReviewed, conversationsFailed, extracted, duplicates, rejected, admitted, derived, more } = done;
  const failed = conversationsFailed === 0 ? '' : `, ${conversationsFailed} failed and are tried again later`;
  return [
    `Reviewed ${conversationsReviewed} conversations of ${done.agentId}${failed}.`,
    `Found ${extracted}: ${admitted} stored, ${duplicates} known already, ${rejected} rejected; ${derived} derived from several.`,
    ...(more ? ['More conversations wait for the next run.'] : []),
  ].join('\n');
}

export function lifecycleText({ agentId, dryRun, examined, promoted, demoted, evicted, actions, more }: Result<'memory.lifecycle'>): string {
  const counts = `${promoted} promoted, ${demoted} demoted, ${evicted} evicted`;
  return [
    ...(dryRun && actions.length > 0
      ? [
          renderTable(
            ['Do', 'Memory', 'Because'],
            actions.map(({ kind, id, reason }) => [kind, id, reason.replaceAll('_', ' ')]),
          ),
          '',
        ]
      : []),
    `${dryRun ? 'Of' : 'Swept'} ${examined} memories of ${agentId}: ${counts}${more ? ', and there is more to do' : ''}.${dryRun ? ' Nothing was changed.' : ''}`,
  ].join('\n');
}

function partsOf(name: string, parts: Readonly<Record<string, number | undefined>>): [string, number][] {
  return Object.entries(parts).flatMap(([part, value = 0]) => (value === 0 ? [] : [[`${name} ${part}`, value] as [string, number]]));
}

function tagsText(tags: readonly string[]): string | undefined {
  return tags.length === 0 ? undefined : tags.join(', ');
}
