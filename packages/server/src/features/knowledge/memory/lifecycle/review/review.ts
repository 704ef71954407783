import { randomUUIDv7 } from 'node:crypto';
import { AppError } from '../../../../../kernel/app-error.ts';
import type { Operation } from '../../../../../kernel/db/operation.ts';
import type { Agent } from '../../../../agents/agents/api.ts';
import type { ReviewReport } from '../../api.ts';
import { consolidate } from './derive.ts';
import type { ReflectDeps } from '../life-deps.ts';
import { type Candidate, parseCandidates, reviewInstructions, reviewTranscript } from './review-candidates.ts';
import type { KeptReview, Reviewable, ReviewFailure, ReviewText } from './review-store.ts';
import { scanMemory } from '../../entries/scan.ts';
import type { MemoryInput } from '../../entries/store.ts';
import { foldTerms, saysTheSame } from './text-likeness.ts';

/** Messages shown from either end of the new ones, when there are more than twice as many. */
const ends = 10;
const maxAnswerTokens = 2_048;
/** Consecutive failed model calls after which the run stops. */
const maxFailuresInRow = 2;
/** Memories that a candidate is compared with. */
const neighbours = 5;

/** Operations over both conversations and memories; composed in `review-conversation.ts`. */
export interface ReviewOperations {
  readonly find: Operation<{ readonly agentId: string; readonly minMessages: number; readonly limit: number }, Reviewable[]>;
  readonly read: Operation<Pick<Reviewable, 'conversationId' | 'fromSeq' | 'toSeq'> & { readonly ends: number }, ReviewText>;
  readonly keep: Operation<KeptReview, boolean>;
  readonly fail: Operation<ReviewFailure, void>;
}

export interface ReviewDeps extends ReflectDeps {
  readonly operations: ReviewOperations;
}

/** Result of reviewing one conversation. */
interface Found {
  readonly extracted: number;
  readonly duplicates: number;
  readonly rejected: number;
  readonly admitted: number;
}

/**
 * Reviews an agent's conversations that changed since the last review: a model names what is worth remembering,
 * and new facts are stored as `learned`, or as `external` if text from outside was part of the conversation.
 * Results and watermark commit together, so that an interrupted run resumes where it was.
 */
export async function reviewConversations(
  deps: ReviewDeps,
  { agent, signal }: { readonly agent: Agent; readonly signal: AbortSignal },
): Promise<ReviewReport> {
  const { db, bus, clock, log } = deps;
  const { minMessages, maxSessionsPerRun } = agent.config.memory.review;
  const startedAt = clock.monotonic();
  const due = await db.read(deps.operations.find, { agentId: agent.id, minMessages, limit: maxSessionsPerRun + 1 });
  const sum = { conversationsReviewed: 0, conversationsFailed: 0, extracted: 0, duplicates: 0, rejected: 0, admitted: 0 };
  let failedInRow = 0;
  for (const conversation of due.slice(0, maxSessionsPerRun)) {
    signal.throwIfAborted();
    const found = await reviewOne(deps, agent, conversation, signal);
    if (found === 'no_budget') break;
    if (found === 'gone') continue;
    if (found === 'failed') {
      sum.conversationsFailed += 1;
      failedInRow += 1;
      if (failedInRow >= maxFailuresInRow) break;
      continue;
    }
    failedInRow = 0;
    sum.conversationsReviewed += 1;
    for (const key of ['extracted', 'duplicates', 'rejected', 'admitted'] as const) sum[key] += found[key];
    log.info({ agentId: agent.id, conversationRef: conversation.conversationRef, ...found }, 'Reviewed a conversation');
  }
  if (sum.admitted > 0) {
    deps.stored(agent.id);
    bus.emit('reflect:admitted', { agentId: agent.id, count: sum.admitted, timestamp: clock.now() });
  }
  const folded = await consolidate(deps, { agent, signal });
  const durationMs = Math.round(clock.monotonic() - startedAt);
  const { conversationsReviewed, extracted, duplicates, rejected, admitted } = sum;
  bus.emit('reflect:funnel', {
    agentId: agent.id,
    conversationsReviewed,
    extracted,
    duplicates,
    rejected,
    admitted,
    durationMs,
    timestamp: clock.now(),
  });
  const report: ReviewReport = { agentId: agent.id, ...sum, more: due.length > sum.conversationsReviewed, ...folded, durationMs };
  log.info({ ...report }, 'Finished a memory review');
  return report;
}

