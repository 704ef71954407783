import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { type FormEvent, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, money, plural, shortCount } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { navigate } from '../../router.ts';
import { AgentFilter } from '../../ui/agent-filter.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { outcomeLabels, outcomeTones, recordNames, timeText } from './labels.ts';

const exampleCondition = 'tool = exec and cost > 0.01';

type Row = Result<'obs.trace.search'>['rows'][number];

const kinds = Object.keys(recordNames) as Row['kind'][];
const outcomes = ['ok', 'degraded', 'failed', 'cancelled', 'waiting', 'skipped'] as const;
const periods = [
  { since: '1h', text: t('1 hour') },
  { since: '24h', text: t('24 hours') },
  { since: '7d', text: t('7 days') },
  { since: '30d', text: t('30 days') },
] as const;
const pageSize = 100;
const maxRows = 1000;

/** Finds traces; a token without the scope admin opens one by an id. */
export function TraceList({ initialWhere }: { readonly initialWhere: string }) {
  const { admin } = useSession();
  return (
    <Page title={t('Traces')} lead={t('What each turn did, step by step: model calls, tools, tokens, cost and errors.')}>
      <OpenById />
      {admin && <Found initialWhere={initialWhere} />}
    </Page>
  );
}

function OpenById() {
  const [id, setId] = useState('');
  const open = (event: FormEvent): void => {
    event.preventDefault();
    if (id.trim() !== '') navigate(`/traces/${encodeURIComponent(id.trim())}`);
  };
  return (
    <form className="toolbar trace-open" onSubmit={open}>
      <input
        type="text"
        aria-label={t('Id')}
        placeholder={t('Id of a turn, a run, a trace or a conversation')}
        spellCheck={false}
        autoComplete="off"
        value={id}
        onChange={(event) => setId(event.target.value)}
      />
      <Button submit icon="search" disabled={id.trim() === ''}>
        {t('Open')}
      </Button>
    </form>
  );
}

function Found({ initialWhere }: { readonly initialWhere: string }) {
  const { client } = useSession();
  const [since, setSince] = useState<string>('24h');
  const [agentId, setAgentId] = useState<string>();
  const [kind, setKind] = useState('');
  const [outcome, setOutcome] = useState('');
  const [condition, setCondition] = useState(initialWhere);
  const [asked, setAsked] = useState(initialWhere);
  const [limit, setLimit] = useState(pageSize);
  const where = [
    agentId !== undefined && `agent = "${agentId}"`,
    kind !== '' && `kind = ${kind}`,
    outcome !== '' && `outcome = ${outcome}`,
    asked !== '' && `(${asked})`,
  ]
    .filter(Boolean)
    .join(' and ');
  const { data, error, loading, reload } = useLoad(
    ['obs.trace.search', since, where, limit],
    (signal) => client.call('obs.trace.search', { since, limit, ...(where !== '' && { where }) }, { signal }),
    { changedBy: ['message:sent'], settleMs: 2_000, keepsPrevious: () => true },
  );
  return (
    <>
      <div className="toolbar">
        <fieldset className="chips">
          <legend className="visually-hidden">{t('Period')}</legend>
          {periods.map((one) => (
            <button key={one.since} type="button" className="chip" aria-pressed={one.since === since} onClick={() => setSince(one.since)}>
              {one.text}
            </button>
          ))}
        </fieldset>
        <AgentFilter value={agentId} onChange={setAgentId} />
        <select aria-label={t('Kind')} value={kind} onChange={(event) => setKind(event.target.value)}>
          <option value="">{t('All kinds')}</option>
          {kinds.map((one) => (
            <option key={one} value={one}>
              {recordNames[one]}
            </option>
          ))}
        </select>
        <select aria-label={t('Outcome')} value={outcome} onChange={(event) => setOutcome(event.target.value)}>
          <option value="">{t('All outcomes')}</option>
          {outcomes.map((one) => (
            <option key={one} value={one}>
              {outcomeLabels[one]}
            </option>
          ))}
        </select>
        <form
          className="trace-condition"
          onSubmit={(event) => {
            event.preventDefault();
            setAsked(condition.trim());
          }}
        >
          <input
            type="text"
            aria-label={t('Condition')}
            placeholder={exampleCondition}
            title={t('A condition on model, tool, error, cost, tokens, duration and more; press Enter. The reference of obs.trace.search lists all.')}
            spellCheck={false}
            value={condition}
            onChange={(event) => setCondition(event.target.value)}
          />
        </form>
        <Button icon="retry" onClick={reload} disabled={loading}>
          {t('Refresh')}
        </Button>
      </div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && loading && <Skeleton lines={6} />}
      {data?.rows.length === 0 && (
        <Empty title={t('No traces')}>
          <p>{t('None of this period matches.')}</p>
        </Empty>
      )}
      {data !== undefined && data.rows.length > 0 && (
        <ul className="rows" aria-label={t('Traces')}>
          {data.rows.map((row) => (
            <TraceRow key={row.id} row={row} />
          ))}
        </ul>
      )}
      {data !== undefined && data.rows.length >= limit && limit < maxRows && (
        <div className="pages">
          <Button small disabled={loading} onClick={() => setLimit(Math.min(maxRows, limit + 2 * pageSize))}>
            {t('Older')}
          </Button>
        </div>
      )}
    </>
  );
}

function TraceRow({ row }: { readonly row: Row }) {
  const { id, ts, kind, outcome, endReason, lastError, agentId, origin, model, durationMs, tokens, costUsd, modelCalls, toolCalls, toolErrors } = row;
  const atMs = Date.parse(ts);
  const used = tokens.in + tokens.out;
  const reason = lastError ?? (endReason === 'stop' ? null : endReason);
  return (
    <li className="row">
      <div className="row-main">
        <PageLink to={`/traces/${encodeURIComponent(id)}`} className="row-title">
          {[recordNames[kind], agentId].filter(Boolean).join(' · ')}
        </PageLink>
        <p className="hint facts-line">
          {origin !== null && <span>{t('started by {origin}', { origin })}</span>}
          {model !== null && <span className="mono">{model}</span>}
          {modelCalls > 0 && <span>{plural(modelCalls, 'model call')}</span>}
          {toolCalls > 0 && <span>{`${plural(toolCalls, 'tool call')}${toolErrors > 0 ? t(', {toolErrors} failed', { toolErrors }) : ''}`}</span>}
          {row.sessionId !== null && <PageLink to={`/conversations/${row.sessionId}`}>{t('Conversation')}</PageLink>}
        </p>
      </div>
      <div className="row-facts">
        {used > 0 && <span>{t('{used} tokens{costUsd}', { used: shortCount(used), costUsd: costUsd === null ? '' : `, ${money(costUsd)}` })}</span>}
        <span>{timeText(durationMs)}</span>
        <time dateTime={ts} title={dateTime(atMs)}>
          {ago(atMs)}
        </time>
        {reason !== null && <span className="mono">{reason}</span>}
        {row.synthetic && <Badge>{t('synthetic')}</Badge>}
        <Badge tone={outcomeTones[outcome]}>{outcomeLabels[outcome]}</Badge>
      </div>
    </li>
  );
}
