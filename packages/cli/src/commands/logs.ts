import type { Client, EventsOptions, GapEvent, ServerEvent } from '@gatehouse/client';
import type { Command } from 'commander';
import { connect } from '../connection/target.ts';
import { exitCode, type SetExit } from '../exit-codes.ts';
import { usageError } from '../failure.ts';
import { type Io, printLine, writePaced } from '../io.ts';
import { renderEvent } from '../render/event-line.ts';
import { createPaint } from '../render/paint.ts';
import { printableLine } from '../render/plain.ts';
import { type CommonFlags, countOption, withConnection } from './options.ts';

type LogsFlags = CommonFlags & { readonly kinds?: string[]; readonly sinceId?: string; readonly last?: number; readonly follow: boolean };

/** `gatehouse logs`: shows server events live. */
export function addLogsCommand(program: Command, io: Io, setExit: SetExit): void {
  withConnection(program.command('logs'))
    .summary('show events live')
    .description('Shows the events of the daemon until Ctrl-C, one line each; with --json one JSON object each. Resumes after a lost connection.')
    .option('--kinds <kinds>', 'only these events, separated by commas, such as message:received,message:sent', splitList)
    .option('--since-id <id>', 'start after this event, if the daemon still keeps it')
    .addOption(countOption('--last <n>', 'start with this many of the newest events, at most 100'))
    .option('--no-follow', 'exit after the newest events (50 without --last)')
    .action(async ({ kinds, sinceId, last, ...flags }: LogsFlags) => {
      if (sinceId !== undefined && (last !== undefined || !flags.follow))
        throw usageError('--since-id and --last are mutually exclusive; --no-follow works with --last.');
      const { client } = await connect(flags, io);
      const print = printer(flags, io);
      const newest = last === undefined && flags.follow ? undefined : await showNewest(client, { kinds, limit: last ?? 50 }, print);
      if (!flags.follow) return;
      const controller = new AbortController();
      const release = io.onInterrupt(() => controller.abort(new Stopped()));
      try {
        // The server validates the kinds: it may know more of them.
        await follow(client, { kinds: kinds as EventsOptions['kinds'], lastEventId: sinceId ?? newest }, { controller, print, io });
      } catch (error) {
        if (!(error instanceof Stopped)) throw error;
        setExit(exitCode.interrupted);
      } finally {
        release();
      }
    });
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
  { controller, print, io }: { controller: AbortController; print: Print; io: Io },
): Promise<void> {
  let wasOpen = false;
  let isLost = false;
  const onState: EventsOptions['onState'] = (state, error) => {
    if (state === 'open') {
      if (isLost) printLine(io.stderr, '(reconnected)');
      wasOpen = true;
      isLost = false;
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
