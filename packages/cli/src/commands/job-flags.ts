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

/** Flags that say when a job runs. */
export function withSchedule(command: Command): Command {
  return withConnection(command)
    .option('--cron <expression>', 'five fields, or six with seconds first, such as "0 8 * * 1-5"')
    .option('--every <span>', 'again and again after this time, such as 90s, 30m, 6h or 1d', readSpan)
    .option('--at <time>', 'once, such as 2026-12-24T18:00 or 2026-12-24T18:00Z')
    .option('--in <span>', 'once, after this time', readSpan)
    .option('--tz <zone>', 'time zone of --cron and --at, such as Europe/Berlin (default: that of the gateway)')
    .option('--anchor <time>', 'from which --every counts, with an offset or Z', readInstant)
    .addOption(new Option('--fold <which>', 'which of two equal times --at means, where clocks are set back').choices(['earlier', 'later']));
}

/** Flags that say what a job does, and how. */
export function withJob(command: Command): Command {
  return withSchedule(command)
    .option('--message <text>', 'a turn of the agent with this message')
    .option('--event <text>', 'tells the next heartbeat of the agent this')
    .option('--now', 'with --event: wakes the heartbeat at once')
    .option('--deliver <text>', 'delivers this text as it is: to --delivery-target, or to your inbox')
    .option('--model <name>', 'with --message: model of the turn')
    .addOption(countOption('--timeout <seconds>', 'with --message: longest time of the turn'))
    .option('--fresh', 'the turn sees nothing of earlier runs (as without --history)')
    .addOption(countOption('--history <runs>', 'the turn sees this many earlier runs, at most 20'))
    .addOption(new Option('--continuation <mode>', 'where the result goes too').choices(['none', 'heartbeat_excerpt', 'origin_history']))
    .option('--delivery-target <json>', 'who is told the result: {"conversation": …, "destinationEndpoint": …}', readJson)
    .option('--gate <file>', 'script (.js or .ts) that decides before each turn whether there is something to do')
    .addOption(countOption('--gate-timeout <seconds>', 'longest time of the script', 10))
    .addOption(new Option('--cache <time>', 'how long the provider keeps the prompt').choices(['none', 'short', 'long']))
    .addOption(
      new Option('--profile <name>', 'tools of the turn, within those of the agent').choices([
        'minimal',
        'coding',
        'messaging',
        'supervisor',
        'full',
      ]),
    )
    .option('--allow <tool>', 'with --profile: this tool too; can be given again', collect, [])
    .option('--deny <tool>', 'with --profile: never this tool; can be given again', collect, [])
    .addOption(countOption('--max-errors <n>', 'failures of the provider in a row that pause the job; 0: never'));
}

/** The schedule that the flags name; undefined when they name none. */
export function readSchedule({ cron, every, at, in: span, tz, anchor, fold }: ScheduleFlags): Schedule | undefined {
  const given = [cron, every, at, span].filter((one) => one !== undefined);
  if (given.length > 1) throw usageError('--cron, --every, --at and --in: only one of them can be given.');
  if (tz !== undefined && cron === undefined && at === undefined) throw usageError('--tz is for --cron and --at.');
  if (anchor !== undefined && every === undefined) throw usageError('--anchor is for --every.');
  if (fold !== undefined && at === undefined) throw usageError('--fold is for --at.');
  const zone = tz === undefined ? {} : { tz };
  if (cron !== undefined) return { kind: 'cron', expr: cron, ...zone };
  if (every !== undefined) return { kind: 'every', everyMs: every, ...(anchor === undefined ? {} : { anchorMs: anchor }) };
  if (at !== undefined) return { kind: 'at', at, ...zone, ...(fold === undefined ? {} : { fold }) };
  return span === undefined ? undefined : { kind: 'in', seconds: Math.ceil(span / 1000) };
}

/** What the job does; undefined when the flags do not say. */
export function readPayload({ message, event, deliver, now, model, timeout }: JobFlags): Payload | undefined {
  if ([message, event, deliver].filter((one) => one !== undefined).length > 1)
    throw usageError('--message, --event and --deliver: only one of them can be given.');
  if (message === undefined && (model !== undefined || timeout !== undefined)) throw usageError('--model and --timeout are for --message.');
  if (event === undefined && now === true) throw usageError('--now is for --event.');
  if (message !== undefined)
    return {
      kind: 'agent_turn',
      message,
      ...(model === undefined ? {} : { model }),
      ...(timeout === undefined ? {} : { timeoutSeconds: timeout }),
    };
  if (event !== undefined) return { kind: 'heartbeat_event', text: event, wakeMode: now === true ? 'now' : 'next-heartbeat' };
  return deliver === undefined ? undefined : { kind: 'delivery', text: deliver };
}

/** How the job runs, as far as the flags say. */
export async function readPolicies(flags: JobFlags, io: Io): Promise<Policies> {
  const { fresh, history, continuation, deliveryTarget, gate, gateTimeout, cache, profile, allow, deny, maxErrors } = flags;
  if (fresh === true && history !== undefined) throw usageError('--fresh and --history: only one of them can be given.');
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

/** Without an offset it would mean another time on the machine of the gateway. */
function readInstant(text: string): number {
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
