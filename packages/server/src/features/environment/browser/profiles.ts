import type { Core } from '../../../kernel/core.ts';
import { createSeal } from '../../../kernel/seal.ts';
import type { Profiles } from './engine/browsers.ts';
import { deleteBrowserProfile, loadBrowserProfile, saveBrowserProfile } from './store.ts';

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
