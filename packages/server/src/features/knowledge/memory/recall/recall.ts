import type { AgentConfig, FinishReason } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { Log } from '../../../../kernel/log.ts';
import type { FenceText } from '../../../../runtime/fence.ts';
import type { MemoryApi, Recalled, RecallApi, RecallQuestion, ScoredMemory } from '../api.ts';
import { renderMemories } from './recall-block.ts';
import type { UseCounter } from '../lifecycle/use-counter.ts';

/** Longest time that a turn waits for its memories. */
const deadlineMs = 300;
/** Share of it for the vector of the message: the rest is enough to search by terms. */
const vectorWaitMs = 150;
/** Characters of a long message that are searched for, from each of its ends. */
const questionEnds = 2_000;

/** Share of the message budget for memories: in a small window the conversation matters more. */
const largestShare = 0.25;

/** Failures that memories may have caused; an outage of a provider says nothing about them. */
const ownFailures: ReadonlySet<FinishReason> = new Set(['context_loop', 'max_steps', 'output_starved']);

export interface RecallDeps {
  readonly search: MemoryApi['search'];
  /** Whether the agent has any memory, known without a query. */
  readonly remembers: (agentId: string) => boolean;
  readonly uses: Pick<UseCounter, 'used' | 'failed'>;
  readonly fence: FenceText;
  readonly clock: Clock;
  readonly log: Log;
}

/** Finds memories about a message and formats them as a block for the model. */
export function createRecall(deps: RecallDeps): RecallApi {
  const { clock, log } = deps;

  async function find(about: RecallQuestion, { maxResults, minScore, trust }: AgentConfig['memory']['recall'], signal: AbortSignal) {
    const { agentId, principalId, conversationRef, part, question } = about;
    return deps.search({
      text: question.length <= questionEnds * 2 ? question : `${question.slice(0, questionEnds)} ${question.slice(-questionEnds)}`,
      agentId,
      principalId,
      // Duplicates among them are removed.
      limit: Math.min(100, maxResults * 2),
      minScore,
      trust,
      includeDerivedSources: false,
      bookedOn: principalId,
      bookedConversation: conversationRef,
      part,
      keepVector: false,
      vectorWaitMs,
      signal,
    });
  }

  async function recall(about: RecallQuestion, config: AgentConfig['memory']['recall']): Promise<Recalled | undefined> {
    const late = new AbortController();
    const { promise: deadline, resolve } = Promise.withResolvers<'late'>();
    const cancel = clock.after(deadlineMs, () => resolve('late'));
    const finding = find(about, config, AbortSignal.any([about.signal, late.signal]));
    let found: readonly ScoredMemory[] | 'late';
    try {
      found = await Promise.race([finding, deadline]);
    } catch (error) {
      if (!about.signal.aborted) log.warn({ err: error, agentId: about.agentId }, 'Continuing a turn without memories: the search failed');
      return undefined;
    } finally {
      cancel();
    }
    if (found === 'late') {
      log.warn(
        { agentId: about.agentId, conversationRef: about.conversationRef, deadlineMs },
        'Continuing a turn without memories: the search took too long',
      );
      finding.catch(() => {});
      late.abort();
      return undefined;
    }
    const maxTokens = Math.min(config.maxTokens, Math.floor(about.room * largestShare));
    const recalled = renderMemories(found, { maxResults: config.maxResults, maxTokens }, deps.fence);
    if (recalled !== undefined && about.uncounted !== true) deps.uses.used(about.agentId, recalled.ids);
    return recalled;
  }

  return {
    recall(about, config, origin) {
      const { enabled, v1 } = config.memory.recall;
      if (!enabled || (origin === 'v1' && !v1) || !deps.remembers(about.agentId) || about.question.trim() === '') return undefined;
      return recall(about, config.memory.recall);
    },
    attribute({ agentId, ids }, end) {
      if (ownFailures.has(end.finishReason) && end.failure !== undefined) deps.uses.failed(agentId, ids);
    },
  };
}
