import type { Client } from '@gatehouse/client';
import type { LogLine } from '@gatehouse/contract';
import { useCallback, useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';

/** Lines that the page keeps. */
const maxLines = 1000;
/** Lines that the gateway returns at most. */
const maxFetched = 500;
/** Batches lines by time, so that each batch causes one redraw. */
const batchMs = 100;

export interface DaemonLog {
  /** Oldest first. */
  readonly lines: readonly LogLine[];
  /** Modules that have written lines. */
  readonly modules: readonly string[];
  readonly connection: 'connecting' | 'open' | 'waiting' | 'refused';
  readonly error: unknown;
  readonly clear: () => void;
}

/** Joins lines of two readings, each line once; ids grow. */
export function joinLines(before: readonly LogLine[], more: readonly LogLine[]): readonly LogLine[] {
  const lastId = before.at(-1)?.id ?? 0;
  const fresh = more.filter(({ id }) => id > lastId).toSorted((a, b) => a.id - b.id);
  return fresh.length === 0 ? before : [...before, ...fresh].slice(-maxLines);
}

/** Follows the log of the daemon while the page is open: the newest lines at first, and those that were missed after a lost connection. */
export function useDaemonLog(): DaemonLog {
  const { client } = useSession();
  const [lines, setLines] = useState<readonly LogLine[]>([]);
  const [modules, setModules] = useState<readonly string[]>([]);
  const [connection, setConnection] = useState<DaemonLog['connection']>('connecting');
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    const stop = new AbortController();
    follow(client, stop.signal, {
      onLines: (more) => setLines((before) => joinLines(before, more)),
      onModules: setModules,
      onState: setConnection,
    }).catch((failure: unknown) => {
      if (stop.signal.aborted) return;
      setError(failure);
      setConnection('refused');
    });
    return () => stop.abort();
  }, [client]);
  return { lines, modules, connection, error, clear: useCallback(() => setLines([]), []) };
}

interface Listener {
  readonly onLines: (lines: readonly LogLine[]) => void;
  readonly onModules: (modules: readonly string[]) => void;
  readonly onState: (state: DaemonLog['connection']) => void;
}

async function follow(client: Client, signal: AbortSignal, { onLines, onModules, onState }: Listener): Promise<void> {
  let lastId = 0;
  let held: LogLine[] | undefined;
  let fault: unknown;
  const failed = new AbortController();
  const take = (lines: readonly LogLine[]): void => {
    lastId = Math.max(lastId, lines.at(-1)?.id ?? 0);
    onLines(lines);
  };
  const catchUp = async (): Promise<void> => {
    // What follows is held back until what came before it is here.
    held ??= [];
    const found = await client.call('daemon.logs', { afterId: lastId, limit: maxFetched }, { signal });
    onModules(found.modules);
    take(joinLines(found.lines, held));
    held = undefined;
  };
  let batch: LogLine[] = [];
  const events = client.events({
    kinds: ['daemon:log'],
    signal: AbortSignal.any([signal, failed.signal]),
    onState(state) {
      onState(state);
      if (state !== 'open') return;
      catchUp().catch((error: unknown) => {
        fault = error;
        failed.abort();
      });
    },
  });
  try {
    for await (const event of events) {
      if (event.kind !== 'daemon:log') continue;
      if (held !== undefined) {
        held.push(event.payload);
        continue;
      }
      if (batch.length === 0)
        setTimeout(() => {
          const lines = batch;
          batch = [];
          if (!signal.aborted) take(lines);
        }, batchMs);
      batch.push(event.payload);
    }
  } catch (error) {
    throw fault ?? error;
  }
}
