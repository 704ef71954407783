import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { operations } from '../../../packages/server/src/transactions/registry.ts';
import { root } from '../daemon.ts';

/** Operations that only read, and that callers get as an argument or pass to `write` for its order. */
const reading = [
  'cron.unfinished',
  'durable.countWaiting',
  'graph.ofRoot',
  'heartbeat.recover',
  'memory.findReviewable',
  'memory.readReviewable',
  'subagents.waitingOf',
] as const;

/** Operations without a driver, and why. */
export const exempt: Readonly<Record<string, string>> = {};

/** Returns the names of the registered operations that write: all but those that the program passes only to `read` and `search`. */
export async function writingOperations(): Promise<readonly string[]> {
  const src = join(root, 'packages/server/src');
  const files = (await readdir(src, { recursive: true })).filter(
    (path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.includes('testing/'),
  );
  const texts = await Promise.all(files.map((path) => readFile(join(src, path), 'utf8')));
  const uses = new Map<string, Set<string>>();
  const constants = new Map<string, string>();
  for (const text of texts) {
    for (const [, constant = '', name = ''] of text.matchAll(/export const (\w+) = operation(?:<[^>]*>)?\(\s*'([^']+)'/g))
      constants.set(name, constant);
    for (const [, way = '', constant = ''] of text.matchAll(/\.(read|search|write|telemetry)\(\s*(?:[\w#.]*\.)?(\w+)\s*,/g)) {
      const found = uses.get(constant) ?? new Set();
      uses.set(constant, found.add(way));
    }
  }
  const onlyReads = (name: string) => {
    const ways = [...(uses.get(constants.get(name) ?? '') ?? [])];
    return ways.length > 0 && ways.every((way) => way === 'read' || way === 'search');
  };
  return operations.map(({ name }) => name).filter((name) => !onlyReads(name) && !reading.some((other) => other === name));
}
