import type { LiveEvents } from './live.ts';
import { createStore, type Store } from './store.ts';

/** A tool call as reported by the event stream. */
export interface ToolActivity {
  readonly callId: string;
  readonly turnId: string;
  readonly toolName: string;
  /** One line that describes the call. */
  readonly description: string;
  readonly startedAtMs: number;
  /** Start time by the clock of this tab, which orders it among the messages. */
  readonly heardAtMs: number;
  /** Absent while the call runs or waits for an approval. */
  readonly outcome: string | undefined;
  readonly durationMs: number | undefined;
}

/** Calls of each conversation, oldest first, by `activityKey`. */
export type ToolActivities = ReadonlyMap<string, readonly ToolActivity[]>;

const maxConversations = 40;
const maxCalls = 200;

/** Returns the key of a conversation: a new one has a session key from the start, but no reference before its first answer. */
export function activityKey(agentId: string, sessionKey: string): string {
  return `${agentId} ${sessionKey}`;
}

/** Collects the tool calls of the newest conversations. */
export function createToolActivities(live: Pick<LiveEvents, 'listen'>): Store<ToolActivities> {
  const activities = createStore<ToolActivities>(new Map());
  live.listen(({ kind, payload }) => {
    if (kind !== 'tool:started' && kind !== 'tool:finished') return;
    const reported = readActivity(payload);
    if (reported === undefined) return;
    const next = new Map(activities.get());
    const calls = next.get(reported.key) ?? [];
    const known = calls.findIndex(({ callId, turnId }) => callId === reported.activity.callId && turnId === reported.activity.turnId);
    const one = known < 0 ? reported.activity : { ...reported.activity, ...begun(calls[known]) };
    next.delete(reported.key);
    next.set(reported.key, known < 0 ? [...calls, one].slice(-maxCalls) : calls.with(known, one));
    for (const oldest of next.keys()) {
      if (next.size <= maxConversations) break;
      next.delete(oldest);
    }
    activities.set(next);
  });
  return activities;
}

function begun(known: ToolActivity | undefined): Partial<ToolActivity> {
  return known === undefined ? {} : { startedAtMs: known.startedAtMs, heardAtMs: known.heardAtMs };
}

function readActivity(payload: unknown): { readonly key: string; readonly activity: ToolActivity } | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined;
  const fields = new Map<string, unknown>(Object.entries(payload));
  const text = (name: string): string | undefined => {
    const value = fields.get(name);
    return typeof value === 'string' ? value : undefined;
  };
  const number = (name: string): number | undefined => {
    const value = fields.get(name);
    return typeof value === 'number' ? value : undefined;
  };
  const [agentId, sessionKey, turnId, callId, toolName] = ['agentId', 'sessionKey', 'turnId', 'callId', 'toolName'].map(text);
  if (agentId === undefined || sessionKey === undefined || turnId === undefined || callId === undefined || toolName === undefined) return undefined;
  const durationMs = number('durationMs');
  return {
    key: activityKey(agentId, sessionKey),
    activity: {
      callId,
      turnId,
      toolName,
      description: text('description') ?? toolName,
      startedAtMs: (number('timestamp') ?? Date.now()) - (durationMs ?? 0),
      heardAtMs: Date.now(),
      outcome: text('outcome'),
      durationMs,
    },
  };
}
