import { t } from '../language.ts';
import type { WorkWaiting } from '@gatehouse/contract';
import { dateTime, plural } from '../data/format.ts';
import { PageLink } from './link.tsx';
import { Badge } from './parts.tsx';
import { NextTry } from './when.tsx';

const waitLabels = {
  provider: t('waiting for the model provider'),
  approval: t('waiting for approval'),
  agent: t('waiting for the agent'),
  conversation: t('waiting for an earlier run'),
} as const;

/** Shows what a run waits for; a pending approval links to its page. */
export function Waiting({ waiting }: { readonly waiting: WorkWaiting | undefined }) {
  if (waiting === undefined) return null;
  const { kind, approvalId, untilMs, cause } = waiting;
  const badge = <Badge tone="warn">{waitLabels[kind]}</Badge>;
  return (
    <span title={t('Until {until}{cause}', { until: dateTime(untilMs), cause: cause === undefined ? '' : `: ${cause}` })}>
      {approvalId === undefined ? badge : <PageLink to={`/waiting/${approvalId}`}>{badge}</PageLink>}
    </span>
  );
}

/** Says why a run waits, and when it is tried again; shows nothing when both are unknown. */
export function WaitingReason({ waiting }: { readonly waiting: WorkWaiting | undefined }) {
  if (waiting === undefined || (waiting.cause === undefined && waiting.retryAtMs === undefined)) return null;
  const { cause, retryAtMs } = waiting;
  return (
    <p>
      {cause !== undefined && <span dir="auto">{cause}</span>} {retryAtMs !== undefined && <NextTry atMs={retryAtMs} />}
    </p>
  );
}

/** Shows how many calls of a run were not approved. */
export function EffectsRefused({ count }: { readonly count: number | undefined }) {
  return count === undefined ? null : <Badge tone="warn">{t('{effects} refused', { effects: plural(count, 'effect') })}</Badge>;
}
