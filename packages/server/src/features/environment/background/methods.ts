import { AppError } from '../../../kernel/app-error.ts';
import { announceAudit, auditRow } from '../../../kernel/audit.ts';
import { type CallContext, isAdmin, ownerOf } from '../../../kernel/call-context.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Db } from '../../../kernel/db/db.ts';
import type { EventBus } from '../../../kernel/event-bus.ts';
import type { HandlersOf } from '../../../kernel/handlers.ts';
import type { Screens, Terminal } from '../shell/api.ts';
import { recordStop, recordTyping } from './store.ts';
import type { Tasks } from './tasks.ts';

export type BackgroundMethods = HandlersOf<'background.list' | 'background.screen' | 'background.stop' | 'background.type'>;

/** A command of `exec`, or a terminal session. */
interface RunningCommand {
  readonly id: string;
  readonly kind: 'command' | 'terminal';
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
  readonly screens: Screens;
}

/** Background work of agents: commands, and tool calls that outlasted their turns. */
export function createBackgroundMethods({ db, bus, clock, tasks, commands, screens }: BackgroundMethodDeps): BackgroundMethods {
  function runningNow() {
    const ofCommands = commands.running().map(({ id, kind, agentId, principalId, conversationRef, rootRunId, runId, startedAtMs, command }) => ({
      id,
      agentId,
      principalId,
      conversationRef,
      rootRunId,
      ...(runId !== undefined && { runId }),
      startedAtMs,
      kind,
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

  function terminal(id: string, call: CallContext): Terminal {
    const found = visible(call).some((item) => item.id === id) ? screens.find(id) : undefined;
    if (found === undefined) throw new AppError('not_found', `No terminal session has the id ${id}`, { param: 'id' });
    return found;
  }

  return {
    'background.screen': async ({ id, after, waitMs }, call) => ({
      id,
      ...(await terminal(id, call).screen({ after, waitMs, signal: call.signal })),
    }),

    'background.type': async ({ id, text, keys }, call) => {
      const session = terminal(id, call);
      session.assertKeys(keys ?? []);
      const metadata = { characters: text?.length ?? 0, keys: keys?.length ?? 0 };
      const audit = auditRow(call, clock.now(), { actionType: 'background.type', classification: 'mutate', target: id, metadata });
      await db.write(recordTyping, { audit });
      if (text !== undefined && text !== '') await session.type(text);
      if (keys !== undefined && keys.length > 0) await session.press(keys);
      announceAudit(bus, audit);
      return { id, typed: true as const };
    },

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
      if (found.kind === 'call') tasks.find(id)?.stop('it was stopped by its owner');
      else await commands.endOne(id);
      announceAudit(bus, audit);
      return { id, stopped: true as const };
    },
  };
}
