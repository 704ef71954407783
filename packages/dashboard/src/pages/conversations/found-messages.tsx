import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import type { ReactNode } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, count, dateTime, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { AgentBadge } from '../../ui/agent-badge.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Failure, Skeleton } from '../../ui/parts.tsx';

type Hit = Extract<Result<'session.search'>, { mode: 'search' }>['results'][number];
const limit = 50;

/** Lists messages that match the query, best first; each links to its position in the conversation. */
export function FoundMessages({ query, agentId }: { readonly query: string; readonly agentId: string | undefined }) {
  const { client } = useSession();
  const found = useLoad(['session.search', agentId, query], (signal) => client.call('session.search', { query, limit, agentId }, { signal }));
  const data = found.data?.mode === 'search' ? found.data : undefined;
  return (
    <section className="found" aria-label={t('Found messages')}>
      <h2>{t('In messages')}</h2>
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={4} />}
      {data !== undefined && (
        <p className="hint" role="status">
          {data.total === 0
            ? t('No message contains all terms.')
            : `${plural(data.total, 'message')}${data.truncated ? ` ${t('and more')}` : ''}${data.results.length < data.total ? t(', best {results} shown', { results: count(data.results.length) }) : ''}`}
        </p>
      )}
      {data !== undefined && data.results.length > 0 && (
        <ul className="rows">
          {data.results.map((hit) => (
            <li key={`${hit.conversationRef} ${hit.seq}`} className="row">
              <div className="row-main">
                <PageLink to={`/conversations/${hit.conversationRef}/${hit.seq}`} className="row-title" dir="auto">
                  {hit.title ?? hit.sessionKey}
                </PageLink>
                <p className="snippet" dir="auto">
                  <Marked snippet={hit.snippet} marks={hit.marks} />
                </p>
              </div>
              <div className="row-facts">
                <AgentBadge agentId={hit.agentId} />
                <span>{t('{role}, message {seq}', { role: hit.role, seq: count(hit.seq) })}</span>
                <time dateTime={new Date(hit.timestamp).toISOString()} title={dateTime(hit.timestamp)}>
                  {ago(hit.timestamp)}
                </time>
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Highlights the matches in the snippet. */
function Marked({ snippet, marks }: Pick<Hit, 'snippet' | 'marks'>): ReactNode {
  let at = 0;
  const parts: ReactNode[] = [];
  for (const { start, end } of marks) {
    parts.push(snippet.slice(at, start), <mark key={start}>{snippet.slice(start, end)}</mark>);
    at = end;
  }
  return [...parts, snippet.slice(at)];
}
