import type { ParamsInput, Result } from '@gatehouse/contract';
import { DraftError } from '../../data/field-errors.ts';

export type Job = Result<'cron.list'>['jobs'][number];
type JobParams = ParamsInput<'cron.add'>;
export type ScheduleRequest = JobParams['schedule'];
type Payload = JobParams['payload'];
type Profile = NonNullable<JobParams['toolPolicy']>['profile'];

export const scheduleKinds = ['cron', 'every', 'at', 'in'] as const;
export const payloadKinds = ['agent_turn', 'heartbeat_event', 'delivery'] as const;
export const units = { seconds: 1000, minutes: 60_000, hours: 3_600_000, days: 86_400_000 } as const;
export const unitNames = ['seconds', 'minutes', 'hours', 'days'] as const;
export const profiles: readonly Profile[] = ['minimal', 'coding', 'messaging', 'supervisor', 'full'];
export const continuations = ['heartbeat_excerpt', 'origin_history'] as const;
export const retentions = ['none', 'short', 'long'] as const;

/** A job in the form: empty fields are omitted. */
export interface JobDraft {
  readonly name: string;
  readonly agentId: string;
  readonly kind: (typeof scheduleKinds)[number];
  readonly expr: string;
  readonly tz: string;
  readonly amount: string;
  readonly unit: keyof typeof units;
  /** Local time in the format of the browser's input. */
  readonly anchor: string;
  readonly at: string;
  readonly fold: '' | 'earlier' | 'later';
  readonly does: (typeof payloadKinds)[number];
  readonly text: string;
  readonly model: string;
  readonly timeoutSeconds: string;
  readonly wakeNow: boolean;
  /** Number of earlier runs that the turn sees. */
  readonly history: string;
  readonly continuation: '' | (typeof continuations)[number];
  readonly deliveryTarget: string;
  readonly script: string;
  readonly language: 'js' | 'ts';
  readonly scriptSeconds: string;
  readonly retention: '' | (typeof retentions)[number];
  readonly profile: '' | Profile;
  readonly allow: string;
  readonly deny: string;
  readonly maxErrors: string;
}

export function emptyDraft(agentId: string, zone: string): JobDraft {
  return {
    name: '',
    agentId,
    kind: 'cron',
    expr: '0 8 * * 1-5',
    tz: zone,
    amount: '30',
    unit: 'minutes',
    anchor: '',
    at: '',
    fold: '',
    does: 'agent_turn',
    text: '',
    model: '',
    timeoutSeconds: '',
    wakeNow: false,
    history: '',
    continuation: '',
    deliveryTarget: '',
    script: '',
    language: 'js',
    scriptSeconds: '10',
    retention: '',
    profile: '',
    allow: '',
    deny: '',
    maxErrors: '',
  };
}

export function draftOf(job: Job, zone: string): JobDraft {
  const { schedule, payload, sessionPolicy, wakeGate, toolPolicy } = job;
  const text = payload.kind === 'agent_turn' ? payload.message : payload.kind === 'internal_action' ? '' : payload.text;
  return {
    ...emptyDraft(job.agentId, zone),
    name: job.name,
    kind: schedule.kind,
    ...(schedule.kind === 'cron' && { expr: schedule.expr, tz: schedule.tz }),
    ...(schedule.kind === 'every' && { ...spanOf(schedule.everyMs), anchor: localTime(schedule.anchorMs) }),
    ...(schedule.kind === 'at' && { at: new Date(schedule.atMs).toISOString(), tz: '' }),
    ...(payload.kind !== 'internal_action' && { does: payload.kind }),
    text,
    ...(payload.kind === 'agent_turn' && { model: payload.model ?? '', timeoutSeconds: String(payload.timeoutSeconds ?? '') }),
    wakeNow: payload.kind === 'heartbeat_event' && payload.wakeMode === 'now',
    history: sessionPolicy?.strategy === 'rolling' ? String(sessionPolicy.maxHistoryTurns) : '',
    continuation: continuations.find((one) => one === job.continuationMode) ?? '',
    deliveryTarget: job.deliveryTarget === undefined ? '' : JSON.stringify(job.deliveryTarget, null, 2),
    ...(wakeGate !== undefined && { script: wakeGate.script, language: wakeGate.language, scriptSeconds: String(wakeGate.timeoutSeconds) }),
    retention: job.cacheRetention ?? '',
    ...(toolPolicy !== undefined && { profile: toolPolicy.profile, allow: toolPolicy.allow.join(', '), deny: toolPolicy.deny.join(', ') }),
    maxErrors: String(job.maxConsecutiveDependencyErrors ?? ''),
  };
}

/** Returns the schedule; throws `DraftError` for values that cannot be sent. */
export function scheduleOf({ kind, expr, tz, amount, unit, anchor, at, fold }: JobDraft): ScheduleRequest {
  const zone = tz.trim() === '' ? {} : { tz: tz.trim() };
  switch (kind) {
    case 'cron':
      return { kind, expr: expr.trim(), ...zone };
    case 'every':
      return { kind, everyMs: spanMs(amount, unit, 'schedule.everyMs'), ...(anchor !== '' && { anchorMs: Date.parse(anchor) }) };
    case 'at':
      return { kind, at: at.trim(), ...zone, ...(fold !== '' && { fold }) };
    case 'in':
      return { kind, seconds: Math.round(spanMs(amount, unit, 'schedule.seconds') / 1000) };
  }
}

