import { randomUUIDv7 } from 'node:crypto';
import { memoryLimits } from '@gatehouse/contract';
import { AppError } from '../../../../kernel/app-error.ts';
import { announceAudit, auditRow, recordAudit } from '../../../../kernel/audit.ts';
import type { CallContext } from '../../../../kernel/call-context.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Db } from '../../../../kernel/db/db.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import type { NewMemory, TrustLevel } from '../api.ts';
import { storeMemory } from './browse-store.ts';
import { scanMemory } from './scan.ts';
import type { MemoryInput } from './store.ts';

interface StoreDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
}

/** Checks and stores a memory. Text that looks like a destructive command is refused; other suspicious text loses its trust. */
export async function storeEntry(deps: StoreDeps, entry: NewMemory, by: CallContext | 'system') {
  const { db, bus, clock } = deps;
  checkLimits(entry);
  if (entry.trustLevel === 'system' && by !== 'system')
    throw new AppError('denied', 'trustLevel: "system" is for the daemon itself', { param: 'trustLevel' });
  const { severity, patterns } = scanMemory(entry.content);
  const blocked = severity === 'critical';
  const tainted = severity === 'warn';
  const announceTaint = () =>
    bus.emit('security:memory_tainted', {
      agentId: entry.agentId,
      originalTrustLevel: entry.trustLevel,
      adjustedTrustLevel: blocked ? 'blocked' : 'external',
      patterns: [...patterns],
      blocked,
      timestamp: clock.now(),
    });
  if (blocked) {
    announceTaint();
    if (by !== 'system')
      await recordAudit(deps, by, {
        actionType: 'memory.store',
        classification: 'security',
        outcome: 'denied',
        target: entry.agentId,
        metadata: { patterns: [...patterns] },
      });
    throw new AppError('denied', `content: refused, because it contains what looks like a destructive command (${patterns.join(', ')})`, {
      param: 'content',
    });
  }
  const trustLevel: TrustLevel = tainted ? 'external' : entry.trustLevel;
  const id = randomUUIDv7();
  const atMs = clock.now();
  const audit =
    by === 'system'
      ? undefined
      : auditRow(by, atMs, { actionType: 'memory.store', classification: 'mutate', target: id, metadata: { agentId: entry.agentId, tainted } });
  const trust = tainted
    ? { trustLevel, taintLevel: 'raw' as const, extraTags: ['security-tainted'] }
    : { trustLevel, taintLevel: entry.taintLevel ?? ('clean' as const), extraTags: [] };
  await db.write(storeMemory, { memory: rowOf(entry, { id, atMs, ...trust }), audit });
  if (audit !== undefined) announceAudit(bus, audit);
  if (tainted) announceTaint();
  return { id, trustLevel, tainted };
}

function rowOf(
  entry: NewMemory,
  { id, atMs, extraTags, ...trust }: Pick<MemoryInput, 'id' | 'trustLevel' | 'taintLevel'> & { readonly atMs: number; readonly extraTags: string[] },
): MemoryInput {
  return {
    id,
    ...trust,
    agentId: entry.agentId,
    principalId: entry.principalId,
    content: entry.content,
    memoryType: entry.memoryType ?? 'semantic',
    sourceWho: entry.source.who,
    sourceChannel: entry.source.channel ?? null,
    conversationRef: entry.source.conversationRef ?? null,
    sessionKey: entry.source.sessionKey ?? null,
    tags: JSON.stringify([...new Set([...(entry.tags ?? []), ...extraTags])]),
    createdAtMs: atMs,
    expiresAtMs: entry.expiresAtMs ?? null,
    confidence: entry.confidence ?? null,
    pinned: entry.pinned === true ? 1 : 0,
    cites: entry.cites ?? [],
  };
}

function checkLimits({ content, tags = [], expiresAtMs }: NewMemory): void {
  const bytes = Buffer.byteLength(content);
  if (content.trim() === '') throw new AppError('invalid_params', 'content: expected some text', { param: 'content' });
  if (!content.isWellFormed()) throw new AppError('invalid_params', 'content: expected well-formed Unicode', { param: 'content' });
  if (bytes > memoryLimits.contentBytes)
    throw new AppError('invalid_params', `content: expected at most ${memoryLimits.contentBytes} bytes, got ${bytes}`, { param: 'content' });
  // One tag is reserved for the scan.
  if (tags.length >= memoryLimits.tags)
    throw new AppError('invalid_params', `tags: expected at most ${memoryLimits.tags - 1}, got ${tags.length}`, { param: 'tags' });
  if (tags.some((tag) => tag === '' || tag.length > memoryLimits.tagCharacters))
    throw new AppError('invalid_params', `tags: expected 1 to ${memoryLimits.tagCharacters} characters each`, { param: 'tags' });
  if (expiresAtMs !== undefined && !Number.isSafeInteger(expiresAtMs))
    throw new AppError('invalid_params', 'expiresAt: expected milliseconds since the epoch', { param: 'expiresAt' });
}
