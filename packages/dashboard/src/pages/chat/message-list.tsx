import { t } from '../../language.ts';
import { memo, Suspense, useEffect, useMemo, useRef } from 'react';
import type { ChatMessage, Thread } from '../../data/chat-thread.ts';
import { useAgentName } from '../../data/agent-names.ts';
import { useSession } from '../../data/context.ts';
import { count, dateTime, minuteTime, money, percent, plural } from '../../data/format.ts';
import { useStore } from '../../data/store.ts';
import { useAction } from '../../data/use-action.ts';
import type { TurnCost } from '../../data/turn-costs.ts';
import { activityKey, type ToolActivity } from '../../data/tool-activity.ts';
import { makesFiles } from '../../data/made-files.ts';
import { AttachmentList, MadeFiles, MadeFilesOfTurn, SpeakButton } from '../../lazy-pages.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { TraceLink } from '../../ui/object-link.tsx';
import { Badge, Button, Failure } from '../../ui/parts.tsx';
import { AnswerMarks } from './answer-marks.tsx';
import { useFirstDrawn } from './drawn-messages.ts';
import { ToolCalls, WaitingCalls } from './tool-calls.tsx';
import { AnswerText } from './turn-items.tsx';
import { useFollowing } from './use-following.ts';

const reasonLabels: Readonly<Record<string, string>> = {
  max_steps: t('Stopped at the step limit'),
  budget_exceeded: t("Stopped: the agent's budget is used up"),
  circuit_open: t('The agent is paused after repeated failures'),
  provider_degraded: t('The model provider is failing'),
  context_loop: t('Stopped: the agent repeated itself'),
  context_exhausted: t('The conversation is too long for the model'),
  output_starved: t('No output tokens were left for the answer'),
  timeout: t('Timed out'),
  aborted: t('Stopped'),
  background_pending: t('Continues in the background'),
  error: t('Failed'),
};

/** Announcements for screen readers; a failure announces itself as an alert. */
const endLabels: Readonly<Record<ChatMessage['state'], string>> = {
  streaming: '',
  done: t('Answer complete.'),
  stopped: t('Answer stopped.'),
  failed: '',
};

const noCalls: readonly ToolActivity[] = [];

/** Returns the tool calls of an answer: those of its turn or, for a question asked here, of the first turn seen before the next question. */
function callsOf(message: ChatMessage, next: ChatMessage | undefined, turns: ReadonlyMap<string, readonly ToolActivity[]>): readonly ToolActivity[] {
  if (message.role !== 'assistant') return noCalls;
  if (message.turnId !== undefined) return turns.get(message.turnId) ?? noCalls;
  const heardAt = ([first]: readonly ToolActivity[]): number => first?.heardAtMs ?? 0;
  return [...turns.values()].find((calls) => heardAt(calls) >= message.atMs && heardAt(calls) < (next?.atMs ?? Infinity)) ?? noCalls;
}

