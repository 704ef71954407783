import { t, tx } from '../../language.ts';
import type { StoredMessage } from '@gatehouse/contract';
import { Suspense, useEffect, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, dateTime } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { makesFiles, pathsOf } from '../../data/made-files.ts';
import { AttachmentList, MadeFiles } from '../../lazy-pages.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { TraceLink } from '../../ui/object-link.tsx';
import { Badge, Button, Failure, Skeleton } from '../../ui/parts.tsx';
import { CaseButton } from '../evals/case-button.tsx';

const pageSize = 30;
/** Messages shown before the requested one. */
const before = 4;

/** Pages through the messages of a conversation, starting at the newest or around `seq`; the conversation can be forked at each. */
export function Messages({
  reference,
  total,
  seq,
  onFork,
}: {
  readonly reference: string;
  readonly total: number;
  readonly seq: number | undefined;
  readonly onFork: (seq: number) => void;
}) {
  const { client } = useSession();
  const last = Math.max(0, total - pageSize);
  const [offset, setOffset] = useState(seq === undefined ? last : Math.min(last, Math.max(0, seq - 1 - before)));
  const page = useLoad(['session.history', reference, offset], (signal) =>
    client.call('session.history', { conversationRef: reference, offset, limit: pageSize }, { signal }),
  );
  const messages = page.data?.messages;
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    if (seq === undefined || messages === undefined) return;
    const wanted = list.current?.querySelector<HTMLElement>(`[data-seq="${seq}"]`);
    wanted?.scrollIntoView({ block: 'center' });
    wanted?.focus({ preventScroll: true });
  }, [seq, messages]);
  return (
    <>
      {page.error !== undefined && <Failure error={page.error} onRetry={page.reload} />}
      {messages === undefined && page.loading && <Skeleton lines={6} />}
      {messages !== undefined && (
        <ol className="history" ref={list}>
          {messages.map((message) => (
            <li key={message.seq} data-seq={message.seq} tabIndex={-1} className={message.seq === seq ? 'wanted' : undefined}>
              <HistoryMessage message={message} agentId={page.data?.session.agentId ?? ''} onFork={() => onFork(message.seq)} />
            </li>
          ))}
        </ol>
      )}
      {total > pageSize && (
        <div className="pages">
          <Button small disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - pageSize))}>
            {t('Earlier')}
          </Button>
          <span className="hint">
            {tx('{offset} to {total} of {total2}', {
              offset: count(offset + 1),
              total: count(Math.min(total, offset + pageSize)),
              total2: count(total),
            })}
          </span>
          <Button small disabled={offset >= last} onClick={() => setOffset(Math.min(last, offset + pageSize))}>
            {t('Later')}
          </Button>
        </div>
      )}
    </>
  );
}

const who: Readonly<Record<StoredMessage['role'], string>> = { user: t('User'), assistant: t('Assistant'), tool: t('Tool') };

function HistoryMessage({ message, agentId, onFork }: { readonly message: StoredMessage; readonly agentId: string; readonly onFork: () => void }) {
  const { seq, role, content, toolCalls, toolName, timestamp, attachments, feedback, turnId } = message;
  const made = role === 'tool' && makesFiles(toolName) ? pathsOf(content) : [];
  return (
    <article aria-label={t('Message {seq}', { seq })}>
      <header>
        <span className="history-number">{count(seq)}</span>
        <strong>{toolName === undefined ? who[role] : t('Tool {toolName}', { toolName })}</strong>
        <time className="hint" dateTime={new Date(timestamp).toISOString()}>
          {dateTime(timestamp)}
        </time>
        {feedback !== undefined && (
          <span title={`${feedback.by}${feedback.note === undefined ? '' : `: ${feedback.note}`}`}>
            <Badge tone={feedback.rating === 'good' ? 'good' : 'bad'}>{t('marked {rating}', { rating: feedback.rating })}</Badge>
          </span>
        )}
        <span className="grow" />
        {role === 'assistant' && content !== '' && <CaseButton turnId={turnId} />}
        {role === 'user' && <TraceLink reference={turnId} label={t('Trace of message {seq}', { seq })} />}
        <Button look="quiet" small onClick={onFork} label={t('Fork here, after message {seq}', { seq })}>
          {t('Fork here')}
        </Button>
      </header>
      {role === 'tool' ? (
        <details>
          <summary>{t('Output')}</summary>
          <pre className="raw-text">{content}</pre>
        </details>
      ) : (
        content !== '' && <Markdown text={content} />
      )}
      {toolCalls?.map((call) => (
        <p key={call.id} className="mono hint cut" title={call.arguments}>
          → {call.name} {call.arguments}
        </p>
      ))}
      {attachments !== undefined && attachments.length > 0 && (
        <Suspense fallback={null}>
          <AttachmentList attachments={attachments} />
        </Suspense>
      )}
      {made.length > 0 && (
        <Suspense fallback={null}>
          <MadeFiles agentId={agentId} paths={made} />
        </Suspense>
      )}
    </article>
  );
}
