import { append, textOf, toFragment } from '../../../../kernel/json-fragment.ts';
import type { EventPayload } from '@gatehouse/contract';
import type { Clock } from '../../../../kernel/clock.ts';
import type { EventBus } from '../../../../kernel/event-bus.ts';
import { newId } from '../../../../kernel/ids.ts';
import { totalCost } from '../../../../llm/price.ts';
import type { CallRecord, TurnResult, TurnSink } from '../../../../runtime/turn.ts';
import type { ConversationTarget } from '../../sessions/api.ts';

/** Fields common to all events of a turn. */
export type About = Pick<EventPayload<'message:sent'>, 'conversationRef' | 'sessionKey' | 'agentId' | 'turnId' | 'traceId' | 'origin'>;

/** The source of model calls: a turn, or background work that may have no conversation. */
export type UsedBy = Pick<About, 'turnId' | 'traceId' | 'agentId'> & { readonly conversationRef?: string | undefined };

/** How long reasoning is collected for one event. */
const thinkingMs = 100;

interface WatchedThinking {
  readonly sink: NonNullable<TurnSink['thinking']>;
  flush(): void;
}

/** Adds the reasoning alone to a sink. */
function withThinking(sink: TurnSink | undefined, thinking: WatchedThinking): TurnSink {
  return {
    thinking: thinking.sink,
    text(fragment) {
      thinking.flush();
      sink?.text(fragment);
    },
    flush: () => sink?.flush() ?? true,
    drained: () => sink?.drained() ?? Promise.resolve(),
    ...((sink === undefined || sink.onlyWatched === true) && { onlyWatched: true }),
  };
}

/** Emits the events of turns. */
export function createAnnouncer({ bus, clock }: { readonly bus: EventBus; readonly clock: Clock }) {
  function received(about: About, owner: string, text: string, senderId: string, timestamp: number): void {
    if (!bus.wants('message:received')) return;
    bus.emit('message:received', { ...about, message: { id: newId('ms'), text, senderId, timestamp }, timestamp }, owner);
  }

  /**
   * Adds `message:streaming` and `message:thinking` to a sink, or creates one, while there are listeners: one event per upstream read,
   * never per token.
   */
  function streaming(sink: TurnSink | undefined, about: About, owner: string): TurnSink | undefined {
    const thinking = bus.wants('message:thinking') ? watchedThinking(sink?.thinking, about, owner) : undefined;
    if (!bus.wants('message:streaming')) return thinking === undefined ? sink : withThinking(sink, thinking);
    let fragments = toFragment('');
    const reasoning = thinking?.sink ?? sink?.thinking;
    return {
      ...(reasoning !== undefined && { thinking: reasoning }),
      text(fragment) {
        thinking?.flush();
        fragments = append(fragments, fragment);
        sink?.text(fragment);
      },
      flush() {
        if (fragments !== '') {
          const delta = textOf(fragments);
          fragments = toFragment('');
          bus.emit('message:streaming', { ...about, messageId: `ms_${about.turnId}`, delta, timestamp: clock.now() }, owner);
        }
        return sink?.flush() ?? true;
      },
      drained: () => sink?.drained() ?? Promise.resolve(),
      ...(sink === undefined && { onlyWatched: true }),
    };
  }

  /** Joins reasoning of a short time, because it has no end of a read. The rest is announced before the text that follows. */
  function watchedThinking(sink: TurnSink['thinking'], about: About, owner: string): WatchedThinking {
    let fragments = toFragment('');
    let announcedMs = clock.monotonic();
    const flush = () => {
      if (fragments === '') return;
      const delta = textOf(fragments);
      fragments = toFragment('');
      announcedMs = clock.monotonic();
      bus.emit('message:thinking', { ...about, delta, timestamp: clock.now() }, owner);
    };
    const watched: NonNullable<TurnSink['thinking']> = {
      fragment(fragment) {
        fragments = append(fragments, fragment);
        sink?.fragment(fragment);
        if (clock.monotonic() - announcedMs >= thinkingMs) flush();
      },
      block(block) {
        flush();
        sink?.block(block);
      },
    };
    return { sink: watched, flush };
  }

  function ended(about: About, target: ConversationTarget, result: TurnResult, created: boolean): void {
    const timestamp = clock.now();
    if (created)
      bus.emit(
        'session:created',
        { conversationRef: target.ref, sessionKey: target.sessionKey, agentId: target.agentId, timestamp },
        target.principalId,
      );
    bus.emit(
      'message:sent',
      { ...about, messageId: `ms_${about.turnId}`, content: result.text, finishReason: result.finishReason, timestamp },
      target.principalId,
    );
  }

  function used(calls: readonly CallRecord[], about: UsedBy, owner: string): void {
    if (!bus.wants('observability:token_usage')) return;
    for (const call of calls) {
      const { usage, cost } = call;
      bus.emit(
        'observability:token_usage',
        {
          traceId: about.traceId,
          turnId: about.turnId,
          agentId: about.agentId,
          ...(about.conversationRef !== undefined && { conversationRef: about.conversationRef }),
          provider: call.provider,
          model: call.modelId,
          operation: call.operation,
          tokens: { prompt: usage.input, completion: usage.output, total: usage.input + usage.output },
          cacheReadTokens: usage.cacheRead,
          cacheWriteTokens: usage.cacheWrite,
          cost:
            cost === null
              ? null
              : {
                  input: cost.input / 1e9,
                  output: cost.output / 1e9,
                  cacheRead: cost.cacheRead / 1e9,
                  cacheWrite: cost.cacheWrite / 1e9,
                  total: totalCost(cost) / 1e9,
                },
          savedVsUncached: call.savedNano === null ? null : call.savedNano / 1e9,
          estimated: usage.estimated,
          latencyMs: call.latencyMs,
          ...(call.responseId !== undefined && { responseId: call.responseId }),
          timestamp: call.startedAtMs,
        },
        owner,
      );
    }
  }

  return { received, streaming, used, ended };
}
