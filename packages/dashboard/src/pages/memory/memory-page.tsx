import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { count, plural } from '../../data/format.ts';
import { useStore } from '../../data/store.ts';
import { useLoad } from '../../data/use-load.ts';
import { saveJson } from '../../ui/save-json.ts';
import { Confirm } from '../../ui/dialog.tsx';
import { Button, Empty, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { EntryDialog } from './entry-dialog.tsx';
import { EntryList } from './entry-list.tsx';
import { FlushDialog } from './flush-dialog.tsx';
import { exportMemories, type Filters, findMemories, memoryTypes, noFilters, pageSize, trustLevels } from './find-memories.ts';
import { MemoryStats } from './memory-stats.tsx';
import { StoreDialog } from './store-dialog.tsx';
import { MaintenanceDialog } from './maintenance-dialog.tsx';

type Asked = 'store' | 'flush' | 'maintenance' | 'delete' | { readonly id: string };
const settleMs = 300;

/** Browses memories, or searches them and explains each result. */
export function MemoryPage() {
  const { client, admin, agents, defaultAgentId } = useSession();
  const agentIds = useStore(agents);
  const [agentId, setAgentId] = useState(defaultAgentId);
  const [input, setInput] = useState('');
  const [query, setQuery] = useState('');
  const [filters, setFilters] = useState<Filters>(noFilters);
  const [offset, setOffset] = useState(0);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [asked, setAsked] = useState<Asked>();
  const [outcome, setOutcome] = useState<string>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);

  useEffect(() => {
    const timer = setTimeout(() => setQuery(input.trim()), settleMs);
    return () => clearTimeout(timer);
  }, [input]);

  const found = useLoad(`memory ${agentId} ${query} ${offset} ${JSON.stringify(filters)}`, (signal) =>
    findMemories(client, { agentId, query, filters, offset }, signal),
  );
  const stats = useLoad(`memory stats ${agentId}`, (signal) => client.call('memory.stats', { agentId }, { signal }));

  const filter = (part: Partial<Filters>): void => {
    setFilters({ ...filters, ...part });
    setOffset(0);
    setSelected(new Set());
  };
  const changed = (text: string): void => {
    setOutcome(text);
    setSelected(new Set());
    found.reload();
    stats.reload();
  };
  const ask = (next: Asked): void => {
    setOutcome(undefined);
    setError(undefined);
    setAsked(next);
  };
  const close = (): void => setAsked(undefined);
  const download = (): void => {
    setBusy(true);
    setError(undefined);
    exportMemories(client, agentId)
      .then((whole) => saveJson(`memory-${agentId}.json`, whole), setError)
      .finally(() => setBusy(false));
  };
  const { data } = found;

  return (
    <Page
      title="Memory"
      lead={admin ? 'What agents remember across conversations.' : 'What agents remember from your conversations, and what is shared with everyone.'}
      actions={
        admin && (
          <>
            <Button icon="download" onClick={download} disabled={busy}>
              {busy ? 'Exporting…' : 'Export'}
            </Button>
            <Button onClick={() => ask('maintenance')}>Maintenance</Button>
            <Button onClick={() => ask('flush')}>Flush</Button>
            <Button icon="plus" look="primary" onClick={() => ask('store')}>
              Store
            </Button>
          </>
        )
      }
    >
      {error !== undefined && <Failure error={error} />}
      <div role="status">{outcome !== undefined && <Notice tone="good">{outcome}</Notice>}</div>
      {found.error === undefined && <MemoryStats stats={stats} />}
      <div className="toolbar">
        <SearchField
          label="Search memories"
          hint="Search by terms and meaning"
          value={input}
          onChange={(next) => {
            setInput(next);
            setOffset(0);
            setSelected(new Set());
          }}
        />
        {agentIds.length > 1 && (
          <select
            aria-label="Agent"
            value={agentId}
            onChange={({ target: { value } }) => {
              setAgentId(value);
              setOffset(0);
              setSelected(new Set());
            }}
          >
            {[...new Set([agentId, ...agentIds])].map((id) => (
              <option key={id}>{id}</option>
            ))}
          </select>
        )}
        <select
          aria-label="Type"
          value={filters.type ?? ''}
          onChange={({ target: { value } }) => filter({ type: memoryTypes.find((one) => one === value) })}
        >
          <option value="">All types</option>
          {memoryTypes.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <select
          aria-label="Trust"
          value={filters.trust ?? ''}
          onChange={({ target: { value } }) => filter({ trust: trustLevels.find((one) => one === value) })}
        >
          <option value="">Any trust</option>
          {trustLevels.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <TagFilter tag={filters.tag} onChange={(tag) => filter({ tag })} />
      </div>
      {admin && selected.size > 0 && (
        <div className="selection" role="status">
          <span>{count(selected.size)} chosen</span>
          <Button small icon="trash" onClick={() => ask('delete')}>
            Delete selected
          </Button>
          <Button small look="quiet" onClick={() => setSelected(new Set())}>
            Clear selection
          </Button>
        </div>
      )}
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={8} />}
      {data !== undefined && data.entries.length === 0 && (
        <Empty title={query === '' && filters === noFilters ? 'No memories yet' : 'Nothing found'}>
          <p>Memories come from reviews of conversations, or are stored here.</p>
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
      {data?.total !== undefined && data.total > pageSize && (
        <div className="pages">
          <Button small disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - pageSize))}>
            Newer
          </Button>
          <span className="hint">
            {count(offset + 1)} to {count(Math.min(data.total, offset + pageSize))} of {count(data.total)}
          </span>
          <Button small disabled={offset + pageSize >= data.total} onClick={() => setOffset(offset + pageSize)}>
            Older
          </Button>
        </div>
      )}
      {asked === 'store' && <StoreDialog agentId={agentId} onClose={close} onDone={changed} />}
      {asked === 'maintenance' && <MaintenanceDialog agentId={agentId} onClose={close} onDone={changed} />}
      {asked === 'flush' && <FlushDialog agentId={agentId} total={stats.data?.totalEntries} onClose={close} onDone={changed} />}
      {asked === 'delete' && (
        <Confirm
          title={`Delete ${plural(selected.size, 'memory', 'memories')}?`}
          action="Delete"
          onClose={close}
          run={async () => {
            const { deleted, failed } = await client.call('memory.delete', { ids: [...selected] });
            changed(`Deleted ${plural(deleted, 'memory', 'memories')}${failed > 0 ? `; ${count(failed)} were already deleted` : ''}.`);
          }}
        >
          <p>Agents no longer recall them. This can't be undone.</p>
        </Confirm>
      )}
      {typeof asked === 'object' && <EntryDialog id={asked.id} onOpen={(id) => setAsked({ id })} onClose={close} />}
    </Page>
  );
}

function TagFilter({ tag, onChange }: { readonly tag: string | undefined; readonly onChange: (tag: string | undefined) => void }) {
  const [draft, setDraft] = useState('');
  if (tag !== undefined)
    return (
      <button type="button" className="chip" aria-pressed="true" onClick={() => onChange(undefined)} aria-label={`Remove filter: tag ${tag}`}>
        {tag} ×
      </button>
    );
  return (
    <form
      className="tag-filter"
      onSubmit={(event) => {
        event.preventDefault();
        if (draft.trim() !== '') onChange(draft.trim());
        setDraft('');
      }}
    >
      <input aria-label="Tag" placeholder="Tag" value={draft} onChange={(event) => setDraft(event.target.value)} />
    </form>
  );
}
