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
import type { WorkspaceCapacity } from '../features/environment/workspace/api.ts';
import type { Jail } from '../kernel/jail.ts';
import type { FileTaints } from '../features/environment/workspace/api.ts';
import type { FenceLabel } from '../runtime/fence.ts';
import type { Tool } from '../runtime/tool.ts';
import type { ServerOptions } from '../server-handle.ts';
import { wireGraphs } from './graphs.ts';
import { wireSubagents } from './subagents.ts';
import { createMessaging } from './messaging.ts';

export interface DelegationDeps {
  /** Owns everything built here. */
  readonly building: AsyncDisposableStack;
  readonly options: ServerOptions;
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  /** Id of this run of the daemon. */
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
  readonly capacity: WorkspaceCapacity;
  readonly knowsModel: (name: string) => boolean;
  readonly fence: (text: string, label: FenceLabel) => string;
  /** Returns the current identity of a token; undefined when it is gone. */
  readonly identityOf: (tokenId: string) => Identity | undefined;
  /** Called after messages were stored. */
  readonly noticeMessages: () => void;
  /** Whether turns of one of these conversations ever read untrusted text. */
  readonly isTainted: (refs: readonly string[]) => Promise<boolean>;
  readonly taints: FileTaints;
  readonly work: ModelWork;
  readonly media: MediaLibrary;
}

/** Creates everything with which agents work together: sub-agents, messages between conversations, graphs, scripts that call tools. */
export function createDelegation(deps: DelegationDeps) {
  const subagents = deps.building.use(wireSubagents(deps));
  const graphs = deps.building.use(wireGraphs({ ...deps, subagents: subagents.api }));
  const messaging = createMessaging(deps);
  const fixed: readonly Tool[] = [...subagents.tools, ...graphs.tools, ...messaging.sendTools];
  let scriptTools = messaging.scriptTools();
  let tools = [...fixed, ...scriptTools];
  return {
    methods: { ...subagents.methods, ...graphs.methods, ...messaging.methods },
    /** Returns the same array until it changes. */
    tools(): readonly Tool[] {
      if (messaging.scriptTools() !== scriptTools) {
        scriptTools = messaging.scriptTools();
        tools = [...fixed, ...scriptTools];
      }
      return tools;
    },
    scriptCalls: messaging.scriptCalls,
    onStopped: subagents.api.onStopped,
    /** Called when the daemon stops: nothing new is accepted from here on. */
    stopping(): void {
      subagents.stopping();
      graphs.stopping();
    },
  };
}
