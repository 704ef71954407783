import type { ParamsInput } from '@gatehouse/contract';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { usageError } from '../failure.ts';
import type { Io } from '../io.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';
import { readLocalText } from './read-skill.ts';

type Job = ParamsInput<'cron.add'>;
type Schedule = Job['schedule'];
type Payload = Job['payload'];
type Policies = Pick<
  Job,
  'sessionPolicy' | 'continuationMode' | 'deliveryTarget' | 'wakeGate' | 'cacheRetention' | 'toolPolicy' | 'maxConsecutiveDependencyErrors'
>;

export type ScheduleFlags = { cron?: string; every?: number; at?: string; in?: number; tz?: string; anchor?: number; fold?: 'earlier' | 'later' };
export type JobFlags = CommonFlags &
  ScheduleFlags & {
    message?: string;
    event?: string;
    deliver?: string;
    now?: true;
    model?: string;
    timeout?: number;
    fresh?: true;
    history?: number;
    continuation?: NonNullable<Job['continuationMode']>;
    deliveryTarget?: NonNullable<Job['deliveryTarget']>;
    gate?: string;
    gateTimeout: number;
    cache?: NonNullable<Job['cacheRetention']>;
    profile?: NonNullable<Job['toolPolicy']>['profile'];
    allow: string[];
    deny: string[];
    maxErrors?: number;
  };

const unitMs = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const maxScriptBytes = 65_536;

/** Adds the flags for the schedule of a job. */
export function withSchedule(command: Command): Command {
  return withConnection(command)
    .option('--cron <expression>', 'five fields, or six with seconds first, such as "0 8 * * 1-5"')
    .option('--every <span>', 'repeatedly at this interval, such as 90s, 30m, 6h or 1d', readSpan)
    .option('--at <time>', 'once, such as 2026-12-24T18:00 or 2026-12-24T18:00Z')
    .option('--in <span>', 'once, after this delay', readSpan)
    .option('--tz <zone>', 'time zone of --cron and --at, such as Europe/Berlin (default: the gateway time zone)')
    .option('--anchor <time>', 'time to which --every is aligned, with an offset or Z', readInstant)
    .addOption(new Option('--fold <which>', 'which of two ambiguous times --at means, when clocks go back (DST)').choices(['earlier', 'later']));
}

/** Adds the flags for the task of a job and its options. */
export function withJob(command: Command): Command {
  return withSchedule(command)
    .option('--message <text>', 'run an agent turn with this message')
    .option('--event <text>', "send this event to the agent's next heartbeat")
    .option('--now', 'with --event: trigger the heartbeat immediately')
    .option('--deliver <text>', 'deliver this text unchanged, to --delivery-target or to your inbox')
    .option('--model <name>', 'with --message: model of the turn')
    .addOption(countOption('--timeout <seconds>', 'with --message: timeout of the turn'))
    .option('--fresh', 'include no earlier runs in the turn (as without --history)')
    .addOption(countOption('--history <runs>', 'number of earlier runs included in the turn, at most 20'))
    .addOption(new Option('--continuation <mode>', 'where else to send the result').choices(['none', 'heartbeat_excerpt', 'origin_history']))
    .option('--delivery-target <json>', 'where to deliver the result: {"conversation": …, "destinationEndpoint": …}', readJson)
    .option('--gate <file>', 'script (.js or .ts) that decides before each turn whether it is needed')
    .addOption(countOption('--gate-timeout <seconds>', 'timeout of the script', 10))
    .addOption(new Option('--cache <time>', 'how long the provider keeps the prompt').choices(['none', 'short', 'long']))
    .addOption(
      new Option('--profile <name>', "tools of the turn, within the agent's tools").choices(['minimal', 'coding', 'messaging', 'supervisor', 'full']),
    )
    .option('--allow <tool>', 'with --profile: also allow this tool; repeatable', collect, [])
    .option('--deny <tool>', 'with --profile: deny this tool; repeatable', collect, [])
    .addOption(countOption('--max-errors <n>', 'pause the job after this many consecutive provider failures; 0: never'));
}

