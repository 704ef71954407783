import { t, tx } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { useSettled } from '../../data/use-settled.ts';
import { saveJson } from '../../ui/save-json.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { Button, Empty, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { EntryDialog } from './entry-dialog.tsx';
import { EntryList } from './entry-list.tsx';
import { FlushDialog } from './flush-dialog.tsx';
import { exportMemories, type Filters, findMemories, noFilters, pageSize } from './find-memories.ts';
import { MemoryFilters } from './memory-filters.tsx';
import { MemoryStats } from './memory-stats.tsx';
import { StoreDialog } from './store-dialog.tsx';
import { MaintenanceDialog } from './maintenance-dialog.tsx';

type Asked = 'store' | 'flush' | 'maintenance' | 'delete' | { readonly id: string };

/** Browses memories, or searches them and explains each result. */
export function MemoryPage() {
  const { client, admin, defaultAgentId } = useSession();
  const [agentId, setAgentId] = useState(defaultAgentId);
  const [input, setInput] = useState('');
  const query = useSettled(input);
  const [filters, setFilters] = useState<Filters>(noFilters);
  const [offset, setOffset] = useState(0);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [asked, setAsked] = useState<Asked>();
  const [outcome, setOutcome] = useState<string>();
  const exporting = useAction();

  const found = useLoad(['memory.search', agentId, query, filters, offset], (signal) =>
    findMemories(client, { agentId, query, filters, offset }, signal),
  );
  const stats = useLoad(['memory.stats', agentId], (signal) => client.call('memory.stats', { agentId }, { signal }));

  /** Changes what is listed, which begins at the first page with nothing selected. */
  const restart = (change: () => void): void => {
    change();
    setOffset(0);
    setSelected(new Set());
  };
  const filter = (part: Partial<Filters>): void => restart(() => setFilters({ ...filters, ...part }));
  const changed = (text: string): void => {
    setOutcome(text);
    setSelected(new Set());
    found.reload();
    stats.reload();
  };
  const ask = (next: Asked): void => {
    setOutcome(undefined);
    exporting.clearError();
    setAsked(next);
  };
  const download = async (): Promise<void> => saveJson(`memory-${agentId}.json`, await exportMemories(client, agentId));
  const { data } = found;

  return (
    <Page
      title={t('Memory')}
      lead={
        admin ? t('What agents remember across conversations.') : t('What agents remember from your conversations, and what is shared with everyone.')
      }
      actions={
        admin && (
          <>
            <Button icon="download" onClick={() => exporting.run(download)} disabled={exporting.busy}>
              {exporting.busy ? t('Exporting…') : t('Export')}
            </Button>
            <Button onClick={() => ask('maintenance')}>{t('Maintenance')}</Button>
            <Button onClick={() => ask('flush')}>{t('Flush')}</Button>
            <Button icon="plus" look="primary" onClick={() => ask('store')}>
              {t('Store')}
            </Button>
          </>
        )
      }
    >
      {exporting.error !== undefined && <Failure error={exporting.error} />}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {found.error === undefined && <MemoryStats stats={stats} />}
      <MemoryFilters
        agentId={agentId}
        input={input}
        filters={filters}
        onAgent={(next) => restart(() => setAgentId(next))}
        onInput={(next) => restart(() => setInput(next))}
        onFilter={filter}
      />
      {admin && selected.size > 0 && <Selection count={selected.size} onDelete={() => ask('delete')} onClear={() => setSelected(new Set())} />}
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={8} />}
      {data !== undefined && data.entries.length === 0 && (
        <Empty title={query === '' && filters === noFilters ? t('No memories yet') : t('Nothing found')}>
          <p>{t('Memories come from reviews of conversations, or are stored here.')}</p>
        </Empty>
      )}
      {data !== undefined && data.entries.length > 0 && (
        <EntryList
          entries={data.entries}
          selected={admin ? selected : undefined}
          onSelect={setSelected}
          onOpen={(id) => ask({ id })}
          onTag={(tag) => filter({ tag })}
        />
      )}
      {data?.total !== undefined && data.total > pageSize && <Pages offset={offset} total={data.total} onOffset={setOffset} />}
      {asked !== undefined && (
        <MemoryDialogs asked={asked} agentId={agentId} selected={selected} total={stats.data?.totalEntries} onAsk={setAsked} onDone={changed} />
      )}
    </Page>
  );
}

function Selection({ count: selected, onDelete, onClear }: { readonly count: number; readonly onDelete: () => void; readonly onClear: () => void }) {
  return (
    <div className="selection" role="status">
      <span>{tx('{selected} chosen', { selected: count(selected) })}</span>
      <Button small icon="trash" onClick={onDelete}>
        {t('Delete selected')}
      </Button>
      <Button small look="quiet" onClick={onClear}>
        {t('Clear selection')}
      </Button>
    </div>
  );
}

function Pages({ offset, total, onOffset }: { readonly offset: number; readonly total: number; readonly onOffset: (offset: number) => void }) {
  return (
    <div className="pages">
      <Button small disabled={offset === 0} onClick={() => onOffset(Math.max(0, offset - pageSize))}>
        {t('Newer')}
      </Button>
      <span className="hint">
        {tx('{offset} to {total} of {total2}', { offset: count(offset + 1), total: count(Math.min(total, offset + pageSize)), total2: count(total) })}
      </span>
      <Button small disabled={offset + pageSize >= total} onClick={() => onOffset(offset + pageSize)}>
        {t('Older')}
      </Button>
    </div>
  );
}

/** The dialog that the user has asked for. */
function MemoryDialogs({
  asked,
  agentId,
  selected,
  total,
  onAsk,
  onDone,
}: {
  readonly asked: Asked;
  readonly agentId: string;
  readonly selected: ReadonlySet<string>;
  readonly total: number | undefined;
  readonly onAsk: (asked: Asked | undefined) => void;
  readonly onDone: (text: string) => void;
}) {
  const { client } = useSession();
  const close = (): void => onAsk(undefined);
  const dialog = { agentId, onClose: close, onDone };
  if (typeof asked === 'object') return <EntryDialog id={asked.id} onOpen={(id) => onAsk({ id })} onClose={close} />;
  if (asked === 'store') return <StoreDialog {...dialog} />;
  if (asked === 'maintenance') return <MaintenanceDialog {...dialog} />;
  if (asked === 'flush') return <FlushDialog {...dialog} total={total} />;
  return (
    <Confirm
      title={t('Delete {memories}?', { memories: plural(selected.size, 'memory', 'memories') })}
      action={t('Delete')}
      onClose={close}
      run={async () => {
        const { deleted, failed } = await client.call('memory.delete', { ids: [...selected] });
        onDone(
          t('Deleted {memories}{failed}.', {
            memories: plural(deleted, 'memory', 'memories'),
            failed: failed > 0 ? t('; {failed} were already deleted', { failed: count(failed) }) : '',
          }),
        );
      }}
    >
      <p>{t("Agents no longer recall them. This can't be undone.")}</p>
    </Confirm>
  );
}
