import { t } from '../../language.ts';
import type { StoredMessage, TraceRecord, TraceStep } from '@gatehouse/contract';
import type { ReactNode } from 'react';
import { useSession } from '../../data/context.ts';
import { bytes, count, dateTime } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { useNow } from '../../data/use-now.ts';
import { CopyButton } from '../../ui/copy-button.tsx';
import { PageLink } from '../../ui/link.tsx';
import { ObjectLink } from '../../ui/object-link.tsx';
import { Badge } from '../../ui/parts.tsx';
import { costText, kindOf, nameOf, outcomeLabels, outcomeOf, outcomeTones, timeText, tokensText } from './labels.ts';
import { isRunning, type TraceNode } from './trace-rows.ts';
import { loadTurn, textsOf } from './turn-texts.ts';

type TracedError = NonNullable<TraceStep['error']>;
type TracedText = NonNullable<TraceStep['input']>;

/** Longest text that is drawn; the conversation has the whole. */
const maxShown = 20_000;

/** Shows all of the selected step, or of a record. */
export function TracePanel({ node, roots }: { readonly node: TraceNode; readonly roots: readonly TraceNode[] }) {
  const { record, step } = node;
  const outcome = outcomeOf(node);
  const texts = useTurnTexts(node, roots);
  const attempts = node.children.filter((one) => one.step?.kind === 'attempt');
  return (
    <section className="panel trace-panel" aria-label={t('Selected step')}>
      <div className="panel-head">
        <h2 dir="auto">{nameOf(node)}</h2>
        <Badge>{kindOf(node)}</Badge>
        <Badge tone={outcomeTones[outcome]}>{outcomeLabels[outcome]}</Badge>
      </div>
      <ErrorText error={step === undefined ? record.error : step.error} />
      <dl className="facts">
        <Fact name={t('Started')}>{dateTime(node.startMs)}</Fact>
        <Fact name={t('Duration')}>{isRunning(node) ? t('still running') : timeText((node.endMs ?? node.startMs) - node.startMs)}</Fact>
        <Spent node={node} />
        {attempts.length > 1 && <Fact name={t('Attempts')}>{count(attempts.length)}</Fact>}
        {step === undefined ? <RecordFacts record={record} /> : <Facts facts={step.facts} />}
      </dl>
      <Attempts attempts={attempts} />
      <Shown title={step?.kind === 'tool' ? t('Arguments') : t('Input')} text={texts.input} traced={step?.input} />
      <Shown title={step?.kind === 'tool' ? t('Result') : t('Output')} text={texts.output} traced={step?.output} />
    </section>
  );
}

function useTurnTexts(node: TraceNode, roots: readonly TraceNode[]) {
  const { client } = useSession();
  const { record } = node;
  // Stored with the end of the turn. A caller that may not read the conversation sees the trace without its texts.
  const { data } = useLoad<readonly StoredMessage[]>(['session.history', 'trace', record.conversationRef, record.id, record.endedAtMs], (signal) =>
    loadTurn(client, record, signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
      return [];
    }),
  );
  return textsOf(node, roots, data ?? []);
}

/** The cause of a failure, the provider's own sentence where there is one, and when it is tried again. */
export function ErrorText({ error }: { readonly error: TracedError | null | undefined }) {
  if (error === null || error === undefined) return null;
  const { kind, status, text, retryAtMs } = error;
  return (
    <div className="notice bad" role="note" aria-label={t('Error')}>
      <div>
        <p>
          <strong className="mono">{kind}</strong>
          {status !== undefined && ` ${t('(status {status})', { status })}`}
        </p>
        {text !== undefined && <p dir="auto">{text}</p>}
        {retryAtMs !== undefined && <RetryTime atMs={retryAtMs} />}
      </div>
    </div>
  );
}

function RetryTime({ atMs }: { readonly atMs: number }) {
  const inMs = atMs - useNow();
  return (
    <p className="hint">
      {inMs > 0
        ? t('Next attempt in {in}, at {at}.', { in: timeText(inMs), at: dateTime(atMs) })
        : t('Next attempt was due {at}.', { at: dateTime(atMs) })}
    </p>
  );
}

function Spent({ node: { step, record } }: { readonly node: TraceNode }) {
  const tokens = step === undefined ? (record.modelCalls > 0 ? record.tokens : undefined) : step.tokens;
  const cost = step === undefined ? (record.modelCalls > 0 ? record.costNano : undefined) : step.costNano;
  return (
    <>
      {tokens !== undefined && <Fact name={t('Tokens')}>{tokensText(tokens)}</Fact>}
      {cost !== undefined && <Fact name={t('Cost')}>{costText(cost)}</Fact>}
    </>
  );
}

