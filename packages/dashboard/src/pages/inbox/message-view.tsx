import { t } from '../../language.ts';
import { useEffect, useRef } from 'react';
import { useSession } from '../../data/context.ts';
import type { InboxMessage } from '../../data/inbox.ts';
import { useLoad } from '../../data/use-load.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { PageLink } from '../../ui/link.tsx';
import { pathOf } from '../../ui/object-link.tsx';
import { Badge, Failure, Skeleton } from '../../ui/parts.tsx';
import { When } from '../../ui/when.tsx';
import { GateAnswer } from '../graphs/gate-answer.tsx';
import { sources, subjectOf } from './messages.ts';

/** The whole of one message, with what can be done about it. */
export function MessageView({ message }: { readonly message: InboxMessage }) {
  const { source, level, agentId, conversationRef, text, asks, createdAt } = message;
  const run = asks === undefined ? runOf(message) : undefined;
  const view = useRef<HTMLElement>(null);
  useEffect(() => {
    // A link of the list keeps the focus where both are visible; on a phone it was replaced by this view.
    if (view.current !== null && document.activeElement === document.body) view.current.focus();
  }, []);
  return (
    <article ref={view} tabIndex={-1} className="message-view" aria-label={subjectOf(message)}>
      <p className="panes-back">
        <PageLink to="/inbox">{t('All messages')}</PageLink>
      </p>
      <p className="facts-line">
        <strong>{sources[source]}</strong>
        <span>{agentId}</span>
        {level === 'alert' && <Badge tone="bad">{t('Alert')}</Badge>}
        <When atMs={createdAt} />
        <span className="grow" />
        <CopyButton text={text} label={t('Copy')} />
      </p>
      <Markdown text={text} />
      {asks !== undefined && <Gate {...asks} />}
      {(run !== undefined || conversationRef !== null) && (
        <div className="actions">
          {run !== undefined && (
            <PageLink to={run} className="button">
              {t('Open run')}
            </PageLink>
          )}
          {conversationRef !== null && (
            <>
              <PageLink to={`/chat/${conversationRef}`} className="button">
                {t('Answer in the chat')}
              </PageLink>
              <PageLink to={`/conversations/${conversationRef}`} className="button">
                {t('Conversation')}
              </PageLink>
            </>
          )}
        </div>
      )}
    </article>
  );
}

/** Shows the buttons of an approval gate while it is pending. */
function Gate({ graphId, nodeId }: { readonly graphId: string; readonly nodeId: string }) {
  const { client } = useSession();
  const { data, error, reload } = useLoad(
    ['graph.status', 'gate', graphId, nodeId],
    async (signal) => {
      const found = await client.call('graph.status', { graphId }, { signal });
      return { waits: 'executionOrder' in found && found.nodes[nodeId]?.waitsForAnswer === true };
    },
    { changedBy: ['graph:completed'] },
  );
  if (error !== undefined) return <Failure error={error} onRetry={reload} />;
  if (data === undefined) return <Skeleton lines={1} />;
  return (
    <>
      {data.waits ? (
        <GateAnswer graphId={graphId} nodeId={nodeId} onAnswered={reload} />
      ) : (
        <p className="hint">{t('This question is no longer pending.')}</p>
      )}
      <p>
        <PageLink to={`/graphs/runs/${graphId}`}>{t('Open run')}</PageLink>
      </p>
    </>
  );
}

/** Returns the page of the run whose end a message reports: the gateway writes how it begins, what follows may be of a model. */
function runOf({ source, text }: InboxMessage): string | undefined {
  const id = source === 'subagent' || source === 'graph' ? /^(?:Sub-agent|Graph) (?:".*" \()?((?:sr|gr)_[0-9a-f-]{36})/.exec(text)?.[1] : undefined;
  return id === undefined ? undefined : pathOf(id);
}