export function MessageList({
  state,
  onRetry,
  onEdit,
  onBranch,
  onRegenerate,
  onContinue,
  onEarlier,
}: {
  readonly state: Thread;
  readonly onRetry: () => void;
  /** Returns the last question to the message field. */
  readonly onEdit: () => void;
  /** Continues from an earlier question in a branch. */
  readonly onBranch: (question: ChatMessage) => Promise<void>;
  /** Answers the last question again, in a branch; absent before the conversation is stored. */
  readonly onRegenerate: (() => Promise<void>) | undefined;
  /** Lets the agent continue an answer that was stopped. */
  readonly onContinue: () => void;
  readonly onEarlier: () => Promise<void>;
}) {
  const { messages, running, earlier } = state;
  const session = useSession();
  const agentName = useAgentName()(state.agentId);
  const costs = useStore(session.turnCosts);
  const heard = useStore(session.turnIds).get(activityKey(state.agentId, state.sessionKey));
  const activities = useStore(session.toolActivities).get(activityKey(state.agentId, state.sessionKey)) ?? noCalls;
  const waiting = useStore(session.approvals.state).requests.filter(
    ({ agentId, sessionKey }) => agentId === state.agentId && sessionKey === state.sessionKey,
  );
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const { away, toEnd, stay, onScroll } = useFollowing(box, list);
  const { busy: loading, error, run } = useAction();
  const last = messages.at(-1);
  const firstDrawn = useFirstDrawn(messages);
  // A turn keeps its array until an event changes it, so that only its own answer renders again.
  const turns = useMemo(() => Map.groupBy(activities, ({ turnId }) => turnId), [activities]);
  const newest = turns.get(activities.at(-1)?.turnId ?? '') ?? noCalls;
  const shownCalls = new Set(messages.map((message, index) => callsOf(message, messages[index + 1], turns)));
  /** Tool calls of a turn that another client started and that has no answer yet. */
  const unshown = shownCalls.has(newest) ? noCalls : newest;
  const isRunning = unshown.some(({ outcome }) => outcome === undefined);

  const mine = last?.role === 'assistant' && last.state === 'streaming' && last.text === '';
  useEffect(() => {
    // The user who has just asked wants to see the answer.
    if (mine) toEnd();
  }, [mine, toEnd]);

  const loadEarlier = (): void =>
    run(async () => {
      const before = box.current?.scrollHeight ?? 0;
      stay();
      await onEarlier();
      // Keeps the visible messages in place.
      requestAnimationFrame(() => box.current?.scrollBy({ top: box.current.scrollHeight - before }));
    });

  return (
    <div className="messages" ref={box} tabIndex={0} role="region" aria-label={t('Messages')} aria-busy={running} onScroll={onScroll}>
      {earlier > 0 && (
        <div className="earlier">
          <Button small disabled={loading} onClick={loadEarlier}>
            {loading ? t('Loading…') : t('Show earlier messages ({earlier})', { earlier: count(earlier) })}
          </Button>
        </div>
      )}
      {error !== undefined && <Failure error={error} onRetry={loadEarlier} />}
      <ol className="message-list" ref={list}>
        {messages.slice(firstDrawn).map((message, at) => (
          <li key={message.key}>
            <Message
              message={message}
              agentId={state.agentId}
              agentName={agentName}
              sessionKey={state.sessionKey}
              reference={state.ref}
              calls={callsOf(message, messages[firstDrawn + at + 1], turns)}
              turn={message.result?.traceId ?? message.turnId ?? (heard !== undefined && heard.heardAtMs >= message.atMs ? heard.turnId : undefined)}
              cost={message.role === 'assistant' ? costs.get(message.result?.traceId ?? message.turnId ?? '') : undefined}
              onRetry={message === last && !running ? onRetry : undefined}
              onEdit={message === last && !running ? onEdit : undefined}
              onBranch={onBranch}
              onRegenerate={message === last && !running ? onRegenerate : undefined}
              onContinue={message === last && !running ? onContinue : undefined}
            />
          </li>
        ))}
      </ol>
      {isRunning && <ToolCalls calls={unshown} />}
      <WaitingCalls requests={waiting} />
      <p className="visually-hidden" role="status">
        {running ? t('Answer in progress.') : last?.role === 'assistant' ? endLabels[last.state] : ''}
      </p>
      {away && (
        <div className="to-end">
          <Button
            small
            icon="down"
            onClick={() => {
              toEnd();
              box.current?.focus();
            }}
          >
            {t('Scroll to end')}
          </Button>
        </div>
      )}
    </div>
  );
}

