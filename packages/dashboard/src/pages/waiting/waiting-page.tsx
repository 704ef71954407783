import { t, tx } from '../../language.ts';
import { type ReactNode, useEffect, useRef } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { notices, setNotices } from '../../data/notices.ts';
import { useStore } from '../../data/store.ts';
import { useAction } from '../../data/use-action.ts';
import type { WaitingItem } from '../../data/waiting.ts';
import { PageLink } from '../../ui/link.tsx';
import { Button, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { PendingApprovals } from '../approvals/pending-approvals.tsx';
import { GateCard } from './gate-card.tsx';
import { JobCard, MessageCard, WebhookCard } from './failed-cards.tsx';
import { PairingCard } from './pairing-card.tsx';

/** Everything waiting for a decision of the user; `/waiting/<id>` scrolls to an approval, `/waiting/<key>` to another item. */
export function WaitingPage({ wanted }: { readonly wanted: string | undefined }) {
  const { approvals, waiting } = useSession();
  const pending = useStore(approvals.state);
  const { items, loading, error } = useStore(waiting.state);
  const total = pending.total + items.length;
  const isLoading = loading || pending.loading;
  useEffect(() => {
    // What happened while the stream was closed, or no event reports.
    waiting.reload();
  }, [waiting]);
  const of = <Kind extends WaitingItem['kind']>(kind: Kind) =>
    items.filter((item): item is Extract<WaitingItem, { kind: Kind }> => item.kind === kind);
  const failed = items.filter(({ kind }) => kind === 'job' || kind === 'webhook' || kind === 'message');

  return (
    <Page help="dashboard" title={t('Waiting for you')} lead={t('Calls, questions and failures that need your decision.')} actions={<NoticeSwitch />}>
      {error !== undefined && <Failure error={error} onRetry={waiting.reload} />}
      <p className="visually-hidden" role="status">
        {isLoading ? '' : total === 0 ? t('Nothing waits for you.') : t('{items} waiting.', { items: plural(total, 'item') })}
      </p>
      {isLoading && total === 0 && <Skeleton lines={4} />}
      {!isLoading && error === undefined && pending.error === undefined && total === 0 && (
        <Empty title={t('Nothing waits for you')}>
          <p>
            {tx(
              'Calls that need an approval, questions of graphs, people who want to write over a channel, and failed work appear here. What ran is in {link}, what was reported in the {link2}.',
              { link: <PageLink to="/runs">{t('Executions')}</PageLink>, link2: <PageLink to="/inbox">{t('inbox')}</PageLink> },
            )}
          </p>
        </Empty>
      )}
      <div className="waiting-list" role="region" aria-label={t('What waits for you')}>
        <PendingApprovals wanted={wanted?.startsWith('ap_') === true ? wanted : undefined} />
        <Group title={t('Questions')}>
          {of('gate').map((item) => (
            <Item key={item.key} isWanted={item.key === wanted}>
              <GateCard item={item} />
            </Item>
          ))}
        </Group>
        <Group title={t('New people')}>
          {of('pairing').map((item) => (
            <Item key={item.key} isWanted={item.key === wanted}>
              <PairingCard pairing={item.pairing} />
            </Item>
          ))}
        </Group>
        <Group title={t('Failed work')}>
          {failed.map((item) => (
            <Item key={item.key} isWanted={item.key === wanted}>
              {item.kind === 'job' ? (
                <JobCard item={item} />
              ) : item.kind === 'webhook' ? (
                <WebhookCard item={item} />
              ) : item.kind === 'message' ? (
                <MessageCard item={item} />
              ) : null}
            </Item>
          ))}
        </Group>
      </div>
    </Page>
  );
}

function Group({ title, children }: { readonly title: string; readonly children: readonly ReactNode[] }) {
  if (children.length === 0) return null;
  return (
    <section className="waiting-group" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** Focuses its card when the address names it. */
function Item({ isWanted, children }: { readonly isWanted: boolean; readonly children: ReactNode }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isWanted) place.current?.querySelector('article')?.focus();
  }, [isWanted]);
  return <div ref={place}>{children}</div>;
}

/** Switches notifications of this browser on and off. */
function NoticeSwitch() {
  const state = useStore(notices);
  const { busy, run } = useAction();
  if (state === 'unsupported') return null;
  if (state === 'refused') return <span className="hint">{t('Notifications are blocked in the settings of this browser.')}</span>;
  return (
    <Button icon="bell" disabled={busy} onClick={() => run(() => setNotices(state === 'off'))}>
      {state === 'on' ? t('Stop notifying me') : t('Notify me in this browser')}
    </Button>
  );
}