function RecordFacts({ record }: { readonly record: TraceRecord }) {
  const { model, modelCalls, toolCalls, toolErrors, agentId, conversationRef, origin, endReason, droppedSteps } = record;
  return (
    <>
      {model !== null && <Fact name={t('Model')}>{model}</Fact>}
      <Fact name={t('Model calls')}>{count(modelCalls)}</Fact>
      <Fact name={t('Tool calls')}>
        {toolErrors === 0 ? count(toolCalls) : t('{toolCalls}, {toolErrors} failed', { toolCalls: count(toolCalls), toolErrors: count(toolErrors) })}
      </Fact>
      {endReason !== null && <Fact name={t('End reason')}>{endReason}</Fact>}
      {origin !== undefined && <Fact name={t('Started by')}>{origin}</Fact>}
      {agentId !== undefined && (
        <Fact name={t('Agent')}>
          <PageLink to={`/agents/${agentId}`}>{agentId}</PageLink>
        </Fact>
      )}
      {conversationRef !== undefined && (
        <Fact name={t('Conversation')}>
          <ObjectLink id={conversationRef} />
        </Fact>
      )}
      {Object.entries(record.refs).map(([name, id]) => (
        <Fact key={name} name={labelOf(name)}>
          <ObjectLink id={id} />
        </Fact>
      ))}
      <Facts facts={record.facts} />
      {droppedSteps > 0 && <Fact name={t('Steps not kept')}>{count(droppedSteps)}</Fact>}
      <Fact name={t('Trace record')}>
        <span className="mono">{record.id}</span>
      </Fact>
    </>
  );
}

function Facts({ facts }: { readonly facts: TraceStep['facts'] }) {
  return Object.entries(facts ?? {}).map(([name, value]) => (
    <Fact key={name} name={labelOf(name)}>
      {typeof value === 'string' ? <ObjectLink id={value} /> : typeof value === 'number' ? count(value) : value ? t('yes') : t('no')}
    </Fact>
  ));
}

/** "runId" as "Run id". */
function labelOf(name: string): string {
  return name.replaceAll(/[A-Z_]/g, (letter) => (letter === '_' ? ' ' : ` ${letter.toLowerCase()}`)).replace(/^./, (letter) => letter.toUpperCase());
}

function Attempts({ attempts }: { readonly attempts: readonly TraceNode[] }) {
  if (attempts.length < 2 && attempts[0]?.step?.error === undefined) return null;
  return (
    <section aria-label={t('Attempts')}>
      <h3>{t('Attempts')}</h3>
      <ol className="trace-attempts">
        {attempts.map((one) => {
          const outcome = outcomeOf(one);
          return (
            <li key={one.id}>
              <span className="facts-line">
                <Badge tone={outcomeTones[outcome]}>{outcomeLabels[outcome]}</Badge>
                <span className="mono">{nameOf(one)}</span>
                <span>{timeText((one.endMs ?? one.startMs) - one.startMs)}</span>
              </span>
              {one.step?.error?.text !== undefined && <p dir="auto">{one.step.error.text}</p>}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

/** A text of the conversation where the reader may see it, otherwise what the trace has kept. */
function Shown({ title, text, traced }: { readonly title: string; readonly text: string | undefined; readonly traced: TracedText | undefined }) {
  const whole = text ?? traced?.preview;
  if (whole === undefined && traced === undefined) return null;
  const shown = pretty(whole ?? '');
  return (
    <section aria-label={title} className="trace-text">
      <div className="panel-head">
        <h3>{title}</h3>
        <span className="hint">
          {[traced !== undefined && bytes(traced.bytes), text === undefined && whole !== undefined && 'preview'].filter(Boolean).join(', ')}
        </span>
        <span className="grow" />
        {whole !== undefined && whole !== '' && <CopyButton text={whole} label={t('Copy {title}', { title: title.toLowerCase() })} />}
      </div>
      {whole === undefined ? (
        <p className="hint">{t('The text is not kept: see the setting observability.content.')}</p>
      ) : (
        <pre className="raw-text" tabIndex={0} aria-label={title} dir="auto">
          {shown === '' ? t('Empty.') : shown.slice(0, maxShown)}
          {shown.length > maxShown && `\n… ${count(shown.length - maxShown)} more characters`}
        </pre>
      )}
    </section>
  );
}

function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
