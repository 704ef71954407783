import type { BrowserEngine } from './api.ts';

/** Loads the engine with the first browser, so that one that nobody uses costs nothing. */
export function openOnDemand(open: () => Promise<BrowserEngine>): BrowserEngine {
  let opening: Promise<BrowserEngine> | undefined;
  let opened: BrowserEngine | undefined;
  async function engine(): Promise<BrowserEngine> {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return (opened = await opening);
  }
  return {
    unavailable: async () => (await engine()).unavailable(),
    running: (agentId) => opened?.running(agentId),
    list: () => opened?.list() ?? [],
    start: async (agentId) => (await engine()).start(agentId),
    async stop(agentId, options) {
      if (opening !== undefined || options?.forget === true) await (await engine()).stop(agentId, options);
    },
    async [Symbol.asyncDispose]() {
      await (await opening?.catch(() => undefined))?.[Symbol.asyncDispose]();
    },
  };
}
