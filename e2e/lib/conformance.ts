import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';

const program = join(import.meta.dirname, '../../node_modules/@modelcontextprotocol/conformance/dist/index.js');
const { NODE_COMPILE_CACHE: cache } = process.env;
const compileCache = cache === undefined ? {} : { NODE_COMPILE_CACHE: cache };
const Checks = z.array(z.looseObject({ id: z.string(), status: z.string(), errorMessage: z.string().optional() }));

/** The outcome of one scenario of the suite. Warnings count as failures. */
export interface ScenarioResult {
  readonly scenario: string;
  readonly passed: boolean;
  readonly complaints: readonly string[];
}

/** Runs the conformance suite as its users do; kills it after `timeoutMs`. */
function run(args: readonly string[], timeoutMs: number, env: Readonly<Record<string, string>> = {}): Promise<string> {
  return new Promise((resolve) => {
    const options = {
      timeout: timeoutMs,
      killSignal: 'SIGKILL' as const,
      env: { PATH: process.env['PATH'] ?? '', ...compileCache, ...env },
      maxBuffer: 16 * 1024 * 1024,
    };
    // The exit status adds nothing to the checks in the output.
    execFile(process.execPath, [program, ...args], options, (_error, stdout, stderr) => resolve(stdout + stderr));
  });
}

let listed: Promise<string> | undefined;

/** Returns the names of the suite's scenarios for servers or clients. */
export async function scenariosOf(side: 'server' | 'client'): Promise<readonly string[]> {
  listed ??= run(['list'], 20_000);
  const [servers = '', clients = ''] = (await listed).split('Client scenarios');
  return [...(side === 'server' ? servers : clients).matchAll(/^ {2}- (\S+)/gm)].map(([, name = '']) => name);
}

/** Runs the suite, or one scenario, and parses its output. */
export async function runConformance(
  args: readonly string[],
  timeoutMs: number,
  env: Readonly<Record<string, string>> = {},
): Promise<readonly ScenarioResult[]> {
  const dir = await mkdtemp(join(tmpdir(), 'gatehouse-conformance-'));
  try {
    const said = await run([...args, '--output-dir', dir], timeoutMs, env);
    const results: ScenarioResult[] = [];
    for (const folder of await readdir(dir, { recursive: true })) {
      const scenario = /^(?:server-|client-)?(.+)-\d{4}-\d\d-\d\dT[^/]*\/checks\.json$/.exec(folder)?.[1];
      if (scenario === undefined) continue;
      const checks = Checks.parse(JSON.parse(await readFile(join(dir, folder), 'utf8')));
      const bad = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING');
      const good = checks.some(({ status }) => status === 'SUCCESS');
      results.push({ scenario, passed: good && bad.length === 0, complaints: bad.map(({ id, errorMessage }) => `${id}: ${errorMessage ?? ''}`) });
    }
    if (results.length === 0) throw new Error(`the conformance suite wrote no results:\n${said}`);
    return results;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
