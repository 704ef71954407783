import { t, tx } from '../../language.ts';
import type { MediaInfo } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, bytes, count, dateTime, money, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { Confirm, Dialog } from '../../ui/dialog.tsx';
import { Button, Empty, Failure, IconButton, Page, Skeleton } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { AttachmentList } from './attachment-list.tsx';

const pageSize = 50;
const periodMs = 30 * 86_400_000;
/** Operations of model calls that read or make media. */
const operations: Readonly<Record<string, string>> = {
  transcription: t('Transcription'),
  speech: t('Speech'),
  vision: t('Images described'),
  video: t('Videos described'),
  imageGeneration: t('Images generated'),
};

/** The stored files, and what agents did with media. */
export function MediaPage() {
  const { admin } = useSession();
  return (
    <Page title={t('Files')} lead={admin ? t('Files that people and programs uploaded.') : t('Files that you uploaded.')}>
      <FileTable />
      <MediaUsage />
    </Page>
  );
}

function FileTable() {
  const { client } = useSession();
  const [search, setSearch] = useState('');
  const [offset, setOffset] = useState(0);
  const [shown, setShown] = useState<MediaInfo>();
  const [doomed, setDoomed] = useState<MediaInfo>();
  const term = search.trim();
  const found = useLoad(
    ['media', term, offset],
    (signal) => client.listMedia({ limit: pageSize, offset, ...(term !== '' && { search: term.slice(0, 200) }) }, { signal }),
    { keepsPrevious: ([, , before]) => before === offset },
  );
  const { data } = found;
  return (
    <section className="panel" aria-label={t('Stored files')}>
      <SearchField
        label={t('Search files')}
        hint={t('Name or type')}
        value={search}
        onChange={(query) => {
          setSearch(query);
          setOffset(0);
        }}
      />
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={5} />}
      {data !== undefined && (
        <p className="hint" role="status">
          {plural(data.total, 'file')}, {bytes(data.totalBytes)}
        </p>
      )}
      {data?.total === 0 && <Empty title={term === '' ? t('No files yet') : t('No file matches')} />}
      {data !== undefined && data.media.length > 0 && (
        <div className="table-scroll file-table" tabIndex={0} role="region" aria-label={t('Files, table')}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t('Name')}</th>
                <th scope="col">{t('Type')}</th>
                <th scope="col" data-align="right">
                  {t('Size')}
                </th>
                <th scope="col">{t('Stored')}</th>
                <th scope="col">
                  <span className="visually-hidden">{t('Actions')}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.media.map((info) => (
                <tr key={info.mediaId}>
                  <th scope="row">
                    <button type="button" className="link-button" dir="auto" onClick={() => setShown(info)}>
                      {nameOf(info)}
                    </button>
                  </th>
                  <td className="mono">{info.contentType}</td>
                  <td data-align="right">{bytes(info.size)}</td>
                  <td>
                    <time dateTime={new Date(info.savedAt).toISOString()} title={dateTime(info.savedAt)}>
                      {ago(info.savedAt)}
                    </time>
                  </td>
                  <td>
                    <IconButton icon="trash" label={t('Delete {info}', { info: nameOf(info) })} onClick={() => setDoomed(info)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data !== undefined && data.total > pageSize && (
        <div className="pages">
          <Button small disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - pageSize))}>
            {t('Newer')}
          </Button>
          <span className="hint">
            {tx('{offset} to {total} of {total2}', {
              offset: count(offset + 1),
              total: count(Math.min(data.total, offset + pageSize)),
              total2: count(data.total),
            })}
          </span>
          <Button small disabled={offset + pageSize >= data.total} onClick={() => setOffset(offset + pageSize)}>
            {t('Older')}
          </Button>
        </div>
      )}
      {shown !== undefined && (
        <Dialog wide title={nameOf(shown)} onClose={() => setShown(undefined)}>
          <div className="dialog-body">
            <AttachmentList attachments={[shown]} />
            <p className="hint mono">{shown.mediaId}</p>
          </div>
        </Dialog>
      )}
      {doomed !== undefined && (
        <Confirm
          title={t('Delete {doomed}?', { doomed: nameOf(doomed) })}
          action={t('Delete file')}
          run={async () => {
            await client.deleteMedia(doomed.mediaId);
            found.reload();
          }}
          onClose={() => setDoomed(undefined)}
        >
          <p>{t("Messages keep its name, but nobody can open it any more. This can't be undone.")}</p>
        </Confirm>
      )}
    </section>
  );
}

function MediaUsage() {
  const { client } = useSession();
  const { data, error, reload } = useLoad(['usage.report', 'media'], async (signal) => {
    const untilMs = Date.now();
    const report = await client.call(
      'usage.report',
      { sinceMs: untilMs - periodMs, untilMs, groupBy: ['agent', 'operation'], limit: 1000 },
      { signal },
    );
    return report.rows.flatMap(({ keys: [agent, operation], calls, costUsd }) => {
      const name = operations[operation ?? ''];
      return name === undefined ? [] : [{ agent: agent ?? '', name, calls, costUsd }];
    });
  });
  return (
    <section className="panel" aria-label={t('Use by agent')}>
      <h2>{t('Use by agent, last 30 days')}</h2>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <Skeleton lines={2} />}
      {data?.length === 0 && <p className="hint">{t('No agent has transcribed, spoken, described or generated anything.')}</p>}
      {data !== undefined && data.length > 0 && (
        <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Use by agent, table')}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t('Agent')}</th>
                <th scope="col">{t('What')}</th>
                <th scope="col" data-align="right">
                  {t('Requests')}
                </th>
                <th scope="col" data-align="right">
                  {t('Cost')}
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map(({ agent, name, calls, costUsd }) => (
                <tr key={`${agent} ${name}`}>
                  <th scope="row" className="mono">
                    {agent}
                  </th>
                  <td>{name}</td>
                  <td data-align="right">{count(calls)}</td>
                  <td data-align="right">{costUsd === null ? t('unknown') : money(costUsd)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

const nameOf = ({ fileName, mediaId }: MediaInfo): string => fileName ?? mediaId;
