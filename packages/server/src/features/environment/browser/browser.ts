import type { Clock } from '../../../kernel/clock.ts';
import type { Live } from '../../../kernel/config/live.ts';
import { newId } from '../../../kernel/ids.ts';
import { makeFoldersInside, writeFileInside } from '../../../kernel/safe-path.ts';
import type { Log } from '../../../kernel/log.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { FileTaints, WorkspaceCapacity } from '../workspace/api.ts';
import type { BrowserEngine } from './api.ts';
import type { BrowserConfig } from './config.ts';
import { type BrowserMethods, type BrowserMethodsDeps, createBrowserMethods } from './methods.ts';
import { Recorder } from './recording/recorder.ts';
import { createRecordingMethods, type RecordingMethods } from './recording/methods.ts';
import type { Recordings } from './recording/recordings.ts';
import { createBrowserTool } from './tool.ts';

export interface BrowserDeps extends Omit<BrowserMethodsDeps, 'browsers' | 'config' | 'agents' | 'recorder'> {
  readonly log: Log;
  readonly config: Live<BrowserConfig>;
  readonly agents: AgentsApi;
  readonly capacity: Pick<WorkspaceCapacity, 'assertCapacity'>;
  readonly taints: Pick<FileTaints, 'mark'>;
  readonly engine: BrowserEngine;
  readonly recordings: Recordings;
  readonly processClock: Clock;
}

export interface Browser extends AsyncDisposable {
  readonly methods: BrowserMethods & RecordingMethods;
  readonly recordings: Recordings;
  /** Empty while browsers are switched off. */
  tools(): readonly Tool[];
  /** Ends the browser of an agent, which keeps its logins. */
  end(agentId: string): void;
  /** Ends the browser of an agent that was deleted, with its logins. */
  forgetAgent(agentId: string): void;
}

const maxFileBytes = 104_857_600;
const none: readonly Tool[] = [];

/** Browsers of agents: at most one each, started on demand. Disposing ends them; their logins are kept. */
export function createBrowser(deps: BrowserDeps): Browser {
  const { agents, capacity, config, engine, log, recordings, taints } = deps;
  const recorder = new Recorder(deps);
  const methods = createBrowserMethods({ ...deps, recorder, browsers: engine });

  async function keepFile(agentId: string, bytes: Buffer, extension: 'png' | 'jpg' | 'pdf'): Promise<string> {
    const agent = agents.find(agentId);
    if (agent === undefined) throw new TypeError('the agent of a turn exists');
    const folder = extension === 'pdf' ? 'media/documents' : 'media/images';
    await capacity.assertCapacity(agent.workspaceDir, { bytes: bytes.byteLength, files: 1 });
    await makeFoldersInside(agent.workspaceDir, [folder]);
    const path = `${folder}/${newId('page').replace('_', '-')}.${extension}`;
    await taints.mark({ agentId, workspaceDir: agent.workspaceDir }, path, true, bytes);
    await writeFileInside(agent.workspaceDir, path, bytes, { maxBytes: maxFileBytes });
    return path;
  }

  const unwatched = (ending: Promise<unknown>, agentId: string) =>
    void ending.catch((error: unknown) => log.error({ err: error, agentId }, 'Failed to end the browser of an agent'));

  /** A later agent of the same id must not get what is left. */
  async function forget(agentId: string): Promise<void> {
    try {
      await engine.stop(agentId, { forget: true });
    } finally {
      await recorder.forget(agentId);
    }
  }

  const switched = config.onChange(async ({ enabled }) => {
    if (!enabled) await Promise.all(engine.list().map((agentId) => engine.stop(agentId)));
  });
  const offered: readonly Tool[] = [createBrowserTool({ methods, keepFile })];

  return {
    methods: { ...methods, ...createRecordingMethods({ ...deps, recorder, browsers: engine }) },
    recordings,
    tools: () => (config.current.enabled ? offered : none),
    end: (agentId) => unwatched(engine.stop(agentId), agentId),
    forgetAgent: (agentId) => unwatched(forget(agentId), agentId),
    async [Symbol.asyncDispose]() {
      switched[Symbol.dispose]();
      await engine[Symbol.asyncDispose]();
      await recorder.settled();
    },
  };
}
