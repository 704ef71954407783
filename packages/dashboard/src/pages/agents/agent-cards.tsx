import { t, tx } from '../../language.ts';
import type { Client } from '@gatehouse/client';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type Loaded, useLoad } from '../../data/use-load.ts';
import { navigate } from '../../router.ts';
import { Button, Failure, Skeleton } from '../../ui/parts.tsx';
import { type Agent, AgentCard } from './agent-card.tsx';

/** Each card is a request that counts against the rate limit of the token, so only visible ones are loaded. */
export const pageSize = 12;

export interface AgentCardList {
  /** Ids that match the search, the default agent first. */
  readonly found: readonly string[];
  readonly shown: readonly string[];
  readonly known: ReadonlyMap<string, Agent>;
  readonly isLoading: boolean;
  readonly error: unknown;
  readonly retry: () => void;
  readonly showMore: () => void;
  /** Loads one agent again. */
  readonly refresh: (agentId: string) => Promise<void>;
}

/** Loads the agents of the first cards that match a search, and keeps those that were loaded. */
export function useAgentCards(ids: readonly string[], query: string): AgentCardList {
  const { client, defaultAgentId } = useSession();
  const [known, setKnown] = useState<ReadonlyMap<string, Agent>>(new Map());
  const [limit, setLimit] = useState(pageSize);
  const wanted = query.trim().toLocaleLowerCase();
  const found = ids
    .filter((id) => `${id} ${known.get(id)?.config.name ?? ''}`.toLocaleLowerCase().includes(wanted))
    .toSorted((a, b) => Number(b === defaultAgentId) - Number(a === defaultAgentId));
  const shown = found.slice(0, limit);
  const missing = shown.filter((id) => !known.has(id));
  const put = (agents: readonly Agent[]): void => setKnown((before) => new Map([...before, ...agents.map((one) => [one.agentId, one] as const)]));
  const { error, reload }: Loaded<void> = useLoad(['agents.get', missing], async (signal) => put(await loadAgents(client, missing, signal)));
  return {
    found,
    shown,
    known,
    isLoading: missing.length > 0 && error === undefined && known.size === 0,
    error,
    retry: reload,
    showMore: () => setLimit(limit + pageSize),
    refresh: async (agentId) => put([await client.call('agents.get', { agentId })]),
  };
}

async function loadAgents(client: Client, ids: readonly string[], signal: AbortSignal): Promise<readonly Agent[]> {
  if (ids.length === 0) return [];
  const outcomes = await client.batch(
    ids.map((agentId) => ({ method: 'agents.get', params: { agentId } }) as const),
    { signal },
  );
  const failed = outcomes.find((outcome) => !outcome.ok && outcome.error.code !== 'not_found');
  if (failed !== undefined && !failed.ok) throw failed.error;
  // An agent deleted between the two requests is skipped.
  return outcomes.flatMap((outcome) => (outcome.ok ? [outcome.result] : []));
}

/** The cards of `useAgentCards`. */
export function AgentCards({
  cards: { found, shown, known, isLoading, error, retry, showMore },
  onEdit,
  onRemove,
  onSwitch,
}: {
  readonly cards: AgentCardList;
  readonly onEdit: (agent: Agent) => void;
  readonly onRemove: (agent: Agent) => void;
  /** Suspends or resumes an agent. */
  readonly onSwitch: (agent: Agent) => void;
}) {
  const { chats } = useSession();
  return (
    <>
      {error !== undefined && <Failure error={error} onRetry={retry} />}
      {found.length === 0 && <p className="hint">{t('No matching agents.')}</p>}
      {isLoading && <Skeleton lines={6} />}
      <ul className="cards">
        {shown
          .flatMap((id) => known.get(id) ?? [])
          .map((agent) => (
            <li key={agent.agentId} className="card">
              <AgentCard
                agent={agent}
                onChat={() => {
                  chats.begin(agent.agentId);
                  navigate('/chat');
                }}
                onEdit={() => onEdit(agent)}
                onRemove={() => onRemove(agent)}
                onSwitch={() => onSwitch(agent)}
              />
            </li>
          ))}
      </ul>
      {found.length > shown.length && (
        <div>
          <Button onClick={showMore}>{tx('Show more ({found})', { found: found.length - shown.length })}</Button>
        </div>
      )}
    </>
  );
}