/** Returns the schedule from the flags; undefined when they set none. */
export function readSchedule({ cron, every, at, in: span, tz, anchor, fold }: ScheduleFlags): Schedule | undefined {
  const given = [cron, every, at, span].filter((one) => one !== undefined);
  if (given.length > 1) throw usageError('--cron, --every, --at and --in are mutually exclusive.');
  if (tz !== undefined && cron === undefined && at === undefined) throw usageError('--tz is for --cron and --at.');
  if (anchor !== undefined && every === undefined) throw usageError('--anchor is for --every.');
  if (fold !== undefined && at === undefined) throw usageError('--fold is for --at.');
  const zone = tz === undefined ? {} : { tz };
  if (cron !== undefined) return { kind: 'cron', expr: cron, ...zone };
  if (every !== undefined) return { kind: 'every', everyMs: every, anchorMs: anchor };
  if (at !== undefined) return { kind: 'at', at, ...zone, fold };
  return span === undefined ? undefined : { kind: 'in', seconds: Math.ceil(span / 1000) };
}

/** Returns the task of the job; undefined when the flags set none. */
export function readPayload({ message, event, deliver, now, model, timeout }: JobFlags): Payload | undefined {
  if ([message, event, deliver].filter((one) => one !== undefined).length > 1)
    throw usageError('--message, --event and --deliver are mutually exclusive.');
  if (message === undefined && (model !== undefined || timeout !== undefined)) throw usageError('--model and --timeout are for --message.');
  if (event === undefined && now === true) throw usageError('--now is for --event.');
  if (message !== undefined)
    return {
      kind: 'agent_turn',
      message,
      model,
      timeoutSeconds: timeout,
    };
  if (event !== undefined) return { kind: 'heartbeat_event', text: event, wakeMode: now === true ? 'now' : 'next-heartbeat' };
  return deliver === undefined ? undefined : { kind: 'delivery', text: deliver };
}

/** Returns the job options that the flags set. */
export async function readPolicies(flags: JobFlags, io: Io): Promise<Policies> {
  const { fresh, history, continuation, deliveryTarget, gate, gateTimeout, cache, profile, allow, deny, maxErrors } = flags;
  if (fresh === true && history !== undefined) throw usageError('--fresh and --history are mutually exclusive.');
  if (profile === undefined && allow.length + deny.length > 0) throw usageError('--allow and --deny are for --profile.');
  return {
    ...(fresh === true ? { sessionPolicy: { strategy: 'fresh' } } : {}),
    ...(history === undefined ? {} : { sessionPolicy: { strategy: 'rolling', maxHistoryTurns: history } }),
    ...(continuation === undefined ? {} : { continuationMode: continuation }),
    ...(deliveryTarget === undefined ? {} : { deliveryTarget }),
    ...(gate === undefined
      ? {}
      : {
          wakeGate: {
            script: await readLocalText(gate, maxScriptBytes, io),
            language: /\.[cm]?ts$/.test(gate) ? 'ts' : 'js',
            timeoutSeconds: gateTimeout,
          },
        }),
    ...(cache === undefined ? {} : { cacheRetention: cache }),
    ...(profile === undefined ? {} : { toolPolicy: { profile, allow, deny } }),
    ...(maxErrors === undefined ? {} : { maxConsecutiveDependencyErrors: maxErrors }),
  };
}

function readSpan(text: string): number {
  const [, digits, unit] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? [];
  if (digits === undefined || (unit !== 's' && unit !== 'm' && unit !== 'h' && unit !== 'd'))
    throw new InvalidArgumentError('Expected a number and s, m, h or d, such as 90s, 30m, 6h or 1d.');
  return Number(digits) * unitMs[unit];
}

/** Parses a time; requires an offset because the gateway may be in another time zone. */
/** Parses a time with an offset or Z into milliseconds since 1970. */
export function readInstant(text: string): number {
  const at = /(?:z|[+-]\d\d:?\d\d)$/i.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) throw new InvalidArgumentError('Expected a time with an offset or Z, such as 2026-12-24T18:00Z.');
  return at;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new InvalidArgumentError('Expected JSON.');
  }
}

export function collect(value: string, before: readonly string[]): string[] {
  return [...before, value];
}
