import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import { recordStop } from './store.ts';
import type { Tasks } from './tasks.ts';

export type BackgroundMethods = HandlersOf<'background.list' | 'background.stop'>;

/** A command of `exec` that runs in the background. */
interface RunningCommand {
  readonly id: string;
  readonly agentId: string;
  readonly principalId: string;
  readonly conversationRef: string;
  readonly rootRunId: string;
  readonly runId?: string;
  readonly startedAtMs: number;
  readonly command: string;
}

export interface BackgroundMethodDeps {
  readonly db: Db;
  readonly bus: EventBus;
  readonly clock: Clock;
  readonly tasks: Tasks;
  readonly commands: {
    running(): readonly RunningCommand[];
    endOne(id: string): Promise<void>;
  };
}

/** Background work of agents: commands, and tool calls that outlasted their turns. */
export function createBackgroundMethods({ db, bus, clock, tasks, commands }: BackgroundMethodDeps): BackgroundMethods {
  function runningNow() {
    const ofCommands = commands.running().map(({ id, agentId, principalId, conversationRef, rootRunId, runId, startedAtMs, command }) => ({
      id,
      agentId,
      principalId,
      conversationRef,
      rootRunId,
      ...(runId !== undefined && { runId }),
      startedAtMs,
      kind: 'command' as const,
      description: command,
    }));
    const calls = tasks
      .all()
      .filter(({ state }) => state === 'running')
      .map(({ row: { id, agentId, principalId, conversationRef, rootRunId, turnId, startedAtMs, toolName, description } }) => ({
        id,
        agentId,
        principalId,
        conversationRef,
        rootRunId: rootRunId ?? `root-turn-${turnId}`,
        startedAtMs,
        kind: 'call' as const,
        description: `${toolName}: ${description}`,
      }));
    return [...ofCommands, ...calls].toSorted((a, b) => b.startedAtMs - a.startedAtMs);
  }

  function visible(call: CallContext) {
    const { agents } = call.identity;
    return runningNow().filter(
      ({ agentId, principalId }) => (isAdmin(call) || principalId === ownerOf(call)) && (agents === undefined || agents.includes(agentId)),
    );
  }

  return {
    'background.list': async ({ agentId }, call) => {
      const items = visible(call)
        .filter((item) => agentId === undefined || item.agentId === agentId)
        .map(({ startedAtMs, principalId: _, ...item }) => ({ ...item, startedAt: startedAtMs }));
      return { items, total: items.length };
    },

    'background.stop': async ({ id }, call) => {
      const found = visible(call).find((item) => item.id === id);
      if (found === undefined) throw new AppError('not_found', `No background task has the id ${id}`, { param: 'id' });
      const audit = auditRow(call, clock.now(), { actionType: 'background.stop', classification: 'destructive', target: id });
      await db.write(recordStop, { audit });
      if (found.kind === 'command') await commands.endOne(id);
      else tasks.find(id)?.stop('it was stopped by its owner');
      announceAudit(bus, audit);
      return { id, stopped: true as const };
    },
  };
}
