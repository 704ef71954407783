import { t } from '../language.ts';
import { useMemo, useState } from 'react';
import { useSession } from '../data/context.ts';
import { useConversations } from '../data/conversations.ts';
import { ago } from '../data/format.ts';
import { dueOf } from '../data/notices.ts';
import { useStore } from '../data/store.ts';
import { type ConfigSchema, useConfigSchema } from '../data/use-config.ts';
import { useLoad } from '../data/use-load.ts';
import { useSettled } from '../data/use-settled.ts';
import { findableSettings, sectionPath, shownId, shownSetting } from '../pages/settings/search-settings.ts';
import { mayLeave, navigate } from '../router.ts';
import { setTheme, theme } from '../theme.ts';
import { pathOf } from '../ui/object-link.tsx';
import { matching } from './matching.ts';

export interface PalettePage {
  readonly path: string;
  readonly name: string;
}

export interface Entry {
  readonly key: string;
  readonly label: string;
  readonly hint?: string | undefined;
  /** Compared, but not shown. */
  readonly about?: string | undefined;
  readonly open: () => void;
}

interface EntryGroup {
  readonly name: string;
  readonly entries: readonly Entry[];
}

interface FoundEntries {
  /** Groups that have entries. */
  readonly groups: readonly EntryGroup[];
  readonly loading: boolean;
  /** True when a group is missing because it could not be loaded. */
  readonly failed: boolean;
}

/** Most entries of a group, so that the others stay in view. */
const maxShown = 5;
/** Shorter texts are compared only with what the tab knows already. */
const minSearched = 2;
const maxConversations = 200;
const maxJobs = 200;
const maxGraphs = 200;
/** Newest runs of each kind that are compared. */
const maxRuns = 100;

const link = (key: string, label: string, to: string, hint?: string): Entry => ({ key, label, hint, open: () => navigate(to) });

/** Returns what has all terms of a text, by kind. Each kind is loaded once, when the text is long enough. */
export function useEntries(pages: readonly PalettePage[], query: string): FoundEntries {
  const { agents, agentNames, approvals, waiting } = useSession();
  const agentIds = useStore(agents);
  const names = useStore(agentNames);
  const pending = useStore(approvals.state);
  const others = useStore(waiting.state);
  const actions = useActions();
  const conversations = useConversations(maxConversations, {}).data?.sessions;
  const objects = useObjects(query);
  const wanted = query.trim();
  const groups = useMemo(() => {
    const group = (name: string, entries: readonly Entry[]): EntryGroup => ({ name, entries: matching(entries, wanted).slice(0, maxShown) });
    const agentName = (id: string): string => names.get(id) ?? id;
    const { jobs, runs, graphs, webhooks, settings, messages } = wanted.length < minSearched ? nothing : objects.found;
    return [
      group(t('Actions'), actions),
      group(
        t('Pages'),
        pages.map(({ path, name }) => link(path, name, path)),
      ),
      group(
        t('Waiting for you'),
        dueOf(pending, others).map(({ key, title, text }) => link(`waiting ${key}`, text, `/waiting/${encodeURIComponent(key)}`, title)),
      ),
      group(
        t('Agents'),
        agentIds.map((id) => link(`agent ${id}`, agentName(id), `/agents/${id}`, id)),
      ),
      group(
        t('Conversations'),
        (conversations ?? []).map(({ conversationRef, title, sessionKey, agentId, updatedAt }) =>
          link(conversationRef, title ?? sessionKey, `/chat/${conversationRef}`, `${agentName(agentId)} · ${ago(updatedAt)}`),
        ),
      ),
      group(
        t('Jobs'),
        jobs.map(({ id, name, agentId }) => link(id, name, `/schedule/${id}`, agentName(agentId))),
      ),
      group(
        t('Runs'),
        runs.flatMap(({ id, name, agentId, startedAt }) => {
          const path = pathOf(id);
          return name === undefined || path === undefined ? [] : [link(id, name, path, `${agentName(agentId)} · ${ago(startedAt)}`)];
        }),
      ),
      group(
        t('Graphs'),
        graphs.map(({ id, name, updatedAt }) => link(id, name, `/graphs/edit/${id}`, ago(updatedAt))),
      ),
      group(
        t('Webhooks'),
        webhooks.map(({ mapping, name, agentId }) =>
          link(`webhook ${mapping}`, name ?? mapping, `/webhooks/${encodeURIComponent(mapping)}`, name === null ? agentName(agentId) : mapping),
        ),
      ),
      group(t('Settings'), settings),
      // The gateway compares these.
      {
        name: t('Messages'),
        entries: messages
          .slice(0, maxShown)
          .map(({ conversationRef, seq, title, sessionKey, snippet }) =>
            link(`${conversationRef} ${seq}`, title ?? sessionKey, `/conversations/${conversationRef}/${seq}`, snippet),
          ),
      },
    ].filter(({ entries }) => entries.length > 0);
  }, [wanted, pages, actions, agentIds, names, pending, others, conversations, objects.found]);
  return { groups, loading: objects.loading, failed: objects.failed };
}

