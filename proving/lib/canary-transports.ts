import { spawnSync } from 'node:child_process';
import type { Agent } from 'node:http';
import { join } from 'node:path';
import type { Scanner } from './canaries.ts';
import { root } from './daemon.ts';
import { rpcCall } from './rpc.ts';

export interface Target {
  readonly port: number;
  readonly token: string;
  readonly agent: Agent;
}

/** Calls a method and scans its answer, whether that is a result or an error. */
export type Say = (method: string, params?: object, options?: { readonly signal?: AbortSignal; readonly timeoutMs?: number }) => Promise<string>;

/** `said`: a secret that was said where the answer comes from, so that it may appear in it. */
export function sayTo(target: Target, scan: Scanner['scan'], said?: string): Say {
  return async (method, params = {}, options = {}) => {
    const answer = await rpcCall(target, method, params, options).then(
      (result) => JSON.stringify(result),
      (error: unknown) => String(error),
    );
    scan(`answer of ${method}`, answer, said);
    return answer;
  };
}

/** Runs `gatehouse` with these arguments, for people and for programs, and scans its output. */
export function printTo({ port, token }: Target, home: string, scan: Scanner['scan'], unprovoked: string[]) {
  return (
    words: readonly string[],
    { said, statuses = [0], ...named }: { readonly said?: string; readonly statuses?: readonly number[]; readonly name?: string | undefined } = {},
  ): void => {
    // Ids are different each time, and are not part of a surface's name.
    const name = named.name ?? words.filter((word) => !word.includes('_')).join(' ');
    for (const form of [[], ['--output', 'json']]) {
      const { stdout, stderr, status } = spawnSync(process.execPath, [join(root, 'dist/cli.js'), ...words, ...form], {
        encoding: 'utf8',
        env: { HOME: home, PATH: process.env['PATH'], GATEHOUSE_URL: `http://127.0.0.1:${port}`, GATEHOUSE_TOKEN: token },
      });
      scan(`what the command ${name} prints`, stdout + stderr, said);
      if (!statuses.includes(status ?? -1)) unprovoked.push(`gatehouse ${name} ended with ${status}: ${stderr.slice(0, 200)}`);
    }
  };
}
