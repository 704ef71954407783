import type { Core } from '../../../kernel/core.ts';
import { createSeal } from '../../../kernel/seal.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { Profiles } from './engine/browsers.ts';
import type { Recordings } from './recording/recordings.ts';
import { deleteBrowserProfile, listBrowserProfiles, loadBrowserProfile, saveBrowserProfile } from './store.ts';

/** Keeps cookies and storage of browsers in the database, encrypted under a key of the installation. */
export function createProfiles({ db, clock, key }: Pick<Core, 'db' | 'clock'> & { readonly key: Buffer }): Profiles {
  const seal = createSeal(key);
  return {
    async load(agentId) {
      const sealed = await db.read(loadBrowserProfile, { agentId });
      // Sealed under another install key: the agent logs in again.
      return sealed === null ? undefined : seal.open(agentId, sealed);
    },
    save: (agentId, state) => db.write(saveBrowserProfile, { agentId, sealed: seal.close(agentId, state), savedAtMs: clock.now() }),
    remove: (agentId) => db.write(deleteBrowserProfile, { agentId }),
  };
}

/** Deletes profiles and recordings of agents that were removed while the daemon was down: a later agent of the same id must not get them. */
export async function removeStaleProfiles({
  db,
  log,
  agents,
  recordings,
}: Pick<Core, 'db' | 'log'> & { readonly agents: Pick<AgentsApi, 'find'>; readonly recordings: Recordings }): Promise<void> {
  try {
    for (const agentId of await recordings.agents()) if (agents.find(agentId) === undefined) await recordings.removeAgent(agentId);
    for (const agentId of await db.read(listBrowserProfiles, {})) {
      if (agents.find(agentId) !== undefined) continue;
      await db.write(deleteBrowserProfile, { agentId });
      log.info({ agentId }, 'Removed the browser logins of an agent that does not exist any more');
    }
  } catch (error) {
    log.warn({ err: error }, 'Failed to remove browser logins and recordings of agents that do not exist any more; the next start tries again');
  }
}
