import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, bytes, count, dateTime, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { AgentFilter } from '../../ui/agent-filter.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Badge, Button, Empty, Failure, Page, Skeleton, type Tone } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { NextTry } from '../../ui/when.tsx';

type Source = Result<'knowledge.list'>['sources'][number];

const states: Readonly<Record<Source['state'], { readonly text: string; readonly tone: Tone }>> = {
  waiting: { text: t('Waiting'), tone: 'neutral' },
  indexing: { text: t('Indexing'), tone: 'accent' },
  ready: { text: t('Up to date'), tone: 'good' },
  unavailable: { text: t('Not available'), tone: 'warn' },
  failed: { text: t('Failed'), tone: 'bad' },
};
/** The state of sources has no events. */
const pollMs = 5_000;
const partsAtOnce = 5;

/** Folders and sites that agents answer from; with an id, one of their files at a page. */
export function KnowledgePage({ rest }: { readonly rest: string | undefined }) {
  const [fileId = '', part = '1'] = rest?.split('/') ?? [];
  if (/^kf_[0-9a-f]{32}$/.test(fileId) && /^\d{1,6}$/.test(part))
    return <KnowledgeFile key={rest} fileId={fileId} part={Math.max(1, Number(part))} />;
  return <Sources />;
}

function Sources() {
  const { client } = useSession();
  const [agentId, setAgentId] = useState<string>();
  const found = useLoad(['knowledge.list', agentId], (signal) => client.call('knowledge.list', agentId === undefined ? {} : { agentId }, { signal }));
  const { data, reload } = found;
  useEffect(() => {
    const timer = setInterval(reload, pollMs);
    return () => clearInterval(timer);
  }, [reload]);
  return (
    <Page
      title={t('Knowledge')}
      lead={t('Folders and sites that agents answer from. They are part of the settings of each agent.')}
      actions={<AgentFilter value={agentId} onChange={setAgentId} />}
    >
      {found.error !== undefined && <Failure error={found.error} onRetry={reload} />}
      {data === undefined && found.error === undefined && <Skeleton lines={4} />}
      {data?.sources.length === 0 && (
        <Empty title={t('No folders and no sites')}>
          <p>{tx('Add them in the settings, as {code}.', { code: <code>agents.&lt;id&gt;.knowledge.sources</code> })}</p>
        </Empty>
      )}
      {data !== undefined && data.sources.length > 0 && <Search agentIds={[...new Set(data.sources.map((source) => source.agentId))]} />}
      <ul className="cards" aria-label={t('Sources')}>
        {data?.sources.map((source) => (
          <li key={`${source.agentId} ${source.name}`}>
            <SourceCard source={source} onRefreshed={reload} />
          </li>
        ))}
      </ul>
    </Page>
  );
}

function SourceCard({ source, onRefreshed }: { readonly source: Source; readonly onRefreshed: () => void }) {
  const { client, admin } = useSession();
  const { busy, error, run } = useAction();
  const { agentId, name, folder, site, trusted, state, problem, checkedAt, nextCheckAt, files, passages, more, unwatched, failedCount, failed } =
    source;
  return (
    <article className="card" aria-label={t('{name} of {agentId}', { name, agentId })}>
      <header className="facts-line">
        <strong>{name}</strong>
        <span className="hint">{tx('of {agentId}', { agentId })}</span>
        <Badge tone={states[state].tone}>{states[state].text}</Badge>
        <Badge tone={trusted ? 'neutral' : 'warn'}>{trusted ? t('Trusted') : t('Text from outside')}</Badge>
      </header>
      <p className="mono cut" title={folder ?? site}>
        {folder ?? site}
      </p>
      {problem !== undefined && (
        <p className="bad-text">
          {problem} {nextCheckAt !== undefined && <NextTry atMs={nextCheckAt} />}
        </p>
      )}
      <p className="hint">
        {plural(files, 'file')}, {plural(passages, 'passage')}, {bytes(source.bytes)}
        {checkedAt !== null && (
          <>
            {tx(', compared {time}', {
              time: (
                <time dateTime={new Date(checkedAt).toISOString()} title={dateTime(checkedAt)}>
                  {ago(checkedAt)}
                </time>
              ),
            })}
          </>
        )}
        {more && t('; there are more files than it may have')}
        {unwatched > 0 && t('; {folders} beyond the limit of watches, compared at intervals only', { folders: plural(unwatched, 'folder') })}
      </p>
      {failedCount > 0 && (
        <details>
          <summary>{tx('{files} without text', { files: plural(failedCount, 'file') })}</summary>
          <ul>
            {failed.map(({ path, problem: why }) => (
              <li key={path}>
                <span className="mono">{path}</span>: {why}
              </li>
            ))}
          </ul>
        </details>
      )}
      {admin && (
        <div className="actions">
          <Button
            small
            icon="retry"
            disabled={busy}
            label={t('Compare now: {name} of {agentId}', { name, agentId })}
            onClick={() => run(() => client.call('knowledge.refresh', { agentId, source: name }).then(onRefreshed))}
          >
            {t('Compare now')}
          </Button>
        </div>
      )}
      {error !== undefined && <Failure error={error} />}
    </article>
  );
}

