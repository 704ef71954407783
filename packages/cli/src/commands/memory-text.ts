import type { Result } from '@gatehouse/contract';
import { plainText, shorten } from '../render/plain.ts';
import { type Cell, renderBytes, renderColumns, renderTable, renderTime } from '../render/table.ts';

/** Maximum characters of a memory in a list. */
const contentLength = 80;

export function browsed({ entries, total, offset }: Result<'memory.browse'>): string {
  if (entries.length === 0) return total === 0 ? 'No memories.' : `${total} memories, none after ${offset}.`;
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

/** Explains each match: its rank by terms, and the similarity of its meaning. */
export function foundMemories({ results }: Result<'memory.search'>): string {
  if (results.length === 0) return 'Nothing found.';
  return renderTable(
    ['Score', 'Terms', 'Meaning', 'Trust', 'Id', 'Content'],
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
    ['owner', entry.principalId === '*' ? 'everyone' : entry.principalId],
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
  if (entry.consolidatedAt !== undefined) rows.push(['consolidated', renderTime(entry.consolidatedAt)]);
  // Indents the content, so that no line looks like a field.
  const content = entry.content.split(/\r\n|\n|\r/).map((line) => `  ${plainText(line)}`);
  return [renderColumns(rows), '', ...content].join('\n');
}

export function statsText(stats: Result<'memory.stats'>): string {
  return renderColumns([
    ['memories', stats.totalEntries],
    ...partsOf('type', stats.byType),
    ...partsOf('trust', stats.byTrustLevel),
    ['embedded', stats.embeddedEntries],
    ['embedding provider', stats.embeddingProvider ?? 'none'],
    ['cache hit rate', typeof stats.embeddingCacheHitRate === 'number' ? `${Math.round(stats.embeddingCacheHitRate * 100)} %` : undefined],
    ['database', renderBytes(stats.dbSizeBytes)],
    ['oldest', stats.oldestCreatedAt === null ? undefined : renderTime(stats.oldestCreatedAt)],
  ]);
}

export function reviewText(done: Result<'memory.review'>): string {
  const { conversationsReviewed, conversationsFailed, extracted, duplicates, rejected, admitted, derived, more } = done;
  const failed = conversationsFailed === 0 ? '' : `, ${conversationsFailed} failed and will be retried later`;
  return [
    `Reviewed ${conversationsReviewed} conversations of ${done.agentId}${failed}.`,
    `Found ${extracted}: ${admitted} stored, ${duplicates} already known, ${rejected} rejected; ${derived} derived from several.`,
    ...(more ? ['More conversations are left for the next run.'] : []),
  ].join('\n');
}

export function lifecycleText({ agentId, dryRun, examined, promoted, demoted, evicted, actions, more }: Result<'memory.lifecycle'>): string {
  const counts = `${promoted} promoted, ${demoted} demoted, ${evicted} evicted`;
  return [
    ...(dryRun && actions.length > 0
      ? [
          renderTable(
            ['Action', 'Memory', 'Reason'],
            actions.map(({ kind, id, reason }) => [kind, id, reason.replaceAll('_', ' ')]),
          ),
          '',
        ]
      : []),
    `${dryRun ? 'Of' : 'Swept'} ${examined} memories of ${agentId}: ${counts}${more ? ', and more in later runs' : ''}.${dryRun ? ' Nothing was changed.' : ''}`,
  ].join('\n');
}

function partsOf(name: string, parts: Readonly<Record<string, number | undefined>>): [string, number][] {
  return Object.entries(parts).flatMap(([part, value = 0]) => (value === 0 ? [] : [[`${name} ${part}`, value] as [string, number]]));
}

function tagsText(tags: readonly string[]): string | undefined {
  return tags.length === 0 ? undefined : tags.join(', ');
}
