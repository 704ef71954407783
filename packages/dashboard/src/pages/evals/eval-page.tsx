import { t, tx } from '../../language.ts';
import type { EvalResult, EvalRun, Result } from '@gatehouse/contract';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, dateTime, money, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { outcomeTones, stateLabels, stateTones, variantName } from './labels.ts';

const pageCases = 25;
const reloadMs = 2_000;

/** The report of one evaluation: a row for each case, a column for each variant. */
export function EvalPage({ evalId }: { readonly evalId: string }) {
  const { client } = useSession();
  const [offset, setOffset] = useState(0);
  const found = useLoad(['eval.get', evalId, offset], (signal) => client.call('eval.get', { evalId, offset, limit: pageCases }, { signal }), {
    keepsPrevious: () => true,
  });
  const stopping = useAction();
  const { data, reload } = found;
  const isRunning = data?.run.state === 'running';
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = setInterval(reload, reloadMs);
    return () => clearInterval(timer);
  }, [isRunning, reload]);
  const stop = (): void =>
    stopping.run(async () => {
      await client.call('eval.stop', { evalId });
      reload();
    });
  return (
    <Page
      title={data?.run.name ?? t('Evaluation')}
      lead={<PageLink to="/evals">{t('All evaluations')}</PageLink>}
      actions={
        isRunning && (
          <Button icon="stop" onClick={stop} disabled={stopping.busy}>
            {t('Stop')}
          </Button>
        )
      }
    >
      {stopping.error !== undefined && <Failure error={stopping.error} onRetry={stop} />}
      {found.error !== undefined && <Failure error={found.error} onRetry={reload} />}
      {data === undefined && found.loading && <Skeleton lines={8} />}
      {data !== undefined && (
        <>
          <Summary run={data.run} />
          <Cases run={data.run} cases={data.cases} />
          {data.total > pageCases && (
            <div className="pages">
              <Button small disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - pageCases))}>
                {t('Earlier')}
              </Button>
              <span className="hint">
                {tx('{offset} to {offset2} of {total}', {
                  offset: count(offset + 1),
                  offset2: count(offset + data.cases.length),
                  total: count(data.total),
                })}
              </span>
              <Button small disabled={!data.hasMore} onClick={() => setOffset(offset + pageCases)}>
                {t('Later')}
              </Button>
            </div>
          )}
        </>
      )}
    </Page>
  );
}

function Summary({ run }: { readonly run: EvalRun }) {
  return (
    <p>
      <Badge tone={stateTones[run.state]}>{stateLabels[run.state]}</Badge> {run.reason !== undefined && <span>{run.reason}. </span>}
      <span className="hint">
        {plural(run.cases, 'case')}, {money(run.costUsd)}
        {run.budgetUsd !== null && ` ${t('of {budgetUsd}', { budgetUsd: money(run.budgetUsd) })}`}
        {tx(', started {createdAt} by {by}', { createdAt: dateTime(run.createdAt), by: run.by })}
      </span>
    </p>
  );
}

function Cases({ run, cases }: { readonly run: EvalRun; readonly cases: Result<'eval.get'>['cases'] }) {
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Results, table')}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t('Case')}</th>
            {run.variants.map((variant, at) => (
              <th key={at} scope="col">
                {variantName(variant)}
                <br />
                <span className="hint">
                  {tx('{passed} of {cases} passed, {costUsd}', {
                    passed: count(variant.passed),
                    cases: count(run.cases),
                    costUsd: money(variant.costUsd),
                  })}
                  {variant.avgLatencyMs !== null && t(', {avgLatency} ms on average', { avgLatency: count(variant.avgLatencyMs) })}
                </span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {cases.map(({ number, case: one, results }) => (
            <tr key={number}>
              <th scope="row" dir="auto">
                {one.name}
              </th>
              {run.variants.map((_, at) => (
                <td key={at}>
                  <Answer result={results.find(({ variant }) => variant === at)} input={one.input} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Answer({ result, input }: { readonly result: EvalResult | undefined; readonly input: string }) {
  if (result === undefined) return <span className="hint">{t('not asked')}</span>;
  const { outcome, checks, error, answer, traceId, costUsd, latencyMs, model } = result;
  return (
    <>
      <Badge tone={outcomeTones[outcome]}>{outcome}</Badge>{' '}
      <span className="hint">
        {tx('{costUsd}, {latency} ms', { costUsd: costUsd === null ? t('price unknown') : money(costUsd), latency: count(latencyMs) })}
      </span>
      {error !== undefined && <p>{error.text}</p>}
      <ul className="plain">
        {checks
          .filter(({ passed }) => passed !== true)
          .map(({ check, expected, passed, detail }, at) => (
            <li key={at}>
              {check} {expected}
              {passed === null && ` ${t('(could not be decided)')}`}
              {detail !== undefined && `: ${detail}`}
            </li>
          ))}
      </ul>
      <details>
        <summary>{t('Question and answer')}</summary>
        <p dir="auto">{input}</p>
        <p dir="auto">{answer === '' ? t('No answer') : answer}</p>
        {model !== null && <p className="hint">{model}</p>}
      </details>
      {traceId !== null && <PageLink to={`/traces/${traceId}`}>{t('Trace')}</PageLink>}
    </>
  );
}
