import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import { toCall } from '../../../kernel/db/operation.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { IdentityOf } from '../../../kernel/call-context.ts';
import type { Log } from '../../../kernel/log.ts';
import type { TraceWork } from '../../../kernel/work-trace.ts';
import type { Tool } from '../../../runtime/tool.ts';
import type { AgentsApi } from '../../agents/agents/api.ts';
import type { Reenter } from '../../conversations/turns/api.ts';
import { unknownEnd } from './announcement.ts';
import type { BackgroundApi } from './api.ts';
import { Delivery } from './delivery.ts';
import { type BackgroundMethodDeps, type BackgroundMethods, createBackgroundMethods } from './methods.ts';
import { startTask } from './start-task.ts';
import { markTasks, recoverTasks } from './store.ts';
import { LiveTask, rootOf, Tasks } from './tasks.ts';
import { createBackgroundTool } from './tool.ts';

export interface BackgroundDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly log: Log;
  readonly traceWork: TraceWork;
  /** Id of this run of the daemon. */
  readonly bootId: string;
  readonly agents: Pick<AgentsApi, 'find'>;
  /** The identity of a token as it is now; undefined when it is gone. */
  readonly identityOf: IdentityOf;
  readonly reenter: Reenter;
  readonly commands: BackgroundMethodDeps['commands'];
  readonly screens: BackgroundMethodDeps['screens'];
}

export interface Background extends AsyncDisposable {
  readonly api: BackgroundApi;
  readonly methods: BackgroundMethods;
  readonly tool: Tool;
  /** Delivers the results of daemons that died while this one runs. */
  recover(): Promise<void>;
  /** Stops results from starting turns; used when the daemon drains. */
  pause(): void;
}

/** Lets tool calls outlive their turns and brings their results back into the conversation (docs/decisions/0017). */
export async function createBackground(deps: BackgroundDeps): Promise<Background> {
  const { db, bus, clock, bootId } = deps;
  const tasks = new Tasks();
  async function recover(): Promise<void> {
    for (const row of await db.write(recoverTasks, { bootId, atMs: clock.now(), content: unknownEnd }))
      if (tasks.find(row.id) === undefined) tasks.add(LiveTask.recovered(row));
  }
  await recover();
  const delivery = new Delivery({ ...deps, tasks });
  const running = () => tasks.all().filter(({ state }) => state === 'running');

  const api: BackgroundApi = {
    begin: (task) => startTask({ ...deps, tasks, delivery }, task),
    take(conversationRef) {
      const ended = tasks.ended(conversationRef);
      return ended.length === 0 ? undefined : { taskIds: ended.map(({ row }) => row.id), text: ended.map((live) => live.take()).join('\n\n') };
    },
    isPending: ({ turnId, conversationRef }) =>
      tasks.inConversation(conversationRef).some(({ row, state }) => row.turnId === turnId && state !== 'taken'),
    markCall: (ids, state) => toCall(markTasks, { ids, state }),
    reported(taskIds) {
      const [first] = taskIds.flatMap((id) => tasks.find(id) ?? []);
      for (const id of taskIds) tasks.removeId(id);
      if (first !== undefined) bus.emit('background_task:notified', { agentId: first.row.agentId, count: taskIds.length, timestamp: clock.now() });
    },
    release(taskIds) {
      for (const id of taskIds) {
        const live = tasks.find(id);
        if (live === undefined) continue;
        live.state = 'ended';
        delivery.retryLater();
      }
    },
    forget(conversationRef) {
      for (const live of tasks.inConversation(conversationRef)) {
        tasks.remove(live);
        live.stop('its conversation was reset or deleted');
      }
    },
    dropRoot(rootRunId) {
      const mine = tasks.all().filter(({ row }) => rootRunId === rootOf(row));
      for (const live of mine) delivery.drop(live);
      return mine.filter(({ state }) => state === 'running').length;
    },
    forgetAgent(agentId) {
      for (const live of tasks.all()) if (live.row.agentId === agentId) delivery.drop(live);
    },
    stopAgent(agentId) {
      for (const live of running()) if (live.row.agentId === agentId) live.stop('its agent was suspended');
    },
    dropToken(tokenId) {
      for (const live of tasks.all()) if (live.row.tokenId === tokenId) delivery.drop(live);
    },
    rootTurn(rootRunId) {
      const row = running().find((live) => rootOf(live.row) === rootRunId)?.row;
      return row === undefined ? undefined : { ...row, origin: row.begunBy };
    },
  };

  return {
    api,
    methods: createBackgroundMethods({ ...deps, tasks }),
    tool: createBackgroundTool({ db, clock, tasks }),
    async recover() {
      await recover();
      delivery.deliverAll();
    },
    pause: () => delivery.pause(),
    [Symbol.asyncDispose]: () => delivery[Symbol.asyncDispose](),
  };
}