const Message = memo(function Message({
  message,
  agentId,
  agentName,
  sessionKey,
  reference,
  calls,
  turn,
  cost,
  onRetry,
  onEdit,
  onBranch,
  onRegenerate,
  onContinue,
}: {
  readonly message: ChatMessage;
  readonly agentId: string;
  /** What the agent is shown as. */
  readonly agentName: string;
  readonly sessionKey: string;
  readonly reference: string | undefined;
  readonly calls: readonly ToolActivity[];
  /** Id of its turn or trace. */
  readonly turn: string | undefined;
  readonly cost: TurnCost | undefined;
  readonly onRetry: (() => void) | undefined;
  readonly onEdit: (() => void) | undefined;
  readonly onBranch: (question: ChatMessage) => Promise<void>;
  readonly onRegenerate: (() => Promise<void>) | undefined;
  readonly onContinue: (() => void) | undefined;
}) {
  const branching = useAction();
  const { role, text, state, atMs, attachments, items, made, error, result } = message;
  const madeIn = calls.find(({ toolName, outcome }) => makesFiles(toolName) && outcome === 'ok')?.turnId;
  const listed = new Set(items.map((item) => (item.kind === 'call' ? item.callId : '')));
  const unlisted = calls.filter(({ callId }) => !listed.has(callId));
  const named = message.turnId !== undefined ? { turnId: message.turnId } : result && { traceId: result.traceId };
  const failure = error ?? (result?.failure === undefined ? undefined : new Error(result.failure.message));
  return (
    <article className={`message ${role}`} aria-label={role === 'user' ? t('You') : agentName}>
      <header>
        <span className="message-author">{role === 'user' ? t('You') : agentName}</span>
        <time dateTime={new Date(atMs).toISOString()} title={dateTime(atMs)}>
          {minuteTime(atMs)}
        </time>
      </header>
      <div className="message-body">
        {attachments.length > 0 && (
          <Suspense fallback={null}>
            <AttachmentList attachments={attachments} />
          </Suspense>
        )}
        <ToolCalls calls={unlisted} />
        {role === 'assistant' ? (
          <AnswerText text={text} items={items} activities={calls} turnId={message.turnId} />
        ) : (
          text !== '' && <Markdown text={text} />
        )}
        {made !== undefined && made.length > 0 && (
          <Suspense fallback={null}>
            <MadeFiles agentId={agentId} paths={made} />
          </Suspense>
        )}
        {made === undefined && state === 'done' && reference !== undefined && madeIn !== undefined && (
          <Suspense fallback={null}>
            <MadeFilesOfTurn agentId={agentId} reference={reference} turnId={madeIn} />
          </Suspense>
        )}
        {state === 'streaming' && <span className={text === '' && items.length === 0 ? 'typing' : 'typing inline'} aria-hidden="true" />}
        {failure !== undefined && (
          <Failure error={failure} title={result?.finishReason === 'budget_exceeded' ? t('Budget exceeded.') : undefined} onRetry={onRetry} />
        )}
      </div>
      {role === 'user' && message.seq !== undefined && onRetry === undefined && (
        <footer>
          <span className="message-actions">
            <Button look="quiet" small icon="branch" disabled={branching.busy} onClick={() => branching.run(() => onBranch(message))}>
              {t('Edit in a branch')}
            </Button>
          </span>
        </footer>
      )}
      {branching.error !== undefined && <Failure error={branching.error} />}
      {role === 'user' && onRetry !== undefined && (
        <footer>
          <span className="hint">{t('No answer.')}</span>
          {turn !== undefined && <TraceLink reference={turn} />}
          <Button look="quiet" small icon="retry" onClick={onRetry}>
            {t('Try again')}
          </Button>
        </footer>
      )}
      {role === 'assistant' && state === 'streaming' && turn !== undefined && (
        <footer>
          <TraceLink reference={turn} className="hint" />
        </footer>
      )}
      {role === 'assistant' && state !== 'streaming' && (
        <footer>
          {state === 'stopped' && <Badge tone="warn">{t('Stopped by you')}</Badge>}
          {result !== undefined && result.finishReason !== 'stop' && failure === undefined && (
            <Badge tone="warn">{reasonLabels[result.finishReason] ?? result.finishReason}</Badge>
          )}
          {cost !== undefined ? (
            <CostOfTurn cost={cost} />
          ) : (
            result !== undefined &&
            result.tokensUsed.total > 0 && (
              <span
                className="hint"
                title={t('{input} in, {output} out', { input: count(result.tokensUsed.input), output: count(result.tokensUsed.output) })}
              >
                {plural(result.tokensUsed.total, 'token')}
              </span>
            )
          )}
          {turn !== undefined && <TraceLink reference={turn} className="hint" />}
          <span className="message-actions">
            {text !== '' && state === 'done' && named !== undefined && (
              <AnswerMarks
                answer={{ ...(reference === undefined ? { agentId, sessionKey } : { conversationRef: reference }), ...named }}
                stored={message.rating}
              />
            )}
            {text !== '' && <CopyButton text={text} label={t('Copy')} />}
            {text !== '' && state === 'done' && (
              <Suspense fallback={null}>
                <SpeakButton agentId={agentId} text={text} />
              </Suspense>
            )}
            {onContinue !== undefined && state === 'stopped' && text !== '' && (
              <Button look="quiet" small icon="play" onClick={onContinue}>
                {t('Continue')}
              </Button>
            )}
            {onRetry !== undefined && failure === undefined && state === 'stopped' && (
              <Button look="quiet" small icon="retry" onClick={onRetry}>
                {t('Try again')}
              </Button>
            )}
            {onRegenerate !== undefined && failure === undefined && state === 'done' && (
              <Button look="quiet" small icon="retry" disabled={branching.busy} onClick={() => branching.run(onRegenerate)}>
                {t('Regenerate')}
              </Button>
            )}
            {onEdit !== undefined && state !== 'done' && (
              <Button look="quiet" small icon="edit" onClick={onEdit}>
                {t('Edit question')}
              </Button>
            )}
          </span>
        </footer>
      )}
    </article>
  );
});

/** Model, tokens, cost and cache hits of one turn. */
function CostOfTurn({ cost: { costUsd, inputTokens, outputTokens, cacheReadTokens, calls, model } }: { readonly cost: TurnCost }) {
  const facts = [
    model?.slice(model.indexOf('/') + 1),
    plural(inputTokens + outputTokens, 'token'),
    costUsd === null ? t('price unknown') : money(costUsd),
    cacheReadTokens > 0 ? t('{cacheReadTokens} from the cache', { cacheReadTokens: percent(cacheReadTokens / inputTokens) }) : undefined,
  ].filter((part) => part !== undefined);
  const more = t('{inputTokens} in, {cacheReadTokens} of them from the cache, {outputTokens} out, in {calls}{model}', {
    inputTokens: count(inputTokens),
    cacheReadTokens: count(cacheReadTokens),
    outputTokens: count(outputTokens),
    calls: plural(calls, 'model call'),
    model: model === undefined ? '' : ` ${t('of {model}', { model })}`,
  });
  return (
    <span className="hint" title={more}>
      {facts.join(' · ')}
    </span>
  );
}