export function payloadOf({ does, text, model, timeoutSeconds, wakeNow }: JobDraft): Payload {
  switch (does) {
    case 'agent_turn':
      return {
        kind: does,
        message: text,
        ...(model.trim() !== '' && { model: model.trim() }),
        ...(timeoutSeconds !== '' && { timeoutSeconds: Number(timeoutSeconds) }),
      };
    case 'heartbeat_event':
      return { kind: does, text, wakeMode: wakeNow ? 'now' : 'next-heartbeat' };
    case 'delivery':
      return { kind: does, text };
  }
}

export function addParams(draft: JobDraft): JobParams {
  return { name: draft.name.trim(), agentId: draft.agentId, schedule: scheduleOf(draft), payload: payloadOf(draft), ...policiesOf(draft) };
}

/** Returns only what differs from `before`: sending the schedule again would restart its timing. */
export function updateParams(jobId: string, before: JobDraft, after: JobDraft): ParamsInput<'cron.update'> {
  const was = { name: before.name, schedule: scheduleOf(before), payload: payloadOf(before), ...policiesOf(before) };
  const is = { name: after.name.trim(), schedule: scheduleOf(after), payload: payloadOf(after), ...policiesOf(after) };
  const changed = <T>(old: T, next: T): boolean => JSON.stringify(old) !== JSON.stringify(next);
  return {
    jobId,
    ...(changed(was.name, is.name) && { name: is.name }),
    ...(changed(was.schedule, is.schedule) && { schedule: is.schedule }),
    ...(changed(was.payload, is.payload) && { payload: is.payload }),
    ...(after.does === 'agent_turn' && changed(was.sessionPolicy, is.sessionPolicy) && { sessionPolicy: is.sessionPolicy ?? { strategy: 'fresh' } }),
    ...(changed(was.continuationMode, is.continuationMode) && { continuationMode: is.continuationMode ?? 'none' }),
    ...(changed(was.deliveryTarget, is.deliveryTarget) && { deliveryTarget: is.deliveryTarget ?? null }),
    ...(changed(was.wakeGate, is.wakeGate) && { wakeGate: is.wakeGate ?? null }),
    ...(changed(was.cacheRetention, is.cacheRetention) && { cacheRetention: is.cacheRetention ?? null }),
    ...(changed(was.toolPolicy, is.toolPolicy) && { toolPolicy: is.toolPolicy ?? null }),
    ...(changed(was.maxConsecutiveDependencyErrors, is.maxConsecutiveDependencyErrors) && {
      maxConsecutiveDependencyErrors: is.maxConsecutiveDependencyErrors ?? null,
    }),
  };
}

type Policies = Pick<
  JobParams,
  'sessionPolicy' | 'continuationMode' | 'deliveryTarget' | 'wakeGate' | 'cacheRetention' | 'toolPolicy' | 'maxConsecutiveDependencyErrors'
>;

/** Returns the options; turn options are omitted for other payloads. */
function policiesOf(draft: JobDraft): Policies {
  const isTurn = draft.does === 'agent_turn';
  return {
    sessionPolicy: isTurn && draft.history !== '' ? { strategy: 'rolling', maxHistoryTurns: Number(draft.history) } : undefined,
    continuationMode: draft.continuation === '' ? undefined : draft.continuation,
    deliveryTarget: draft.deliveryTarget.trim() === '' ? undefined : parseTarget(draft.deliveryTarget),
    wakeGate:
      isTurn && draft.script.trim() !== ''
        ? { script: draft.script, language: draft.language, timeoutSeconds: Number(draft.scriptSeconds) }
        : undefined,
    cacheRetention: isTurn && draft.retention !== '' ? draft.retention : undefined,
    toolPolicy: isTurn && draft.profile !== '' ? { profile: draft.profile, allow: names(draft.allow), deny: names(draft.deny) } : undefined,
    maxConsecutiveDependencyErrors: draft.maxErrors === '' ? undefined : Number(draft.maxErrors),
  };
}

/** Parses the target; the server validates its shape and names what is wrong. */
function parseTarget(text: string): NonNullable<JobParams['deliveryTarget']> {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new DraftError('deliveryTarget', `Not valid JSON: ${error instanceof Error ? error.message : ''}`);
  }
}

function spanMs(amount: string, unit: keyof typeof units, path: string): number {
  const value = Number(amount);
  if (amount.trim() === '' || !Number.isFinite(value) || value <= 0) throw new DraftError(path, 'Expected a number greater than 0.');
  return Math.round(value * units[unit]);
}

function spanOf(ms: number): { readonly amount: string; readonly unit: keyof typeof units } {
  const unit = unitNames.findLast((name) => ms % units[name] === 0) ?? 'seconds';
  return { amount: String(ms / units[unit]), unit };
}

/** Formats a time for a `datetime-local` field, to the millisecond, so that an untouched value stays the same. */
function localTime(atMs: number): string {
  return new Date(atMs - new Date(atMs).getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
}

function names(text: string): string[] {
  return text.split(/[\s,]+/).filter((one) => one !== '');
}
