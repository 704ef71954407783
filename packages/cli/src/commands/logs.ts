import type { Client, EventsOptions, GapEvent, ServerEvent } from '@gatehouse/client';
import type { LogLine } from '@gatehouse/contract';
import { type Command, Option } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import { type Io, printLine, writePaced } from '../io.ts';
import { renderEvent } from '../render/event-line.ts';
import { renderLogLine } from '../render/log-line.ts';
import { createPaint } from '../render/paint.ts';
import { printableLine } from '../render/plain.ts';
import { DaemonLog, type LogFilter } from './daemon-log.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';

type LogsFlags = CommonFlags &
  LogFilter & {
    readonly kinds?: string[];
    readonly sinceId?: string;
    readonly last?: number;
    readonly follow: boolean;
    readonly daemon?: true;
  };

/** `gatehouse logs`: shows server events, or the log of the daemon, live. */
export function addLogsCommand(program: Command, io: Io, setExit: SetExit): void {
  withConnection(program.command('logs'))
    .summary('show events, or the log of the daemon, live')
    .description(
      'Shows the events of the daemon until Ctrl-C, one line each; with --json one JSON object each. Resumes after a lost connection. With --daemon it shows the log of the daemon instead, beginning with the newest lines; that needs the scope admin.',
    )
    .option('--kinds <kinds>', 'only these events, separated by commas, such as message:received,message:sent', splitList)
    .option('--since-id <id>', 'start after this event, if the daemon still keeps it')
    .addOption(countOption('--last <n>', 'start with this many of the newest events, at most 100'))
    .option('--daemon', 'show the log of the daemon')
    .addOption(
      new Option('--level <level>', 'with --daemon: only lines of this level or above').choices(['trace', 'debug', 'info', 'warn', 'error', 'fatal']),
    )
    .option('--module <name>', 'with --daemon: only lines of this module')
    .option('--follow', 'continue with what follows; this is the default', true)
    .option('--no-follow', 'exit after the newest events or lines (50 without --last)')
    .action(async ({ kinds, sinceId, last, level, module, daemon, ...flags }: LogsFlags) => {
      if (daemon === true && (kinds !== undefined || sinceId !== undefined))
        throw usageError('--kinds and --since-id are for events, not for --daemon.');
      if (daemon !== true && (level !== undefined || module !== undefined)) throw usageError('--level and --module work with --daemon.');
      if (sinceId !== undefined && (last !== undefined || !flags.follow))
        throw usageError('--since-id and --last are mutually exclusive; --no-follow works with --last.');
      const { client } = await connect(flags, io);
      if (daemon === true) return showDaemonLog(client, { level, module, limit: last ?? 50, flags }, io, setExit);
      const print = printer(flags, io);
      const newest = last === undefined && flags.follow ? undefined : await showNewest(client, { kinds, limit: last ?? 50 }, print);
      if (!flags.follow) return;
      // The server validates the kinds: it may know more of them.
      await untilStopped(io, setExit, (controller) =>
        follow(client, { kinds: kinds as EventsOptions['kinds'], lastEventId: sinceId ?? newest }, { controller, print, io }),
      );
    });
}

async function showDaemonLog(
  client: Client,
  { flags, limit, ...filter }: LogFilter & { readonly limit: number; readonly flags: Pick<LogsFlags, 'output' | 'follow'> },
  io: Io,
  setExit: SetExit,
): Promise<void> {
  const paint = createPaint(io);
  const print = (line: LogLine) =>
    writePaced(io.stdout, `${flags.output === 'json' ? printableLine(JSON.stringify(line)) : renderLogLine(line, paint)}\n`);
  const log = new DaemonLog(client, filter, { limit, print });
  await log.showNewest();
  if (!flags.follow) return;
  await untilStopped(io, setExit, (controller) =>
    follow(
      client,
      { kinds: DaemonLog.kinds },
      {
        controller,
        io,
        print: async (event) => void (event.kind === 'daemon:log' && (await log.hear(event.payload))),
        onOpen: () => void log.showNewest().catch((error: unknown) => controller.abort(error)),
      },
    ),
  );
}

/** Runs until Ctrl-C, which is the only way that it ends without an error. */
async function untilStopped(io: Io, setExit: SetExit, run: (controller: AbortController) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const release = io.onInterrupt(() => controller.abort(new Stopped()));
  try {
    await run(controller);
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
    setExit(exitCode.interrupted);
  } finally {
    release();
  }
}

class Stopped extends Error {}

type Print = (event: ServerEvent | GapEvent) => Promise<void>;

function printer({ output }: LogsFlags, io: Io): Print {
  const paint = createPaint(io);
  return (event) => writePaced(io.stdout, `${output === 'json' ? printableLine(JSON.stringify(event)) : renderEvent(event, paint, io.now())}\n`);
}

/** Returns the id to continue after, so that no event in between is missed. */
async function showNewest(
  client: Client,
  { kinds, limit }: { kinds: string[] | undefined; limit: number },
  print: Print,
): Promise<string | undefined> {
  const { entries } = await client.activity({ limit });
  for (const { id, event, payload } of entries)
    if (kinds === undefined || kinds.includes(event)) await print({ kind: event, id: String(id), payload } as ServerEvent);
  const newest = entries.at(-1)?.id;
  return newest === undefined ? undefined : String(newest);
}

async function follow(
  client: Client,
  options: EventsOptions,
  { controller, print, io, onOpen }: { controller: AbortController; print: Print; io: Io; onOpen?: () => void },
): Promise<void> {
  let wasOpen = false;
  let isLost = false;
  const onState: EventsOptions['onState'] = (state, error) => {
    if (state === 'open') {
      if (isLost) printLine(io.stderr, '(reconnected)');
      wasOpen = true;
      isLost = false;
      onOpen?.();
    }
    if (state !== 'waiting' || error === undefined) return;
    // Fails at once if the first connection fails, instead of retrying.
    if (!wasOpen) return controller.abort(error);
    if (!isLost) printLine(io.stderr, `(connection lost, reconnecting: ${error.message.replace(/\.$/, '')})`);
    isLost = true;
  };
  for await (const event of client.events({ ...options, signal: controller.signal, onState })) await print(event);
}

function splitList(text: string, before: string[] = []): string[] {
  return [...before, ...text.split(',').flatMap((word) => (word.trim() === '' ? [] : [word.trim()]))];
}
