import type { WorkWaiting } from '@gatehouse/contract';
import { dateTime, plural } from '../data/format.ts';
import { PageLink } from './link.tsx';
import { Badge } from './parts.tsx';

const words = {
  provider: 'waits for its model provider',
  approval: 'waits for an approval',
  agent: 'waits for its agent',
  conversation: 'waits for an earlier run',
} as const;

/** What a run waits for; an approval leads to where it is given. */
export function Waiting({ waiting }: { readonly waiting: WorkWaiting | undefined }) {
  if (waiting === undefined) return null;
  const { kind, approvalId, untilMs, cause } = waiting;
  const badge = <Badge tone="warn">{words[kind]}</Badge>;
  return (
    <span title={`Until ${dateTime(untilMs)}${cause === undefined ? '' : `: ${cause}`}`}>
      {approvalId === undefined ? badge : <PageLink to={`/approvals/${approvalId}`}>{badge}</PageLink>}
    </span>
  );
}

/** How many calls of a run were not approved. */
export function EffectsRefused({ count }: { readonly count: number | undefined }) {
  return count === undefined ? null : <Badge tone="warn">{`${plural(count, 'effect')} refused`}</Badge>;
}
