import type { AgentsApi } from '../features/agents/agents/api.ts';
import type { AutonomyApi } from '../features/delegation/autonomy/api.ts';
import type { ModelWork } from '../features/access/budgets/api.ts';
import type { DurableWork } from '../features/unattended/durable/api.ts';
import type { InboxApi } from '../features/unattended/inbox/api.ts';
import type { MediaLibrary } from '../features/environment/media/api.ts';
import type { SessionsApi } from '../features/conversations/sessions/api.ts';
import type { TurnsApi } from '../features/conversations/turns/api.ts';
import type { Identity } from '../kernel/call-context.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Db } from '../kernel/db/db.ts';
import type { EventBus } from '../kernel/event-bus.ts';
import type { WorkspaceRoom } from '../features/environment/workspace/api.ts';
import type { Jail } from '../kernel/jail.ts';
import type { FileTaints } from '../features/environment/workspace/api.ts';
import type { FenceLabel } from '../runtime/fence.ts';
import type { Tool } from '../runtime/tool.ts';
import type { ServerOptions } from '../server-handle.ts';
import { createGraphPart } from './graphs.ts';
import { createSubagentPart } from './subagents.ts';
import { createTalk } from './messaging.ts';

export interface TeamsDeps {
  /** Owns what is built here. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Of this run of the daemon. */
  readonly bootId: string;
  readonly agents: AgentsApi;
  readonly autonomy: AutonomyApi;
  readonly durable: DurableWork;
  readonly inbox: InboxApi;
  readonly sessions: SessionsApi;
  readonly turns: TurnsApi;
  readonly toolsOf: (agentId: string) => readonly Tool[];
  /** Opened when it is first needed. */
  readonly jail: () => Promise<Jail>;
  readonly room: WorkspaceRoom;
  readonly knowsModel: (name: string) => boolean;
  readonly fence: (text: string, label: FenceLabel) => string;
  /** The identity of a token as it is now; undefined when it is gone. */
  readonly identityOf: (tokenId: string) => Identity | undefined;
  /** Messages were stored. */
  readonly noticeMessages: () => void;
  /** Whether turns of one of these conversations ever read text from outside. */
  readonly isTainted: (refs: readonly string[]) => Promise<boolean>;
  readonly taints: FileTaints;
  readonly work: ModelWork;
  readonly media: MediaLibrary;
}

/** How agents work together: sub-agents, messages between conversations, graphs, scripts that call tools. */
export function createTeams(deps: TeamsDeps) {
  const subagents = deps.building.use(createSubagentPart(deps));
  const graphs = deps.building.use(createGraphPart({ ...deps, subagents: subagents.api }));
  const talk = createTalk(deps);
  const fixed: readonly Tool[] = [...subagents.tools, ...graphs.tools, ...talk.sendTools];
  let scriptTools = talk.scriptTools();
  let tools = [...fixed, ...scriptTools];
  return {
    methods: { ...subagents.methods, ...graphs.methods, ...talk.methods },
    /** The same array until it changes. */
    tools(): readonly Tool[] {
      if (talk.scriptTools() !== scriptTools) {
        scriptTools = talk.scriptTools();
        tools = [...fixed, ...scriptTools];
      }
      return tools;
    },
    scriptCalls: talk.scriptCalls,
    onStopped: subagents.api.onStopped,
    /** Of the daemon: nothing new is taken from here on. */
    stopping(): void {
      subagents.stopping();
      graphs.stopping();
    },
  };
}
