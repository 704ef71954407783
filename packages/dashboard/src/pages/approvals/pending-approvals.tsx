import { t } from '../../language.ts';
import { useId, useState } from 'react';
import type { ApprovalRequest, Decision } from '../../data/approvals.ts';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useStore } from '../../data/store.ts';
import { useConversationTitle } from '../../data/conversation-title.ts';
import { useAction } from '../../data/use-action.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { Badge, Button, Failure, Notice } from '../../ui/parts.tsx';
import { PageLink } from '../../ui/link.tsx';
import { revealedText } from '../../ui/revealed.ts';
import { ApprovalCard } from './approval-card.tsx';

interface AskedForAll {
  readonly requests: readonly ApprovalRequest[];
  readonly approved: boolean;
}

/** Maximum number of calls in one batch. */
const batchLength = 50;

/** Pending calls by conversation, and how the last ones ended; `wanted` is the id of one to scroll to. */
export function PendingApprovals({ wanted }: { readonly wanted: string | undefined }) {
  const { client, approvals } = useSession();
  const { requests, total, decided, loading, error } = useStore(approvals.state);
  const [asked, setAsked] = useState<AskedForAll>();
  const [outcome, setOutcome] = useState<string>();
  const clearing = useAction();
  const heading = useId();

  /** Decides on the requests that were shown, not on later ones. */
  const decideAll = async ({ requests: all, approved }: AskedForAll): Promise<void> => {
    let decidedCount = 0;
    for (let start = 0; start < all.length; start += batchLength) {
      const outcomes = await client.batch(
        all
          .slice(start, start + batchLength)
          .map(({ requestId }) => ({ method: 'admin.approval.resolve', params: { requestId, approved } }) as const),
      );
      decidedCount += outcomes.filter(({ ok }) => ok).length;
    }
    const missed = all.length - decidedCount;
    setOutcome(
      `${approved ? t('Allowed') : t('Denied')} ${plural(decidedCount, 'call')}${missed > 0 ? t('; {calls} already decided', { calls: plural(missed, 'call') }) : ''}.`,
    );
    approvals.reload();
  };
  const forgetDenials = async (): Promise<void> => {
    await client.call('admin.approval.clearDenialCache');
    setOutcome(t('Denials cleared. The same calls ask for approval again.'));
  };
  const groups = Map.groupBy(requests, ({ conversationRef }) => conversationRef);

  if (requests.length === 0 && decided.length === 0 && error === undefined && wanted === undefined) return null;
  return (
    <section className="approvals" aria-labelledby={heading}>
      <div className="panel-head">
        <h2 id={heading}>{t('Approvals')}</h2>
        <span className="hint">{t('Exactly what you allow runs.')}</span>
        <span className="grow" />
        <Button small look="quiet" disabled={clearing.busy} onClick={() => clearing.run(forgetDenials)}>
          {t('Clear denials')}
        </Button>
      </div>
      {clearing.error !== undefined && <Failure error={clearing.error} />}
      {error !== undefined && <Failure error={error} onRetry={approvals.reload} />}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {wanted !== undefined && !loading && error === undefined && !requests.some(({ requestId }) => requestId === wanted) && (
        <Notice>{t('The requested call is no longer pending.')}</Notice>
      )}
      {[...groups.values()].map((group) => (
        <ApprovalGroup
          key={group[0]?.conversationRef}
          requests={group}
          wanted={wanted}
          onDecideAll={(approved) => setAsked({ requests: group, approved })}
        />
      ))}
      {total > requests.length && (
        <p className="hint">{t('Showing the oldest {requests} of {calls}.', { requests: requests.length, calls: plural(total, 'call') })}</p>
      )}
      {decided.length > 0 && (
        <section className="approval-group" aria-label={t('Decided since this tab was opened')}>
          <h3>{t('Decided')}</h3>
          <ul className="rows">
            {decided.map((one) => (
              <DecisionRow key={one.request.requestId} decision={one} />
            ))}
          </ul>
        </section>
      )}
      {asked !== undefined && (
        <Confirm
          title={`${asked.approved ? t('Allow') : t('Deny')} ${plural(asked.requests.length, 'call')}?`}
          action={asked.approved ? t('Allow all once') : t('Deny all')}
          run={() => decideAll(asked)}
          onClose={() => setAsked(undefined)}
        >
          <ul>
            {asked.requests.map(({ requestId, toolName, action }) => (
              <li key={requestId}>
                <span className="mono">{revealedText(toolName)}</span> {action !== toolName && revealedText(action)}
              </li>
            ))}
          </ul>
        </Confirm>
      )}
    </section>
  );
}

/** The pending calls of one conversation. */
function ApprovalGroup({
  requests,
  wanted,
  onDecideAll,
}: {
  readonly requests: readonly ApprovalRequest[];
  readonly wanted: string | undefined;
  readonly onDecideAll: (approved: boolean) => void;
}) {
  const [first] = requests;
  const title = useConversationTitle(first?.conversationRef);
  if (first === undefined) return null;
  return (
    <section className="approval-group" aria-label={t('Calls of {title}', { title: title ?? first.sessionKey })}>
      <div className="panel-head">
        <h3 dir="auto">
          <PageLink to={`/chat/${first.conversationRef}`}>{revealedText(title ?? first.sessionKey)}</PageLink>
        </h3>
        <span className="hint">{plural(requests.length, 'call')}</span>
        <span className="grow" />
        {requests.length > 1 && (
          <>
            <Button small onClick={() => onDecideAll(false)}>
              {t('Deny all {requests}', { requests: requests.length })}
            </Button>
            <Button small onClick={() => onDecideAll(true)}>
              {t('Allow all {requests}', { requests: requests.length })}
            </Button>
          </>
        )}
      </div>
      {requests.map((request) => (
        <ApprovalCard key={request.requestId} request={request} wanted={request.requestId === wanted} />
      ))}
    </section>
  );
}

function DecisionRow({ decision: { request, approved, approvedBy, reason } }: { readonly decision: Decision }) {
  return (
    <li className="row">
      <div className="row-main">
        <span className="row-title mono">{revealedText(request.toolName)}</span>
        <span className="hint">{revealedText(request.action)}</span>
      </div>
      <div className="row-facts">
        <Badge tone={approved ? 'good' : 'bad'}>{approved ? t('Allowed') : t('Denied')}</Badge>
        <span>{t('by {approvedBy}', { approvedBy: revealedText(approvedBy) })}</span>
        {reason !== undefined && <span>{revealedText(reason)}</span>}
      </div>
    </li>
  );
}
