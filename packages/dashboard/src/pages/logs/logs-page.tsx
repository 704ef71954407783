import { t, tx } from '../../language.ts';
import type { LogLine } from '@gatehouse/contract';
import { memo, useMemo, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { clockTime, dateTime, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { Icon } from '../../ui/icon.tsx';
import { JsonTree } from '../../ui/json-tree.tsx';
import { PageLink } from '../../ui/link.tsx';
import { objectOf, pathOf } from '../../ui/object-link.tsx';
import { AdminOnly, Badge, Button, Empty, Failure, Notice, Page, type Tone } from '../../ui/parts.tsx';
import { SearchField } from '../../ui/search-field.tsx';
import { type DaemonLog, useDaemonLog } from './use-daemon-log.ts';

type Level = LogLine['level'];
const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const satisfies readonly Level[];
const tones: Readonly<Record<Level, Tone>> = { trace: 'neutral', debug: 'neutral', info: 'neutral', warn: 'warn', error: 'bad', fatal: 'bad' };
const maxShown = 300;

const connections: Readonly<Record<DaemonLog['connection'], { readonly tone: Tone; readonly text: string }>> = {
  connecting: { tone: 'neutral', text: t('Connecting…') },
  open: { tone: 'good', text: t('Live') },
  waiting: { tone: 'warn', text: t('Connection lost, reconnecting') },
  refused: { tone: 'bad', text: t('Not connected') },
};

/** The log of the daemon, live, newest line first. */
export function LogsPage() {
  return useSession().admin ? <Logs /> : <AdminOnly title={t('Logs')} />;
}

function Logs() {
  const { lines, modules, connection, error, clear } = useDaemonLog();
  const [level, setLevel] = useState<Level>('trace');
  const [module, setModule] = useState('');
  const [query, setQuery] = useState('');
  const [frozen, setFrozen] = useState<readonly LogLine[]>();
  const shown = useMemo(() => select(frozen ?? lines, { level, module, query }), [frozen, lines, level, module, query]);
  const names = useMemo(() => [...new Set([...modules, ...lines.flatMap((line) => line.module ?? [])])].toSorted(), [modules, lines]);
  const state = connections[connection];
  return (
    <Page
      title={t('Logs')}
      lead={t('The log of the daemon, live. It keeps the newest 500 lines in memory; a service manager keeps all of them.')}
      actions={
        <>
          <Badge tone={state.tone}>{state.text}</Badge>
          <Button icon={frozen === undefined ? 'pause' : 'play'} onClick={() => setFrozen(frozen === undefined ? lines : undefined)}>
            {frozen === undefined ? t('Pause') : t('Resume')}
          </Button>
          <Button
            icon="trash"
            onClick={() => {
              clear();
              setFrozen(undefined);
            }}
          >
            {t('Clear')}
          </Button>
        </>
      }
    >
      <div className="toolbar">
        <label className="inline-field">
          {tx('Show from {select}', {
            select: (
              <select value={level} onChange={({ target }) => setLevel(levels.find((one) => one === target.value) ?? 'trace')}>
                {levels.map((one) => (
                  <option key={one}>{one}</option>
                ))}
              </select>
            ),
          })}
        </label>
        <select aria-label={t('Module')} value={module} onChange={({ target }) => setModule(target.value)}>
          <option value="">{t('All modules')}</option>
          {names.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <SearchField label={t('Search the lines')} hint={t('Search')} value={query} onChange={setQuery} />
        <span className="grow" />
        <WrittenLevel module={module} />
      </div>
      {error !== undefined && <Failure error={error} />}
      {shown.length === 0 ? (
        error === undefined && <Empty title={lines.length === 0 ? t('No lines yet') : t('No matching lines')} />
      ) : (
        <>
          <p className="hint">
            {plural(shown.length, 'line')}
            {shown.length > maxShown && t(', showing the newest {maxShown}', { maxShown })}
          </p>
          <ol className="feed" aria-label={t('Log lines')}>
            {shown.slice(0, maxShown).map((line) => (
              <li key={line.id}>
                <Line line={line} />
              </li>
            ))}
          </ol>
        </>
      )}
    </Page>
  );
}

/** Changes what is written at all, of one module or of all, until the next start. */
function WrittenLevel({ module }: { readonly module: string }) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const [changed, setChanged] = useState<string>();
  const change = async (level: Level): Promise<void> => {
    await client.call('daemon.setLogLevel', { level, ...(module !== '' && { module }) });
    setChanged(
      t('{module} from {level} on, until the next start.', {
        module: module === '' ? t('All modules write') : t('{module} writes', { module }),
        level,
      }),
    );
  };
  return (
    <>
      <label className="inline-field">
        {tx('Write from {select}', {
          select: (
            <select
              value=""
              disabled={busy}
              title={module === '' ? t('Of all modules') : t('Of {module}', { module })}
              onChange={({ target }) => {
                const level = levels.find((one) => one === target.value);
                if (level !== undefined) run(() => change(level));
              }}
            >
              <option value="">{t('Change…')}</option>
              {levels.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          ),
        })}
      </label>
      <div role="status">{changed !== undefined && <Notice tone="good">{changed}</Notice>}</div>
      {error !== undefined && <Failure error={error} />}
    </>
  );
}

const Line = memo(function Line({ line: { timestamp, level, module, message, fields } }: { readonly line: LogLine }) {
  const [open, setOpen] = useState(false);
  const object = objectOf(fields);
  const trace = [fields['turnId'], fields['traceId']].find((id) => typeof id === 'string' && pathOf(id) !== undefined);
  const details = (
    <details className="feed-entry" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <time dateTime={new Date(timestamp).toISOString()} title={dateTime(timestamp)}>
          {clockTime(timestamp)}
        </time>
        <span className={`feed-kind ${tones[level]}`}>{module === undefined ? level : `${level} · ${module}`}</span>
        <span className="feed-text" dir="auto">
          {message} <span className="hint">{summaryOf(fields)}</span>
        </span>
      </summary>
      {open && <JsonTree value={{ time: new Date(timestamp).toISOString(), level, ...(module !== undefined && { module }), message, ...fields }} />}
    </details>
  );
  return (
    <div className="feed-row">
      {details}
      <span className="feed-actions">
        {object !== undefined && (
          <PageLink to={object.path} className="icon-button" label={t('Open {name}', { name: object.name })}>
            <Icon name="branch" />
          </PageLink>
        )}
        {trace !== undefined && (
          <PageLink to={`/traces/${String(trace)}`} className="icon-button" label={t('Open trace')}>
            <Icon name="pulse" />
          </PageLink>
        )}
      </span>
    </div>
  );
});

function summaryOf(fields: LogLine['fields']): string {
  return Object.entries(fields)
    .map(
      ([name, value]) =>
        `${name}=${typeof value === 'object' && value !== null && 'message' in value ? String(value['message']) : typeof value === 'string' ? value : JSON.stringify(value)}`,
    )
    .join(' ')
    .slice(0, 300);
}

function select(
  lines: readonly LogLine[],
  { level, module, query }: { readonly level: Level; readonly module: string; readonly query: string },
): readonly LogLine[] {
  const least = levels.indexOf(level);
  const wanted = query.trim().toLocaleLowerCase();
  return lines
    .filter((line) => levels.indexOf(line.level) >= least && (module === '' || line.module === module))
    .filter((line) => wanted === '' || JSON.stringify(line).toLocaleLowerCase().includes(wanted))
    .toReversed();
}
