import { t, tx } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import type { ToolActivity } from '../../data/tool-activity.ts';
import { type GivenMessage, partsOf, type Reasoning, type TurnCall, type TurnItem } from '../../data/turn-items.ts';
import { useLoad } from '../../data/use-load.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { Elapsed, spanText } from '../../ui/elapsed.tsx';
import { Icon } from '../../ui/icon.tsx';
import { revealedJson, revealedText } from '../../ui/revealed.ts';
import { CallLine, CallList, isOpenCall } from './tool-calls.tsx';

/** Longer results are cut: the whole one is in the conversation and in its trace. */
const maxShown = 20_000;
const previewLines = 6;
const maxBrief = 120;

/** The text of an answer, with reasoning and tool calls between its parts. */
export function AnswerText({
  text,
  items,
  activities,
  turnId,
}: {
  readonly text: string;
  readonly items: readonly TurnItem[];
  readonly activities: readonly ToolActivity[];
  readonly turnId: string | undefined;
}) {
  return partsOf(text, items).map((part, at) => (
    <div className="answer-part" key={at}>
      {groupsOf(part.items).map((group, key) =>
        group.kind === 'reasoning' ? (
          <ReasoningView key={key} reasoning={group.reasoning} />
        ) : group.kind === 'given' ? (
          <div key={key} className="given-message" role="note" aria-label={t('You added')}>
            <Markdown text={group.text} />
          </div>
        ) : (
          <CallList key={key} running={group.calls.filter((call) => isOpenCall(whole(call, activities))).length} count={group.calls.length}>
            {group.calls.map((call) => (
              <CallView key={call.callId} call={whole(call, activities)} turnId={turnId} />
            ))}
          </CallList>
        ),
      )}
      {part.text.trim() !== '' && <Markdown text={part.text} />}
    </div>
  ));
}

type Group =
  | { readonly kind: 'reasoning'; readonly reasoning: Reasoning }
  | { readonly kind: 'calls'; readonly calls: TurnCall[] }
  | Pick<GivenMessage, 'kind' | 'text'>;

/** Joins consecutive calls. */
function groupsOf(items: readonly TurnItem[]): readonly Group[] {
  const groups: Group[] = [];
  for (const item of items) {
    const last = groups.at(-1);
    if (item.kind === 'reasoning') groups.push({ kind: 'reasoning', reasoning: item });
    else if (item.kind === 'given') groups.push(item);
    else if (last?.kind === 'calls') last.calls.push(item);
    else groups.push({ kind: 'calls', calls: [item] });
  }
  return groups;
}

/** Adds to a stored call what this tab has heard of it. */
function whole(call: TurnCall, activities: readonly ToolActivity[]): TurnCall {
  if (call.durationMs !== undefined) return call;
  const heard = activities.find(({ callId }) => callId === call.callId);
  return heard === undefined
    ? call
    : { ...call, description: call.description ?? heard.description, outcome: heard.outcome ?? call.outcome, durationMs: heard.durationMs };
}

function ReasoningView({ reasoning: { text, startedAtMs, endedAtMs } }: { readonly reasoning: Reasoning }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div className="reasoning">
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="hint">
          {endedAtMs === undefined ? (
            <>{tx('Thinking {time}', { time: <Elapsed fromMs={startedAtMs} toMs={undefined} /> })}</>
          ) : (
            t('Thought for {endedAt}', { endedAt: spanText(endedAtMs - startedAtMs) })
          )}
        </summary>
        {isOpen && <Markdown text={text} quiet />}
      </details>
      {endedAtMs === undefined && !isOpen && (
        <p className="reasoning-tail" aria-hidden="true" dir="auto">
          {text.slice(-240).trimStart()}
        </p>
      )}
    </div>
  );
}

function CallView({ call, turnId }: { readonly call: TurnCall; readonly turnId: string | undefined }) {
  const [isOpen, setOpen] = useState(false);
  const lines = isOpenCall(call) && call.output !== '' ? call.output.trimEnd().split('\n').slice(-previewLines).join('\n') : '';
  return (
    <li>
      <details className="tool-call-details" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary className="tool-call">
          <CallLine call={{ ...call, description: call.description ?? briefOf(call.arguments) }} />
          <span className="tool-chevron">
            <Icon name="chevron" />
          </span>
        </summary>
        {isOpen && <CallFacts call={call} turnId={turnId} />}
      </details>
      {lines !== '' && !isOpen && (
        <pre className="tool-output" aria-hidden="true">
          {revealedText(lines)}
        </pre>
      )}
    </li>
  );
}

function CallFacts({ call, turnId }: { readonly call: TurnCall; readonly turnId: string | undefined }) {
  const { toolName, output, result } = call;
  const shown = result ?? (output === '' ? undefined : output);
  return (
    <div className="tool-facts">
      {call.durationMs === undefined && call.startedAtMs === undefined && turnId !== undefined && <TracedCall call={call} turnId={turnId} />}
      {call.arguments !== undefined && (
        <>
          <p className="hint">{t('Arguments')}</p>
          <pre className="raw-text" tabIndex={0} role="region" aria-label={t('Arguments of {toolName}', { toolName })}>
            {argumentsText(call.arguments)}
          </pre>
        </>
      )}
      {shown === undefined ? (
        <p className="hint">{t('No result yet.')}</p>
      ) : (
        <>
          <p className="hint">{result === undefined ? t('Output') : t('Result')}</p>
          <pre className="raw-text" tabIndex={0} role="region" aria-label={t('Result of {toolName}', { toolName })}>
            {shown.trim() === '' ? '(empty)' : revealedText(shown.slice(0, maxShown))}
            {shown.length > maxShown && '\n…'}
          </pre>
        </>
      )}
    </div>
  );
}

/** How a stored call ended, from the trace of its turn. */
function TracedCall({ call: { callId }, turnId }: { readonly call: TurnCall; readonly turnId: string }) {
  const { client } = useSession();
  const { data } = useLoad(['obs.trace.get', turnId], (signal) => client.call('obs.trace.get', { ref: turnId }, { signal }));
  const step = data?.records.flatMap(({ steps }) => steps).find(({ kind, facts }) => kind === 'tool' && facts?.['callId'] === callId);
  if (step?.ms === undefined) return null;
  return (
    <p className="hint">
      <Icon name="clock" />{' '}
      {tx('{outcome} in {ms}', {
        outcome: step.outcome === 'ok' ? t('Done') : step.outcome === 'denied' ? t('Denied') : step.outcome === 'error' ? t('Failed') : t('Ended'),
        ms: spanText(step.ms),
      })}
    </p>
  );
}

/** A line about a stored call: its texts and numbers. */
function briefOf(json: string | undefined): string | undefined {
  if (json === undefined) return undefined;
  try {
    const values: unknown[] = Object.values(JSON.parse(json) ?? {}).flat();
    const text = values.filter((value) => typeof value === 'string' || typeof value === 'number').join(' ');
    return text === '' ? undefined : revealedText(text.replaceAll(/\s+/g, ' ').slice(0, maxBrief));
  } catch {
    return undefined;
  }
}

function argumentsText(json: string): string {
  try {
    return revealedJson(JSON.parse(json));
  } catch {
    // A model may write anything.
    return revealedText(json);
  }
}
