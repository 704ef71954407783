import type { Client } from '@gatehouse/client';
import { useSession } from './context.ts';
import type { LiveEvents } from './live.ts';
import { createStore, type Store, useStore } from './store.ts';

/** Names of agents by their ids, of those that were named. */
export type AgentNames = ReadonlyMap<string, string>;

/** The name of agents whose configuration names none. */
const unnamed = 'Gate';

/** Returns what agents are shown as: agents of the same name have their ids next to them. */
export function namesOf(agents: readonly { readonly id: string; readonly name: string }[]): AgentNames {
  const named = agents.filter(({ name }) => name !== unnamed);
  const isShared = (name: string): boolean => named.filter((one) => one.name === name).length > 1;
  return new Map(named.map(({ id, name }) => [id, isShared(name) ? `${name} (${id})` : name]));
}

/** Loads the names of the agents once the page is shown, and again when agents change. Pages show ids until then. */
export function createAgentNames(client: Pick<Client, 'agents'>, live: Pick<LiveEvents, 'listen'>): Store<AgentNames> {
  const names = createStore<AgentNames>(new Map());
  const load = (): void => {
    client.agents().then(
      (agents) => names.set(namesOf(agents)),
      () => undefined,
    );
  };
  load();
  live.listen(({ kind }) => {
    if (kind === 'config:patched' || kind.startsWith('agent:hot_')) load();
  });
  return names;
}

/** Returns what shows the agent of an id: its name, or the id itself. */
export function useAgentName(): (id: string) => string {
  const names = useStore(useSession().agentNames);
  return (id) => names.get(id) ?? id;
}
