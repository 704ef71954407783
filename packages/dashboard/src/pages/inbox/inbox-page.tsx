import { useSession } from '../../data/context.ts';
import { ago, count, dateTime } from '../../data/format.ts';
import type { InboxMessage } from '../../data/inbox.ts';
import { useStore } from '../../data/store.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { pathOf } from '../../ui/object-link.tsx';
import { Badge, Button, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { Markdown } from '../../markdown/markdown.tsx';
import { GateAnswer } from '../graphs/gate-answer.tsx';

const sources: Readonly<Record<InboxMessage['source'], string>> = {
  cron: 'Job',
  heartbeat: 'Heartbeat',
  webhook: 'Webhook',
  turn: 'Turn',
  subagent: 'Sub-agent',
  graph: 'Graph',
  autonomy: 'Unattended',
  mcp: 'MCP server',
  channel: 'Channel',
};

/** Messages from jobs, heartbeats, webhooks, sub-agents and graphs. */
export function InboxPage() {
  const { inbox, admin } = useSession();
  const { messages, unread, hasMore, loading, error } = useStore(inbox.state);
  const marking = useAction();
  const mark = (which: readonly string[] | 'all'): void => marking.run(() => inbox.markRead(which));
  return (
    <Page
      title="Inbox"
      lead={
        admin
          ? 'Messages from jobs, heartbeats, webhooks, sub-agents and graphs, to all users.'
          : 'Messages to you from jobs, heartbeats, webhooks, sub-agents and graphs.'
      }
      actions={
        <Button disabled={unread === 0} onClick={() => mark('all')}>
          Mark all as read
        </Button>
      }
    >
      {marking.error !== undefined && <Failure error={marking.error} />}
      {error !== undefined && <Failure error={error} onRetry={inbox.reload} />}
      <p role="status" className="hint">
        {messages.length === 0 ? '' : unread === 0 ? 'No unread messages.' : `${count(unread)} unread.`}
      </p>
      {messages.length === 0 && loading && <Skeleton lines={4} />}
      {messages.length === 0 && !loading && error === undefined && (
        <Empty title="No messages yet">
          <p>Results of jobs and heartbeats appear here.</p>
        </Empty>
      )}
      <ul className="inbox" aria-label="Messages">
        {messages.map((message) => (
          <li key={message.id}>
            <MessageCard message={message} onRead={() => mark([message.id])} />
          </li>
        ))}
      </ul>
      {hasMore && (
        <div className="pages">
          <Button small disabled={loading} onClick={inbox.more}>
            Older
          </Button>
        </div>
      )}
    </Page>
  );
}

/** Shows the buttons of an approval gate while it is pending. */
function Gate({ graphId, nodeId }: { readonly graphId: string; readonly nodeId: string }) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['graph.status', 'gate', graphId, nodeId], async (signal) => {
    const found = await client.call('graph.status', { graphId }, { signal });
    return { waits: 'executionOrder' in found && found.nodes[nodeId]?.waitsForAnswer === true };
  });
  if (error !== undefined) return <Failure error={error} onRetry={reload} />;
  if (data === undefined) return <Skeleton lines={1} />;
  return (
    <>
      {data.waits ? (
        <GateAnswer graphId={graphId} nodeId={nodeId} onAnswered={reload} />
      ) : (
        <p className="hint">This question is no longer pending.</p>
      )}
      <p>
        <PageLink to={`/graphs/runs/${graphId}`}>Open run</PageLink>
      </p>
    </>
  );
}

/** Returns the page of the run whose end a message reports: the gateway writes how it begins, what follows may be of a model. */
function runOf({ source, text }: InboxMessage): string | undefined {
  const id = source === 'subagent' || source === 'graph' ? /^(?:Sub-agent|Graph) (\S+)/.exec(text)?.[1] : undefined;
  return id === undefined ? undefined : pathOf(id);
}

function MessageCard({ message, onRead }: { readonly message: InboxMessage; readonly onRead: () => void }) {
  const { id, source, level, agentId, conversationRef, text, asks, createdAt, readAt } = message;
  const run = asks === undefined ? runOf(message) : undefined;
  return (
    <article className={readAt === null ? 'card inbox-message unread' : 'card inbox-message'} aria-labelledby={`${id}-head`}>
      <header>
        <span className="facts-line" id={`${id}-head`}>
          {readAt === null && <Badge tone="accent">New</Badge>}
          {level === 'alert' && <Badge tone="bad">Alert</Badge>}
          <span>{`${sources[source]} of ${agentId}`}</span>
          <time dateTime={new Date(createdAt).toISOString()} title={dateTime(createdAt)}>
            {ago(createdAt)}
          </time>
        </span>
      </header>
      <Markdown text={text} />
      {asks !== undefined && <Gate {...asks} />}
      <div className="actions">
        {run !== undefined && (
          <PageLink to={run} className="button small">
            Open run
          </PageLink>
        )}
        {conversationRef !== null && (
          <PageLink to={`/conversations/${conversationRef}`} className="button small">
            Conversation
          </PageLink>
        )}
        {readAt === null && (
          <Button small icon="check" onClick={onRead}>
            Mark as read
          </Button>
        )}
      </div>
    </article>
  );
}
