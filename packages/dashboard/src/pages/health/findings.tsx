import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, money, percent, plural, shortCount } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Failure, Skeleton } from '../../ui/parts.tsx';

const windows = [
  { hours: 1, text: t('1 hour') },
  { hours: 24, text: t('24 hours') },
  { hours: 168, text: t('7 days') },
] as const;

/** How the sessions of a window went, with findings and what to do about each. */
export function Findings() {
  const { client } = useSession();
  const [hours, setHours] = useState<number>(24);
  const { data, error, loading, reload } = useLoad(
    ['obs.system.health', hours],
    (signal) => client.call('obs.system.health', { sinceHours: hours }, { signal }),
    { changedBy: ['message:sent', 'provider'], settleMs: 3_000, keepsPrevious: () => true },
  );
  return (
    <section className="panel" aria-label={t('Findings')}>
      <div className="panel-head">
        <h2>{t('Findings')}</h2>
        <span className="grow" />
        <fieldset className="chips">
          <legend className="visually-hidden">{t('Window')}</legend>
          {windows.map((one) => (
            <button key={one.hours} type="button" className="chip" aria-pressed={one.hours === hours} onClick={() => setHours(one.hours)}>
              {one.text}
            </button>
          ))}
        </fieldset>
      </div>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && loading && <Skeleton lines={3} />}
      {data !== undefined && (
        <>
          <p className="facts-line">
            <span>{plural(data.sessions.total, 'session')}</span>
            {data.sessions.degraded > 0 && (
              <span>
                {t('{degraded} degraded ({degradedRate})', {
                  degraded: count(data.sessions.degraded),
                  degradedRate: percent(data.sessions.degradedRate),
                })}
              </span>
            )}
            <span>{plural(data.activity.turnTotal, 'turn')}</span>
            <span>{t('{tokenTotal} tokens', { tokenTotal: shortCount(data.activity.tokenTotal) })}</span>
            {data.cost.costUsd !== null && <span>{money(data.cost.costUsd)}</span>}
            {data.topErrorKinds.map(({ kind, count: times }) => (
              <span key={kind} className="mono">{`${kind} × ${count(times)}`}</span>
            ))}
          </p>
          {data.likelyRootCause !== null && (
            <div className="notice warn" role="note" aria-label={t('Likely root cause')}>
              <div>
                <p>
                  <strong>{data.likelyRootCause.detail}</strong>
                </p>
                {data.likelyRootCause.suggestedNextSteps.map((step) => (
                  <p key={step} className="mono">
                    {step}
                  </p>
                ))}
              </div>
            </div>
          )}
          {data.findings.length === 0 && data.likelyRootCause === null ? (
            <p className="hint">{t('No findings in this window.')}</p>
          ) : (
            <ul className="rows plain" aria-label={t('Findings')}>
              {data.findings
                .filter(({ code }) => code !== data.likelyRootCause?.code)
                .map(({ code, detail, hint, count: times }) => (
                  <li key={code} className="row">
                    <div className="row-main">
                      <span className="row-title">{detail}</span>
                      <p className="snippet">{hint}</p>
                    </div>
                    <div className="row-facts">
                      <span className="mono">{code}</span>
                      <Badge tone="warn">{count(times)}</Badge>
                    </div>
                  </li>
                ))}
            </ul>
          )}
          <p className="hint">
            <PageLink to="/traces">{t('Search the traces')}</PageLink>
          </p>
        </>
      )}
    </section>
  );
}