function Search({ agentIds }: { readonly agentIds: readonly string[] }) {
  const { client } = useSession();
  const [query, setQuery] = useState('');
  const [agentId, setAgentId] = useState(agentIds[0] ?? '');
  const [asked, setAsked] = useState<{ readonly query: string; readonly agentId: string }>();
  const found = useLoad(['knowledge.search', asked], async (signal) =>
    asked === undefined ? undefined : await client.call('knowledge.search', { ...asked, limit: 10 }, { signal }),
  );
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (query.trim() !== '') setAsked({ query: query.trim(), agentId });
  };
  return (
    <section className="panel" aria-label={t('Search')}>
      <form className="facts-line" role="search" onSubmit={submit}>
        <SearchField label={t('Search knowledge')} value={query} onChange={setQuery} />
        {agentIds.length > 1 && (
          <select aria-label={t('Knowledge of')} value={agentId} onChange={(event) => setAgentId(event.target.value)}>
            {agentIds.map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        )}
        <Button submit>{t('Search')}</Button>
      </form>
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {found.data?.passages.length === 0 && <p role="status">{t('Nothing found.')}</p>}
      {found.data !== undefined && found.data.passages.length > 0 && (
        <ol className="history" aria-label={t('Passages')}>
          {found.data.passages.map(({ fileId, source, path, part, label, text }, index) => (
            <li key={`${fileId} ${part} ${index}`}>
              <p>
                <PageLink to={`/knowledge/${fileId}/${part}`}>{[path, label].filter((one) => one !== '').join(', ')}</PageLink>{' '}
                <span className="hint">{source}</span>
              </p>
              <p className="hint">{text.slice(0, 300)}</p>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

function KnowledgeFile({ fileId, part }: { readonly fileId: string; readonly part: number }) {
  const { client } = useSession();
  const [first, setFirst] = useState(Math.max(1, part - 1));
  const { data, error, reload } = useLoad(['knowledge.read', fileId, first], (signal) =>
    client.call('knowledge.read', { fileId, part: first, count: partsAtOnce }, { signal }),
  );
  const cited = useRef<HTMLElement>(null);
  useEffect(() => {
    cited.current?.scrollIntoView({ block: 'start' });
    cited.current?.focus({ preventScroll: true });
  }, [data]);
  return (
    <Page
      title={data?.path ?? t('Knowledge')}
      lead={
        data === undefined
          ? undefined
          : t('{source}, {sizeBytes}, indexed {indexedAt}', {
              source: data.source,
              sizeBytes: bytes(data.sizeBytes),
              indexedAt: dateTime(data.indexedAt),
            })
      }
    >
      <p>
        <PageLink to="/knowledge">{t('All sources')}</PageLink>
      </p>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <Skeleton lines={8} />}
      {data?.parts.map((one) => (
        <section
          key={one.part}
          ref={one.part === part ? cited : undefined}
          tabIndex={-1}
          className={one.part === part ? 'panel wanted' : 'panel'}
          aria-label={one.label === '' ? t('Part {part}', { part: one.part }) : one.label}
        >
          <p className="hint">{one.label === '' ? t('Part {part}', { part: one.part }) : one.label}</p>
          <Markdown text={one.text} />
        </section>
      ))}
      {data !== undefined && data.partCount > partsAtOnce && (
        <div className="pages">
          <Button small disabled={first === 1} onClick={() => setFirst(Math.max(1, first - partsAtOnce))}>
            {t('Earlier')}
          </Button>
          <span className="hint">
            {tx('{first} to {partCount} of {partCount2}', {
              first: count(first),
              partCount: count(Math.min(data.partCount, first + partsAtOnce - 1)),
              partCount2: count(data.partCount),
            })}
          </span>
          <Button small disabled={first + partsAtOnce > data.partCount} onClick={() => setFirst(first + partsAtOnce)}>
            {t('Later')}
          </Button>
        </div>
      )}
    </Page>
  );
}
