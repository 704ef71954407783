import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../../kernel/clock.ts';
import { fixed } from '../../../../kernel/config/live.ts';
import { openJail } from '../../../../kernel/jail.ts';
import { silentLog } from '../../../../kernel/log.ts';
import { allClean } from '../../workspace/file-tools/testing.ts';
import type { ActContext } from '../api.ts';
import { BrowserConfig } from '../config.ts';
import { BrowserPool, type BrowsersDeps } from '../engine/browsers.ts';

export interface OpenBrowsers extends AsyncDisposable {
  readonly pool: BrowserPool;
  readonly base: string;
  readonly profiles: Map<string, string>;
  readonly context: ActContext;
}

/** Opens browsers in a jail with a workspace, for tests. */
export async function openBrowsers({
  config = {},
  ...over
}: Partial<Omit<BrowsersDeps, 'config'>> & { readonly config?: object } = {}): Promise<OpenBrowsers> {
  const jail = await openJail({ clock: systemClock });
  const base = mkdtempSync(join(realpathSync(tmpdir()), 'gatehouse-browser-'));
  const profiles = new Map<string, string>();
  const pool = new BrowserPool({
    processClock: systemClock,
    log: silentLog,
    config: fixed(BrowserConfig().parse(config)),
    jail: async () => jail,
    dial: {},
    dir: join(base, 'browser'),
    profiles: {
      load: async (agentId) => profiles.get(agentId),
      save: async (agentId, state) => void profiles.set(agentId, state),
      remove: async (agentId) => void profiles.delete(agentId),
    },
    secret: () => undefined,
    isInternal: () => false,
    capacity: { assertCapacity: async () => {} },
    taints: allClean,
    ...over,
  });
  return {
    pool,
    base,
    profiles,
    context: { workspaceDir: join(base, 'workspace'), signal: new AbortController().signal },
    async [Symbol.asyncDispose]() {
      await pool[Symbol.asyncDispose]();
      await jail[Symbol.asyncDispose]();
      rmSync(base, { recursive: true, force: true });
    },
  };
}
