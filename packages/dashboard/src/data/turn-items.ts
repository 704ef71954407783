/** Reasoning of the model before a part of an answer; the beginning of a long one, once it is stored. */
export interface Reasoning {
  readonly kind: 'reasoning';
  readonly text: string;
  readonly startedAtMs: number;
  /** Absent while it is written. */
  readonly endedAtMs: number | undefined;
  /** Length of the answer's text when it began. */
  readonly at: number;
}

/** A tool call of an answer. */
export interface TurnCall {
  readonly kind: 'call';
  readonly callId: string;
  readonly toolName: string;
  /** One line that describes the call; only the events of a turn have it. */
  readonly description: string | undefined;
  /** JSON; known once the turn is stored. */
  readonly arguments: string | undefined;
  /** What a command has written so far. */
  readonly output: string;
  readonly result: string | undefined;
  /** Absent while the call runs, and for stored calls, whose trace knows it. */
  readonly outcome: string | undefined;
  readonly startedAtMs: number | undefined;
  readonly durationMs: number | undefined;
  /** Length of the answer's text when it began. */
  readonly at: number;
}

/** A message that the running turn was given. */
export interface GivenMessage {
  readonly kind: 'given';
  readonly text: string;
  /** Length of the answer's text when it was taken. */
  readonly at: number;
}

/** What happened between the parts of an answer's text. */
export type TurnItem = Reasoning | TurnCall | GivenMessage;

/** Kind under which this tab itself reports that a turn has taken a message. */
export const givenKind = 'given';

/** Separates the texts of an answer that a tool call is between. */
export const betweenTexts = '\n\n';
/** Output of a running command: the newest part. */
const maxOutput = 8_000;

/** The texts of an answer, with what happened before each of them. */
export interface AnswerPart {
  readonly items: readonly TurnItem[];
  readonly text: string;
}

/** Divides an answer at its tool calls and its reasoning. Events and text arrive by different streams, so a call moves to the end of its text. */
export function partsOf(text: string, items: readonly TurnItem[]): readonly AnswerPart[] {
  const groups = [...Map.groupBy(items, ({ at }) => placeOf(text, at))].toSorted(([a], [b]) => a - b);
  const [first] = groups;
  const parts: AnswerPart[] = first === undefined || first[0] > 0 ? [{ items: [], text: text.slice(0, first?.[0]) }] : [];
  for (const [at, [place, there]] of groups.entries()) parts.push({ items: there, text: text.slice(place, groups[at + 1]?.[0]) });
  return parts;
}

function placeOf(text: string, at: number): number {
  if (at === 0) return 0;
  const end = text.indexOf(betweenTexts, at);
  return end < 0 ? text.length : end;
}

interface Said {
  readonly kind: string;
  readonly payload: unknown;
}

/** Adds an event of the turn; `length` is that of the text so far. Returns the same items when the event says nothing about them. */
export function withEvent(items: readonly TurnItem[], { kind, payload }: Said, length: number, nowMs: number): readonly TurnItem[] {
  if (typeof payload !== 'object' || payload === null) return items;
  const fields = new Map<string, unknown>(Object.entries(payload));
  const text = (name: string): string | undefined => {
    const value = fields.get(name);
    return typeof value === 'string' ? value : undefined;
  };
  const delta = text('delta') ?? '';
  if (kind === 'message:thinking') return withReasoning(items, delta, length, nowMs);
  if (kind === givenKind) return [...endReasoning(items, nowMs), { kind: 'given', text: text('text') ?? '', at: length }];
  const callId = text('callId');
  if (callId === undefined || !['tool:started', 'tool:output', 'tool:finished'].includes(kind)) return items;
  const calm = endReasoning(items, nowMs);
  const at = calm.findLastIndex((item) => item.kind === 'call' && item.callId === callId);
  const known = calm[at];
  const before: TurnCall =
    known?.kind === 'call'
      ? known
      : {
          kind: 'call',
          callId,
          toolName: text('toolName') ?? 'tool',
          description: text('description'),
          arguments: undefined,
          output: '',
          result: undefined,
          outcome: undefined,
          startedAtMs: nowMs,
          durationMs: undefined,
          at: length,
        };
  const durationMs = fields.get('durationMs');
  const after: TurnCall = {
    ...before,
    ...(kind === 'tool:output' && { output: (before.output + delta).slice(-maxOutput) }),
    ...(kind === 'tool:finished' && {
      outcome: text('outcome') ?? 'ok',
      result: text('result'),
      ...(typeof durationMs === 'number' && { durationMs }),
    }),
  };
  return known === undefined ? [...calm, after] : calm.with(at, after);
}

const isRunning = (item: TurnItem): boolean => item.kind === 'call' && item.outcome === undefined;

function withReasoning(items: readonly TurnItem[], delta: string, length: number, nowMs: number): readonly TurnItem[] {
  const last = items.at(-1);
  if (last?.kind === 'reasoning' && last.endedAtMs === undefined) return items.with(-1, { ...last, text: last.text + delta });
  const first = items.findIndex(isRunning);
  // The model does not think while its calls run: the event is late.
  if (first >= 0) {
    const before = items[first - 1];
    if (before?.kind === 'reasoning') return items.with(first - 1, { ...before, text: before.text + delta });
    return items.toSpliced(first, 0, { kind: 'reasoning', text: delta, startedAtMs: nowMs, endedAtMs: nowMs, at: items[first]?.at ?? length });
  }
  return [...items, { kind: 'reasoning', text: delta, startedAtMs: nowMs, endedAtMs: undefined, at: length }];
}

/** Follows text of the answer, which now has `length`: it ends reasoning, and text that arrives while a call runs precedes the call. */
export function withText(items: readonly TurnItem[], length: number, nowMs: number): readonly TurnItem[] {
  const calm = endReasoning(items, nowMs);
  return calm.some(isRunning) ? calm.map((item) => (isRunning(item) ? { ...item, at: length } : item)) : calm;
}

/** Ends reasoning: an answer or a tool call follows it. */
export function endReasoning(items: readonly TurnItem[], nowMs: number): readonly TurnItem[] {
  const last = items.at(-1);
  return last?.kind === 'reasoning' && last.endedAtMs === undefined ? items.with(-1, { ...last, endedAtMs: nowMs }) : items;
}

/**
 * Adds what only the stored turn has: arguments, whole results, calls that were refused before they began, and the position of messages that
 * it was given. Reasoning keeps its position among them.
 */
export function withStored(items: readonly TurnItem[], stored: readonly TurnItem[]): readonly TurnItem[] {
  const left = items.filter(({ kind }) => kind !== 'given');
  const result: TurnItem[] = [];
  for (const one of stored) {
    if (one.kind === 'reasoning') continue;
    const at = one.kind === 'call' ? left.findIndex((item) => item.kind === 'call' && item.callId === one.callId) : -1;
    const live = left[at];
    const before = left.splice(0, live === undefined ? countWhile(left, (item) => item.kind === 'reasoning' && item.at < one.at) : at + 1);
    result.push(...before.filter(({ kind }) => kind === 'reasoning'));
    result.push(
      one.kind === 'call' && live?.kind === 'call' ? { ...live, at: one.at, arguments: one.arguments, result: one.result ?? live.result } : one,
    );
  }
  return [...result, ...left.filter(({ kind }) => kind === 'reasoning')];
}

function countWhile(items: readonly TurnItem[], check: (item: TurnItem) => boolean): number {
  const at = items.findIndex((item) => !check(item));
  return at < 0 ? items.length : at;
}
