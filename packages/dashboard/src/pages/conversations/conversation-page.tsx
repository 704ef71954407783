import { t, tx } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, dateTime, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { AgentBadge } from '../../ui/agent-badge.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Button, Empty, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { ContextTree } from './context-tree.tsx';
import { type ConversationAction, ConversationDialog, titleOf } from './conversation-dialogs.tsx';
import { exportConversation } from './export-conversation.ts';
import { Messages } from './messages.tsx';

type Session = Result<'session.history'>['session'];

interface Head {
  readonly session: Session;
  readonly total: number;
  readonly tree: Result<'context.tree'>;
}

async function loadHead(client: Client, conversationRef: string, signal: AbortSignal): Promise<Head> {
  const [history, tree] = await client.batch(
    [
      { method: 'session.history', params: { conversationRef, limit: 1 } },
      { method: 'context.tree', params: { conversationRef } },
    ],
    { signal },
  );
  if (!history.ok) throw history.error;
  if (!tree.ok) throw tree.error;
  return { session: history.result.session, total: history.result.total, tree: tree.result };
}

/** Shows the details of a conversation: its messages, what the model sees of them, and actions. `seq` is the message to show. */
export function ConversationPage({ reference, seq }: { readonly reference: string; readonly seq: number | undefined }) {
  const { client, admin, chats } = useSession();
  const head = useLoad(['session.history', 'context.tree', reference], (signal) => loadHead(client, reference, signal));
  const [asked, setAsked] = useState<ConversationAction>();
  const [outcome, setOutcome] = useState<string>();
  const [error, setError] = useState<unknown>();
  /** Counts changes to the messages: each one reloads them. */
  const [changes, setChanges] = useState(0);
  const changed = (text: string): void => {
    setOutcome(text);
    setChanges(changes + 1);
    // The copy in this tab is out of date now.
    chats.forget(reference);
    head.reload();
  };
  const ask = (next: ConversationAction): void => {
    setError(undefined);
    setOutcome(undefined);
    setAsked(next);
  };
  const { data } = head;
  const back = <PageLink to="/conversations">{t('All conversations')}</PageLink>;
  if (data === undefined)
    return (
      <Page title={t('Conversation')} lead={back}>
        {head.error === undefined ? <Skeleton lines={8} /> : <Failure error={head.error} onRetry={head.reload} />}
      </Page>
    );
  const { session, total, tree } = data;
  return (
    <Page
      title={titleOf(session)}
      lead={back}
      actions={
        <>
          <PageLink to={`/chat/${reference}`} className="button">
            {t('Open in chat')}
          </PageLink>
          <Button icon="download" onClick={() => exportConversation(client, session, setError)}>
            {t('Export')}
          </Button>
          {total > 0 && <Button onClick={() => ask({ forkAt: total })}>{t('Fork')}</Button>}
          {total > 0 && <Button onClick={() => ask('compact')}>{t('Compact')}</Button>}
          <Button onClick={() => ask('reset')}>{t('Reset')}</Button>
          {admin && <Button onClick={() => ask('resetConversation')}>{t('Erase content')}</Button>}
          {admin && (
            <Button icon="trash" look="danger" onClick={() => ask('delete')}>
              {t('Delete')}
            </Button>
          )}
        </>
      }
    >
      {error !== undefined && <Failure error={error} />}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      <p className="facts-line">
        <AgentBadge agentId={session.agentId} />
        <span className="mono">{session.sessionKey}</span>
        <span>{plural(total, 'message')}</span>
        <span>{tx('{totalTokens} tokens', { totalTokens: count(session.totalTokens) })}</span>
        <span>{tx('created {createdAt}', { createdAt: dateTime(session.createdAt) })}</span>
        {session.forkedFrom !== undefined && <PageLink to={`/conversations/${session.forkedFrom}`}>{t('forked from another conversation')}</PageLink>}
      </p>
      <section className="panel" aria-label={t('What the model sees')}>
        <h2>{t('What the model sees')}</h2>
        <ContextTree nodes={tree.nodes} messageCount={tree.messageCount} cutSeq={tree.cutSeq} resetSeq={session.resetSeq} reference={reference} />
      </section>
      <section className="panel" aria-label={t('Messages')}>
        <h2>{t('Messages')}</h2>
        {total === 0 ? (
          <Empty title={t('No messages')} />
        ) : (
          <Messages key={`${reference} ${seq ?? ''} ${changes}`} reference={reference} total={total} seq={seq} onFork={(forkAt) => ask({ forkAt })} />
        )}
      </section>
      {asked !== undefined && (
        <ConversationDialog
          action={asked}
          session={session}
          total={total}
          summaryCount={tree.nodes.length}
          onClose={() => setAsked(undefined)}
          onChanged={changed}
        />
      )}
    </Page>
  );
}