/** Actions that the navigation, or a page for this token, offers too. */
function useActions(): readonly Entry[] {
  const { admin, chats, logOut } = useSession();
  const current = useStore(theme);
  return useMemo(
    () => [
      {
        key: 'new-chat',
        label: t('New chat'),
        open: () => {
          chats.begin();
          navigate('/chat');
        },
      },
      link('new-job', t('New job'), '/schedule/new'),
      link('run-graph', t('Run a graph'), '/graphs'),
      ...(admin ? [link('new-webhook', t('New webhook'), sectionPath('webhooks', { id: 'webhooks.mappings' }))] : []),
      ...(
        [
          ['light', t('Switch to light colours')],
          ['dark', t('Switch to dark colours')],
          ['system', t('Switch to the colours of the system')],
        ] as const
      )
        .filter(([name]) => name !== current)
        .map(([name, label]) => ({ key: `theme-${name}`, label, open: () => setTheme(name) })),
      { key: 'log-out', label: t('Log out'), open: () => void (mayLeave() && logOut()) },
    ],
    [admin, chats, logOut, current],
  );
}

/** Loads what only the gateway knows. Parts that the token may not read stay empty. */
function useObjects(query: string) {
  const { client, admin } = useSession();
  const settled = useSettled(query);
  const isLong = settled.length >= minSearched;
  const [wasLong, setWasLong] = useState(isLong);
  if (isLong && !wasLong) setWasLong(true);
  // Kept while the text is changed.
  const lists = { enabled: wasLong };
  const adminLists = { enabled: wasLong && admin };
  const jobs = useLoad(['palette.jobs'], (signal) => client.call('cron.list', { limit: maxJobs }, { signal }), lists);
  const runs = useLoad(['palette.runs', 'run'], (signal) => client.call('run.executions', { kind: 'run', limit: maxRuns }, { signal }), lists);
  const graphRuns = useLoad(
    ['palette.runs', 'graph'],
    (signal) => client.call('run.executions', { kind: 'graph', limit: maxRuns }, { signal }),
    lists,
  );
  const graphs = useLoad(['palette.graphs'], (signal) => client.call('graph.list', { limit: maxGraphs }, { signal }), lists);
  const webhooks = useLoad(['palette.webhooks'], (signal) => client.call('webhooks.list', {}, { signal }), adminLists);
  const schema = useConfigSchema(adminLists);
  const messages = useLoad(['palette.search', settled], (signal) => client.call('session.search', { query: settled, limit: maxShown }, { signal }), {
    enabled: isLong,
    keepsPrevious: ([name]) => name === 'palette.search',
  });
  const settings = useMemo(() => (schema.data === undefined ? [] : settingEntries(schema.data)), [schema.data]);
  const found = useMemo(
    () => ({
      jobs: jobs.data?.jobs ?? [],
      runs: [...(runs.data?.executions ?? []), ...(graphRuns.data?.executions ?? [])].toSorted((a, b) => b.startedAt - a.startedAt),
      graphs: graphs.data?.entries ?? [],
      webhooks: webhooks.data?.webhooks ?? [],
      settings,
      messages: messages.data?.mode === 'search' ? messages.data.results : [],
    }),
    [jobs.data, runs.data, graphRuns.data, graphs.data, webhooks.data, settings, messages.data],
  );
  const loads = [jobs, runs, graphRuns, graphs, webhooks, schema, messages];
  return { found, loading: settled !== query.trim() || loads.some(({ loading }) => loading), failed: loads.some(({ error }) => error !== undefined) };
}

function settingEntries({ sections, lookup }: ConfigSchema): readonly Entry[] {
  const all = findableSettings(sections, lookup);
  return all.flatMap((one) => {
    const shown = shownSetting(one, all);
    if (shown === undefined) return [];
    const { id, title, description } = one.setting;
    return [{ ...link(`setting ${id}`, title, sectionPath(String(shown.path[0]), shown), shownId(one.setting)), about: description }];
  });
}

const nothing: ReturnType<typeof useObjects>['found'] = { jobs: [], runs: [], graphs: [], webhooks: [], settings: [], messages: [] };