async function reviewOne(
  deps: ReviewDeps,
  agent: Agent,
  conversation: Reviewable,
  signal: AbortSignal,
): Promise<Found | 'failed' | 'gone' | 'no_budget'> {
  const { db, clock, log } = deps;
  const { conversationRef, principalId, toSeq } = conversation;
  const text = await db.read(deps.operations.read, { ...conversation, ends });
  const lastTurnId = text.messages.at(-1)?.turnId;
  if (lastTurnId === undefined) return 'gone';
  const mark = { agentId: agent.id, conversationRef, toSeq, lastTurnId };
  let parsed: ReturnType<typeof parseCandidates>;
  try {
    const answer = await deps.work.generate({
      agentId: agent.id,
      principalId,
      operation: 'memoryReview',
      conversationRef,
      system: [reviewInstructions],
      messages: [{ role: 'user', content: deps.fence(reviewTranscript(text, agent.config.memory.review.maxTokens), { source: 'conversation' }) }],
      maxTokens: maxAnswerTokens,
      signal,
    });
    parsed = parseCandidates(answer.text);
    if (parsed === undefined) log.warn({ agentId: agent.id, conversationRef, finish: answer.finish }, 'A review returned no list');
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn({ err: error, agentId: agent.id, conversationRef }, 'A review failed');
    if (error instanceof AppError && error.code === 'rate_limited') return 'no_budget';
  }
  if (parsed === undefined) {
    await db.write(deps.operations.fail, { ...mark, atMs: clock.now() });
    return 'failed';
  }
  const memories: MemoryInput[] = [];
  const seenAgain = new Set<string>();
  let { rejected } = parsed;
  let duplicates = 0;
  for (const candidate of parsed.candidates) {
    const memory = toMemory(deps, agent, conversation, text.outside, candidate);
    const known = memory === undefined ? undefined : await findKnown(deps, agent, memory, memories, signal);
    if (memory === undefined) rejected += 1;
    else if (known === undefined) memories.push(memory);
    else duplicates += 1;
    if (known?.id !== undefined) seenAgain.add(known.id);
  }
  const kept = await db.write(deps.operations.keep, { ...mark, memories, seenAgain: [...seenAgain], atMs: clock.now() });
  if (!kept) return 'gone';
  return { extracted: parsed.candidates.length + parsed.rejected, duplicates, rejected, admitted: memories.length };
}

/** Converts a candidate to a memory; undefined when the write scan refuses it. */
function toMemory(
  { bus, clock }: ReviewDeps,
  agent: Agent,
  conversation: Reviewable,
  outside: boolean,
  candidate: Candidate,
): MemoryInput | undefined {
  const { recall, review } = agent.config.memory;
  // An agent that is shown memories of outsiders may repeat them as its own.
  const isOutside = outside || recall.trust.includes('external');
  const { severity, patterns } = scanMemory(candidate.content);
  const isBlocked = severity === 'critical';
  if (severity !== 'clean')
    bus.emit('security:memory_tainted', {
      agentId: agent.id,
      originalTrustLevel: isOutside ? 'external' : 'learned',
      adjustedTrustLevel: isBlocked ? 'blocked' : 'external',
      patterns: [...patterns],
      blocked: isBlocked,
      timestamp: clock.now(),
    });
  if (isBlocked) return undefined;
  const isTainted = severity === 'warn';
  const tags = ['auto-review', ...(isTainted ? ['security-tainted'] : []), ...review.autoTags, ...candidate.tags];
  return {
    id: randomUUIDv7(),
    agentId: agent.id,
    principalId: conversation.principalId,
    content: candidate.content,
    memoryType: candidate.type,
    trustLevel: isOutside || isTainted ? 'external' : 'learned',
    taintLevel: isTainted ? 'raw' : isOutside ? 'wrapped' : 'clean',
    sourceWho: agent.id,
    sourceChannel: 'conversation',
    conversationRef: conversation.conversationRef,
    sessionKey: conversation.sessionKey,
    tags: JSON.stringify([...new Set(tags)]),
    createdAtMs: clock.now(),
    expiresAtMs: null,
    confidence: candidate.confidence ?? null,
    pinned: 0,
    cites: [],
  };
}

/**
 * Finds an equally trusted memory of the same fact: a statement of an outsider must not block what was
 * learned. Without an id it is among `found`, of the same conversation.
 */
async function findKnown(
  deps: ReviewDeps,
  agent: Agent,
  memory: MemoryInput,
  found: readonly MemoryInput[],
  signal: AbortSignal,
): Promise<{ readonly id?: string } | undefined> {
  const threshold = agent.config.memory.review.dedupThreshold;
  const terms = foldTerms(memory.content);
  if (found.some((other) => saysTheSame(terms, foldTerms(other.content), undefined, threshold))) return {};
  const near = await deps.search({
    text: memory.content,
    agentId: agent.id,
    principalId: memory.principalId,
    limit: neighbours,
    ...(memory.trustLevel === 'learned' && { trust: ['system', 'learned'] as const }),
    bookedOn: memory.principalId,
    keepVector: false,
    ...(memory.conversationRef !== null && { bookedConversation: memory.conversationRef }),
    signal,
  });
  const same = near.filter(({ entry, explain }) => saysTheSame(terms, foldTerms(entry.content), explain.vectorSimilarity, threshold));
  // Neither one folded into a derived one, nor one with different trust: an outsider proves nothing that was learned.
  const known = same.find(
    ({ entry }) => entry.consolidatedAtMs === undefined && entry.principalId === memory.principalId && entry.trustLevel === memory.trustLevel,
  );
  return known === undefined ? (same.length > 0 ? {} : undefined) : { id: known.entry.id };
}
