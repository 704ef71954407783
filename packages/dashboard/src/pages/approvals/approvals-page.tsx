import { useEffect, useRef, useState } from 'react';
import type { ApprovalRequest, Decision } from '../../data/approvals.ts';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useStore } from '../../data/store.ts';
import { useAction } from '../../data/use-action.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { AdminOnly, Badge, Button, Empty, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { revealedText } from '../../ui/revealed.ts';
import { ApprovalCard } from './approval-card.tsx';

interface AskedForAll {
  readonly requests: readonly ApprovalRequest[];
  readonly approved: boolean;
}

/** Maximum number of calls in one batch. */
const batchLength = 50;

/** Pending approvals: `/approvals/<id>` scrolls to one of them. */
export function ApprovalsPage({ wanted }: { readonly wanted: string | undefined }) {
  const { admin } = useSession();
  return admin ? <Inbox wanted={wanted} /> : <AdminOnly title="Approvals" />;
}

function Inbox({ wanted }: { readonly wanted: string | undefined }) {
  const { client, approvals } = useSession();
  const { requests, total, decided, loading, error } = useStore(approvals.state);
  const [asked, setAsked] = useState<AskedForAll>();
  const [outcome, setOutcome] = useState<string>();
  const clearing = useAction();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // The focused element was removed with the decided call.
    if (document.activeElement === document.body) list.current?.focus();
  }, [requests]);

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
      `${approved ? 'Approved' : 'Denied'} ${plural(decidedCount, 'call')}${missed > 0 ? `; ${plural(missed, 'call')} already decided` : ''}.`,
    );
    approvals.reload();
  };
  const forgetDenials = async (): Promise<void> => {
    await client.call('admin.approval.clearDenialCache');
    setOutcome('Denials cleared. The same calls ask for approval again.');
  };
  const groups = Map.groupBy(requests, ({ conversationRef }) => conversationRef);

  return (
    <Page
      title="Approvals"
      lead="Tool calls that need approval. Exactly what you approve runs."
      actions={<Button onClick={() => clearing.run(forgetDenials)}>Clear denials</Button>}
    >
      {clearing.error !== undefined && <Failure error={clearing.error} />}
      {error !== undefined && <Failure error={error} onRetry={approvals.reload} />}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {loading && <Skeleton lines={4} />}
      <div ref={list} tabIndex={-1} className="approvals" role="region" aria-label="Pending calls">
        <p className="visually-hidden" role="status">
          {loading ? '' : requests.length === 0 ? 'No pending calls.' : `${plural(total, 'pending call')}`}
        </p>
        {!loading && error === undefined && requests.length === 0 && (
          <Empty title="No pending approvals">
            <p>Calls appear here when agents request them.</p>
          </Empty>
        )}
        {wanted !== undefined && !loading && error === undefined && !requests.some(({ requestId }) => requestId === wanted) && (
          <Notice>The requested call is no longer pending.</Notice>
        )}
        {[...groups.values()].map((group) => (
          <ApprovalGroup
            key={group[0]?.conversationRef}
            requests={group}
            wanted={wanted}
            onDecideAll={(approved) => setAsked({ requests: group, approved })}
          />
        ))}
      </div>
      {total > requests.length && <p className="hint">{`Showing the oldest ${requests.length} of ${plural(total, 'call')}.`}</p>}
      {decided.length > 0 && (
        <section className="approval-group" aria-label="Decided since this tab was opened">
          <h2>Decided</h2>
          <ul className="rows">
            {decided.map((one) => (
              <DecisionRow key={one.request.requestId} decision={one} />
            ))}
          </ul>
        </section>
      )}
      {asked !== undefined && (
        <Confirm
          title={`${asked.approved ? 'Approve' : 'Deny'} ${plural(asked.requests.length, 'call')}?`}
          action={asked.approved ? 'Approve all' : 'Deny all'}
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
    </Page>
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
  if (first === undefined) return null;
  return (
    <section className="approval-group" aria-label={`Calls of ${first.sessionKey}`}>
      <div className="panel-head">
        <h2 dir="auto">{revealedText(first.sessionKey)}</h2>
        <span className="hint">{plural(requests.length, 'call')}</span>
        <span className="grow" />
        {requests.length > 1 && (
          <>
            <Button small onClick={() => onDecideAll(false)}>{`Deny all ${requests.length}`}</Button>
            <Button small onClick={() => onDecideAll(true)}>{`Approve all ${requests.length}`}</Button>
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
        <Badge tone={approved ? 'good' : 'bad'}>{approved ? 'Approved' : 'Denied'}</Badge>
        <span>{`by ${revealedText(approvedBy)}`}</span>
        {reason !== undefined && <span>{revealedText(reason)}</span>}
      </div>
    </li>
  );
}
