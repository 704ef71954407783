import { join } from 'node:path';
import type { AgentsApi } from '../features/agents/agents/api.ts';
import { defaultAgentOf } from '../features/conversations/turns/preparation/resolve-target.ts';
import { createBrowser } from '../features/environment/browser/browser.ts';
import { openOnDemand } from '../features/environment/browser/on-demand.ts';
import { Recordings } from '../features/environment/browser/recording/recordings.ts';
import { createProfiles, removeStaleProfiles } from '../features/environment/browser/profiles.ts';
import { isInternal } from '../features/environment/workspace/taint/internal-names.ts';
import { systemClock } from '../kernel/clock.ts';
import type { Assembly } from './assembly.ts';
import type { Tooling } from './tooling.ts';

export interface BrowserWiring {
  readonly agents: AgentsApi;
  readonly tooling: Pick<Tooling, 'workspace' | 'openedJail'>;
}

/** Wires the browsers of agents. Nothing is loaded before one is used. */
export async function wireBrowser({ building, options, environment, live, core }: Assembly, { agents, tooling }: BrowserWiring) {
  const { home, installKey, overrides, redactor } = options;
  const config = live(({ browser }) => browser);
  const { capacity, taints } = tooling.workspace;
  const basics = core('browser');
  // Before an agent can be created.
  const recordings = new Recordings(join(home.dataDir, 'browser-recordings'));
  await removeStaleProfiles({ ...basics, agents, recordings });
  const engine = openOnDemand(async () => {
    const { BrowserPool } = await import('../features/environment/browser/engine/browsers.ts');
    return new BrowserPool({
      processClock: systemClock,
      log: basics.log,
      config,
      jail: tooling.openedJail,
      dial: { ...overrides?.egress },
      dir: join(home.dataDir, 'browsers'),
      profiles: createProfiles({ db: basics.db, clock: basics.clock, key: installKey.derive('browser') }),
      secret(name) {
        const value = environment[name];
        // A page may show it; those of the store are hidden anyway.
        if (value !== undefined) redactor.add([value]);
        return value;
      },
      isInternal,
      capacity,
      taints,
    });
  });
  return building.use(
    createBrowser({
      ...basics,
      config,
      engine,
      processClock: systemClock,
      recordings,
      agents,
      defaultAgentOf: (call) => defaultAgentOf(agents, call.identity),
      hideSecrets: redactor.hide,
      capacity,
      taints,
    }),
  );
}
